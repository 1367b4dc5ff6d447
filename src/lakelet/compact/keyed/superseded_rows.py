"""Find the rows that a compaction supersedes, in tables whose readers do not merge (deletion vectors, first-row).

Rows of level 0 are promoted to a level that readers see, while files above it stay as they are. Of every key one row may be left:

    promoted rows        k1  k3' k4'          merged with each other first
    files that stay      k1' k2  k3  k5       only their keys, sequence numbers and version columns are read

Where the promoted row wins, the position of the other is added to its file's deletion vector; where the row that stays wins
(by its `sequence.field`, or in a first-row table because it is the older one), the promoted row is dropped. Keys are
compared by a streaming merge, so that memory holds a bit per row and a few batches, no more.

All vectors of a bucket are written as one index file, which replaces the previous one, with bitmaps of the width that
`deletion-vectors.bitmap64` says: a bucket has vectors of one width, as Java merges no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.compact.task import CompactionTask
from lakelet.lsm.key_value_columns import KIND_FIELD, SEQUENCE_FIELD
from lakelet.lsm.levels import level_runs
from lakelet.lsm.merge_spec import MergeSpec
from lakelet.lsm.run_merge import merge_runs
from lakelet.lsm.sections import sections
from lakelet.model.data_file import DataFile, IndexFile
from lakelet.model.schema import TableSchema
from lakelet.model.split import DeletionVector
from lakelet.options import DELETION_VECTORS_BITMAP64, TableOptions
from lakelet.predicate.row_filter import row_filter
from lakelet.read.merge.key_value_files import KeyValueFiles
from lakelet.read.split_files import SplitFile, deleted_positions
from lakelet.sink.write.vector_files import EncodedVector, write_vectors
from lakelet.storage.home import TableHome

_FILE = "_FILE"
_POSITION = "_POSITION"
_COMING = -1
_BATCH_ROWS = 131_072
_BUFFER_BYTES = 1 << 20
Alive = NDArray[np.bool_]


@dataclass(slots=True)
class SupersededRows:
    """Compares the rows of a task with the files beside it, and collects the superseded rows of those."""

    home: TableHome
    schema: TableSchema
    schema_of: Callable[[int], TableSchema]
    task: CompactionTask
    folder: str
    _alive: dict[str, Alive] | None = None

    @property
    def columns(self) -> list[str]:
        """The columns of the table that decide between rows."""
        return list(MergeSpec.of(self.schema).deciding)

    def winning(self, group: Sequence[DataFile], coming: Iterator[pa.RecordBatch]) -> Alive | None:
        """Which rows of a group of files win, by their merged deciding columns; None where all of them do.

        The positions of the rows that they supersede are collected.
        """
        types = [field.type for field in self.schema.trimmed_key_fields]
        names = {file.name for file in group}
        together = [*group, *self.task.beside]
        near = {
            together[place].name
            for section in sections(together, types)
            if any(together[place].name in names for place in section.places)
            for place in section.places
        }
        beside = [file for file in self.task.beside if file.name in near]
        if not beside:
            return None
        spec = MergeSpec.of(self.schema, drop_deletes=False)
        numbered = _Numbered(coming)
        runs = [numbered.batches(), *(self._staying(run.files) for run in reversed(level_runs(beside)))]
        left = [np.zeros(0, np.int64)]
        alive = self._remembered()
        order = [file.name for file in self.task.beside]
        survived = {file.name: np.zeros(file.row_count, np.bool_) for file in beside}
        for batch in merge_runs(runs, spec, ordered=False, columns=[_FILE, _POSITION]):
            files, positions = (batch.column(name).to_numpy() for name in (_FILE, _POSITION))
            left.append(positions[files == _COMING])
            for number in np.unique(files[files != _COMING]).tolist():
                survived[order[number]][positions[files == number]] = True
        for name, rows in survived.items():
            alive[name] &= rows
        won = np.zeros(numbered.count, np.bool_)
        won[np.concatenate(left)] = True
        return won

    def new_vectors(self, moved: Sequence[DataFile]) -> IndexFile | None:
        """The index file for the bucket, written; None where no vector has changed. `moved` are files that stay otherwise."""
        changed = False
        vectors: list[tuple[str, NDArray[np.int64]]] = []
        for file in (*self.task.beside, *moved):
            before = self._deleted(file)
            after = before
            if self._alive is not None and file.name in self._alive:
                after = np.flatnonzero(~self._alive[file.name])
                changed = changed or len(after) != len(before)
            if len(after):
                vectors.append((file.name, after))
        return self._written(vectors) if changed else None

    def _written(self, vectors: Sequence[tuple[str, NDArray[np.int64]]]) -> IndexFile | None:
        bits64 = TableOptions(self.schema.options).get(DELETION_VECTORS_BITMAP64)
        encoded = (EncodedVector.of(name, positions, bits64=bits64) for name, positions in vectors)
        return next(iter(write_vectors(self.home, encoded)), None)

    def _remembered(self) -> dict[str, Alive]:
        if self._alive is None:
            self._alive = {}
            for file in self.task.beside:
                alive = np.ones(file.row_count, np.bool_)
                alive[self._deleted(file)] = False
                self._alive[file.name] = alive
        return self._alive

    def _deleted(self, file: DataFile) -> NDArray[np.int64]:
        found = deleted_positions(self.home, self._split_file(file))
        return np.empty(0, np.int64) if found is None else found

    def _staying(self, files: Sequence[DataFile]) -> Iterator[pa.RecordBatch]:
        """The deciding columns of files of one level in key order, with the positions of their rows, without deleted ones."""
        fields = tuple(self.schema.field(name) for name in self.columns)
        reader = KeyValueFiles(
            self.home,
            self.schema.trimmed_primary_keys,
            fields,
            row_filter(None, self.schema.fields),
            self.schema_of,
        )
        numbers = {file.name: number for number, file in enumerate(self.task.beside)}
        types = [field.type for field in self.schema.trimmed_key_fields]
        for file in (files[section.places[0]] for section in sections(files, types)):
            alive = self._remembered()[file.name]
            split_file = replace(self._split_file(file), vector=None)
            at = 0
            for batch in reader.stream(
                [split_file], sequences=True, kinds=True, batch_rows=_BATCH_ROWS, buffer_bytes=_BUFFER_BYTES
            ):
                positions = np.arange(at, at + batch.num_rows)
                at += batch.num_rows
                rows = _with_places(batch, numbers[file.name], positions)
                kept = rows.filter(pa.array(alive[positions]))
                if kept.num_rows:
                    yield kept

    def _split_file(self, file: DataFile) -> SplitFile:
        vector: DeletionVector | None = self.task.vectors.get(file.name)
        return SplitFile(file, f"{self.folder}/{file.name}", vector, self.task.snapshot_id, self.task.partition)


class _Numbered:
    """The promoted rows, numbered in their order."""

    def __init__(self, rows: Iterator[pa.RecordBatch]) -> None:
        self._rows = rows
        self.count = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._rows:
            positions = np.arange(self.count, self.count + batch.num_rows)
            self.count += batch.num_rows
            yield _with_places(batch, _COMING, positions)


def _with_places(batch: pa.RecordBatch, number: int, positions: NDArray[np.int64]) -> pa.RecordBatch:
    """A batch with the file and the position of each row; all batches have the same columns in the same order."""
    own = (SEQUENCE_FIELD.name, KIND_FIELD.name)
    names = [*own, *(name for name in batch.schema.names if name not in own)]
    columns = [batch.column(name) for name in names]
    files = pa.array(np.full(batch.num_rows, number, np.int32))
    return pa.RecordBatch.from_arrays([*columns, files, pa.array(positions)], names=[*names, _FILE, _POSITION])
