"""Restamp uncommitted files: move their sequence numbers above those of a concurrent commit.

Of two commits the later one's rows win, so its sequence numbers must be the greater ones. The files are rewritten, one
batch in memory at a time, with all sequence numbers of a bucket moved by the same distance: the winning rows among them stay
the same, and so does all metadata of the files but their names, sizes and sequence ranges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import InternalError
from lakelet.format.data.data_file_formats import format_of_file
from lakelet.format.data.new_files import NewFiles
from lakelet.format.partition_folders import PartitionFolders
from lakelet.format.rows.binary_row_columns import decode_bounds
from lakelet.lsm.key_value_columns import SEQUENCE_NUMBER, file_fields
from lakelet.lsm.sorted_file import SortedFileSpec
from lakelet.model.bucket_mode import Place
from lakelet.model.commit_message import CommitMessage
from lakelet.model.data_file import DataFile
from lakelet.model.schema import KEY_PREFIX, TableSchema
from lakelet.model.types import FLOATS, Atomic
from lakelet.sink.write.one_commit import OneCommit
from lakelet.sink.write.row_groups import row_groups
from lakelet.sink.write.settings import SinkSettings
from lakelet.storage.home import TableHome

_BATCH_ROWS = 16_384


def restamp(
    home: TableHome, schema: TableSchema, messages: Sequence[CommitMessage], above: Mapping[Place, int]
) -> tuple[CommitMessage, ...]:
    """The messages with new files in the buckets of `above`, all of whose sequence numbers are greater than the one given there.

    The files of the other buckets stay. The old files are for the caller to remove; after an error there are no new ones.
    """
    moving = _Moving(home, schema)
    try:
        with OneCommit(home).all_or_nothing():
            return tuple(moving.moved(message, above.get((message.partition, message.bucket))) for message in messages)
    except BaseException:
        moving.files.remove()
        raise


class _Moving:
    def __init__(self, home: TableHome, schema: TableSchema) -> None:
        settings = SinkSettings.keyed(schema)
        self._home = home
        self._schema = schema
        self._settings = settings
        spec = SortedFileSpec.of(schema, settings.files)
        self._fields = file_fields(schema, thin=spec.thin)
        self._folders = PartitionFolders(home.paths, schema)
        self.files = NewFiles(home, spec.settings)

    def moved(self, message: CommitMessage, above: int | None) -> CommitMessage:
        """A message with its files moved above a sequence number, those excepted that already are."""
        if above is None or not message.new_files:
            return message
        distance = above + 1 - min(file.min_sequence for file in message.new_files)
        if distance <= 0:
            return message
        folder = self._folders.bucket_folder(message.partition, message.bucket)
        return replace(message, new_files=tuple(self._moved(file, folder, distance) for file in message.new_files))

    def _moved(self, file: DataFile, folder: str, distance: int) -> DataFile:
        if file.schema_id != self._schema.id:
            raise InternalError(f"{file.name} was written under schema {file.schema_id}, not {self._schema.id}")
        new = self.files.begin(folder, self._fields, without_ranges=self._maybe_nan(file))
        batches = self._batches(file, folder, distance)
        first = next(batches)
        group_rows = self._settings.group_rows(first.nbytes / first.num_rows)
        for group in row_groups(chain([first], batches), group_rows):
            new.write(group)
        return replace(
            file,
            name=new.name,
            size=new.close(),
            min_sequence=file.min_sequence + distance,
            max_sequence=file.max_sequence + distance,
            creation_ms=self._home.clock.now_ms(),
        )

    def _batches(self, file: DataFile, folder: str, distance: int) -> Iterator[pa.RecordBatch]:
        names = [field.name for field in self._fields]
        place = names.index(SEQUENCE_NUMBER)
        batches = format_of_file(file.name).read(
            self._home.store, f"{folder}/{file.name}", self._fields, names, batch_rows=_BATCH_ROWS
        )
        for batch in batches:
            moved = pc.add_checked(batch.column(place), pa.scalar(distance, pa.int64()))
            yield batch.set_column(place, batch.schema.field(place), moved)

    def _maybe_nan(self, file: DataFile) -> frozenset[str]:
        """The columns in which there may be a NaN: all floating-point ones whose maximum is not known to be a number."""
        names = file.value_stats_columns
        fields = [field for field in self._schema.fields if names is None or field.name in names]
        stored = pa.array([file.value_stats.max_values], pa.binary())
        greatest = decode_bounds(stored, [field.type for field in fields]) if fields else []
        bounded = {
            field.name
            for field, bound in zip(fields, greatest, strict=True)
            if pa.types.is_floating(bound.type) and bound.null_count == 0 and not math.isnan(bound[0].as_py())
        }
        floats = {
            field.name
            for field in self._schema.fields
            if isinstance(field.type, Atomic) and field.type.kind in FLOATS and field.name not in bounded
        }
        return frozenset(floats | {f"{KEY_PREFIX}{name}" for name in floats})
