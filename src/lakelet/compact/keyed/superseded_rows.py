"""Find the rows that a compaction supersedes, in tables whose readers do not merge (deletion vectors, first-row).

Rows of level 0 are promoted to a level that readers see, while files above it stay as they are. Of every key one row may be left:

    promoted rows        k1  k3' k4'          merged with each other first
    files that stay      k1' k2  k3  k5       only their keys, sequence numbers and version columns are read

Where the promoted row wins, the position of the other is added to its file's deletion vector; where the row that stays wins
(by its `sequence.field`, or in a first-row table because it is the older one), the promoted row is dropped. Where few rows are
promoted, those that stay are looked up by their keys (`staying_rows`), a batch at a time. Otherwise keys are compared by a
streaming merge. Memory holds a bit per row and a few batches, no more.

All vectors of a bucket are written as one index file, which replaces the previous one, with bitmaps of the width that
`deletion-vectors.bitmap64` says: a bucket has vectors of one width, as Java merges no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.compact.keyed.staying_rows import FILE, POSITION, Alive, StayingRows, with_places
from lakelet.compact.progress import Watch
from lakelet.compact.task import CompactionTask
from lakelet.lsm.levels import level_runs
from lakelet.lsm.merge_spec import MergeSpec
from lakelet.lsm.run_merge import merge_runs
from lakelet.lsm.sections import sections
from lakelet.model.data_file import DataFile, IndexFile
from lakelet.model.schema import TableSchema
from lakelet.options import DELETION_VECTORS_BITMAP64, TableOptions
from lakelet.read.serve.lookup_choice import looks_up
from lakelet.read.split_files import deleted_positions
from lakelet.sink.write.vector_files import EncodedVector, write_vectors
from lakelet.storage.home import TableHome

_COMING = -1


class SupersededRows:
    """Compares the rows of a task with the files beside it, and collects the superseded rows of those."""

    def __init__(
        self,
        home: TableHome,
        schema: TableSchema,
        schema_of: Callable[[int], TableSchema],
        task: CompactionTask,
        folder: str,
        watch: Watch,
    ) -> None:
        self._home = home
        self._schema = schema
        self._watch = watch
        self._staying = StayingRows(home, schema, schema_of, task, folder)
        self._alive: dict[str, Alive] | None = None
        self.task = task

    @property
    def columns(self) -> list[str]:
        """The columns of the table that decide between rows."""
        return self._staying.columns

    def winning(self, group: Sequence[DataFile], coming: Iterator[pa.RecordBatch]) -> Alive | None:
        """Which rows of a group of files win, by their merged deciding columns; None where all of them do.

        The positions of the rows that they supersede are collected.
        """
        beside = self._near(group)
        if not beside:
            return None
        rows = sum(file.row_count for file in group)
        few = looks_up(keys=rows, rows=sum(file.row_count for file in beside))
        numbered = _Numbered(coming)
        alive, order = self._remembered(), [file.name for file in self.task.beside]
        left = [np.zeros(0, np.int64)]
        spec = MergeSpec.of(self._schema, drop_deletes=False)
        for runs in self._looked_up(beside, numbered) if few else self._in_order(beside, numbered):
            for batch in merge_runs(runs, spec, ordered=False, columns=[FILE, POSITION]):
                files, positions = (batch.column(name).to_numpy() for name in (FILE, POSITION))
                left.append(positions[files == _COMING])
                for number in np.unique(files[files != _COMING]).tolist():
                    alive[order[number]][positions[files == number]] = True
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

    def _near(self, group: Sequence[DataFile]) -> list[DataFile]:
        """The files that stay and may hold keys of a group."""
        types = [field.type for field in self._schema.trimmed_key_fields]
        names = {file.name for file in group}
        together = [*group, *self.task.beside]
        near = {
            together[place].name
            for section in sections(together, types)
            if any(together[place].name in names for place in section.places)
            for place in section.places
        }
        return [file for file in self.task.beside if file.name in near]

    def _in_order(self, beside: Sequence[DataFile], coming: _Numbered) -> Iterator[list[Iterator[pa.RecordBatch]]]:
        """The runs to compare at once: the rows that come, and all that stay."""
        staying = (
            self._compared(self._staying.in_order(run.files, self._remembered()))
            for run in reversed(level_runs(beside))
        )
        yield [coming.batches(), *staying]

    def _looked_up(self, beside: Sequence[DataFile], coming: _Numbered) -> Iterator[list[Iterator[pa.RecordBatch]]]:
        """The same batch by batch, each with the rows of its keys."""
        for batch in coming.batches():
            self._watch.check()
            found = self._staying.of_keys(beside, batch)
            self._watch.count_lookups(looked_up=batch.num_rows, found=0 if found is None else found.num_rows)
            yield [iter([batch]), *([] if found is None else [self._compared(iter([found]))])]

    def _compared(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows that stay, on their way to being compared: from there on they are alive if they win."""
        alive, order = self._remembered(), [file.name for file in self.task.beside]
        for batch in rows:
            files, positions = (batch.column(name).to_numpy() for name in (FILE, POSITION))
            for number in np.unique(files).tolist():
                alive[order[number]][positions[files == number]] = False
            yield batch

    def _written(self, vectors: Sequence[tuple[str, NDArray[np.int64]]]) -> IndexFile | None:
        bits64 = TableOptions(self._schema.options).get(DELETION_VECTORS_BITMAP64)
        encoded = (EncodedVector.of(name, positions, bits64=bits64) for name, positions in vectors)
        return next(iter(write_vectors(self._home, encoded)), None)

    def _remembered(self) -> dict[str, Alive]:
        if self._alive is None:
            self._alive = {}
            for file in self.task.beside:
                alive = np.ones(file.row_count, np.bool_)
                alive[self._deleted(file)] = False
                self._alive[file.name] = alive
        return self._alive

    def _deleted(self, file: DataFile) -> NDArray[np.int64]:
        found = deleted_positions(self._home, self._staying.split_file(file))
        return np.empty(0, np.int64) if found is None else found


class _Numbered:
    """The promoted rows, numbered in their order."""

    def __init__(self, rows: Iterator[pa.RecordBatch]) -> None:
        self._rows = rows
        self.count = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._rows:
            positions = np.arange(self.count, self.count + batch.num_rows)
            self.count += batch.num_rows
            yield with_places(batch, np.full(batch.num_rows, _COMING), positions)
