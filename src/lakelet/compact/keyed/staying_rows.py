"""The deciding columns of rows in files that stay beside a compaction, with the place of each row.

    in order      all rows of the files of a level, by one stream: where many rows come
    of keys       the rows of some keys, looked up: where few come

Deciding columns are the key and the `sequence.field`s; sequence numbers and kinds come with them. A row's place is the number of
its file and its position there, which is what deletion vectors speak of. Rows that deletion vectors delete are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.compact.task import CompactionTask
from lakelet.lsm.key_value_columns import KIND_FIELD, SEQUENCE_FIELD
from lakelet.lsm.merge_spec import MergeSpec
from lakelet.lsm.sections import sections
from lakelet.model.data_file import DataFile
from lakelet.model.schema import TableSchema
from lakelet.model.split import DeletionVector, Split
from lakelet.predicate.row_filter import row_filter
from lakelet.read.merge.key_value_files import KeyValueFiles
from lakelet.read.serve.stored_rows import StoredRowReader
from lakelet.read.split_files import SplitFile
from lakelet.storage.home import TableHome

FILE = "_FILE"
POSITION = "_POSITION"
Alive = NDArray[np.bool_]
_BATCH_ROWS = 131_072
_BUFFER_BYTES = 1 << 20


@dataclass(frozen=True)
class StayingRows:
    """The rows of the files beside a task, which are numbered in the task's order."""

    home: TableHome
    schema: TableSchema
    schema_of: Callable[[int], TableSchema]
    task: CompactionTask
    folder: str

    @property
    def columns(self) -> list[str]:
        """The columns of the table that decide between rows."""
        return list(MergeSpec.of(self.schema).deciding)

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The number of each file, by name."""
        return {file.name: number for number, file in enumerate(self.task.beside)}

    @cached_property
    def _reader(self) -> StoredRowReader:
        return StoredRowReader(self.home, self.schema, self.columns, self.schema_of)

    def in_order(self, files: Sequence[DataFile], alive: Mapping[str, Alive]) -> Iterator[pa.RecordBatch]:
        """The rows of files of one level in key order, without those that are not alive."""
        fields = tuple(self.schema.field(name) for name in self.columns)
        reader = KeyValueFiles(
            self.home,
            self.schema.trimmed_primary_keys,
            fields,
            row_filter(None, self.schema.fields),
            self.schema_of,
        )
        types = [field.type for field in self.schema.trimmed_key_fields]
        for file in (files[section.places[0]] for section in sections(files, types)):
            split_file = replace(self.split_file(file), vector=None)
            at = 0
            for batch in reader.stream(
                [split_file], sequences=True, kinds=True, batch_rows=_BATCH_ROWS, buffer_bytes=_BUFFER_BYTES
            ):
                positions = np.arange(at, at + batch.num_rows)
                at += batch.num_rows
                rows = with_places(batch, np.full(batch.num_rows, self.numbers[file.name]), positions)
                kept = rows.filter(pa.array(alive[file.name][positions]))
                if kept.num_rows:
                    yield kept

    def of_keys(self, files: Sequence[DataFile], coming: pa.RecordBatch) -> pa.RecordBatch | None:
        """The rows of files that have the keys of rows that come, in their order, None where there are none; of rows of a key
        that of the lower level is last."""
        reader = self._reader
        keys = [coming.column(field.name) for field in self.schema.trimmed_key_fields]
        hits = reader.found(self._split(files), keys)
        if not hits:
            return None
        counts = [len(one.places) for one in hits]
        stored = [one.lookup.file.data for one in hits]
        numbers = np.repeat([self.numbers[file.name] for file in stored], counts)
        levels = np.repeat([file.level for file in stored], counts)
        order = np.lexsort((-levels, np.concatenate([one.places for one in hits])))
        positions = np.concatenate([one.positions() for one in hits])
        return with_places(reader.whole(hits), numbers, positions).take(pa.array(order))

    def split_file(self, file: DataFile) -> SplitFile:
        """A file as readers take it, with its deletion vector."""
        vector: DeletionVector | None = self.task.vectors.get(file.name)
        return SplitFile(file, f"{self.folder}/{file.name}", vector, self.task.snapshot_id, self.task.partition)

    def _split(self, files: Sequence[DataFile]) -> Split:
        task = self.task
        return Split(
            task.snapshot_id,
            task.partition,
            task.bucket,
            task.total_buckets,
            tuple(files),
            tuple(f"{self.folder}/{file.name}" for file in files),
            tuple(task.vectors.get(file.name) for file in files),
            needs_merge=True,
        )


def with_places(batch: pa.RecordBatch, files: NDArray[np.int64], positions: NDArray[np.int64]) -> pa.RecordBatch:
    """A batch with the file and the position of each row; all batches have the same columns in the same order."""
    own = (SEQUENCE_FIELD.name, KIND_FIELD.name)
    names = [*own, *(name for name in batch.schema.names if name not in own)]
    columns = [batch.column(name) for name in names]
    return pa.RecordBatch.from_arrays(
        [*columns, pa.array(files.astype(np.int32)), pa.array(positions)], names=[*names, FILE, POSITION]
    )
