"""Copy-on-write DELETE, UPDATE and MERGE on a branch as one snapshot: files with removed rows are rewritten without them.

    head of the branch ─ located rows ─ the statement ───┬─ added rows ────────────────────── writer ─┐
                                                         └─ places of removed rows                    ├─ one snapshot
                                files with such places ─ their other rows ─────────────────── writer ─┘

A row's place is the number of its file, counted as files are read, and its position in the file. Files of which every row is
removed are dropped unread; files of which none is are kept. Rows hidden by delete files are not read, so that they are not in
the new files; these are newer than every delete file, and none applies to them. New files have the table's current spec,
whichever the old ones had.

Nothing is visible before the snapshot, and files that do not become part of it are removed, unless the outcome is unknown.
By the table's properties `write.delete.isolation-level`, `…update…` and `…merge…` the change conflicts with rows added since
that may match the statement's condition (`serializable`, the default), or only with changes of the files that it replaces
(`snapshot`). After a conflict the statement is run again on the new head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyiceberg.table import TableProperties

from lakelet.clock import Clock
from lakelet.errors import ConflictError, InvalidError
from lakelet.iceberg.catalog.library_errors import lakelet_errors
from lakelet.iceberg.commit.attempts import MadeSnapshot, head_of
from lakelet.iceberg.commit.change import operation_of
from lakelet.iceberg.commit.replace_files import replace_files
from lakelet.iceberg.commit.table_settings import number_property
from lakelet.iceberg.commit_data import CommitData
from lakelet.iceberg.scan import IcebergScan, ScanFile, scan_of
from lakelet.iceberg.table import IcebergTable
from lakelet.iceberg.write.table_writer import TableWriter
from lakelet.iceberg.write.write_plan import write_plan
from lakelet.ids import Ids, RandomIds
from lakelet.predicate.tree import Predicate

_MAIN = "main"
_TASK = "change"
_ISOLATION = "write.{}.isolation-level"
_SERIALIZABLE, _SNAPSHOT = "serializable", "snapshot"
# How often a statement is retried, unless the table says otherwise.
_RETRIES = 10
_POSITIONS_AT_ONCE = 1 << 20

Positions = NDArray[np.int64]
Numbers = NDArray[np.int32]


def change_rows(
    table: IcebergTable,
    find: Callable[[RowChange], None],
    *,
    kind: str,
    branch: str | None = None,
    ids: Ids | None = None,
    clock: Clock | None = None,
) -> MadeSnapshot | None:
    """Commits the changes that `find` makes to the newest version; None where nothing changes. `kind` is delete, update
    or merge. ConflictError after too many concurrent commits; CommitUnknownError where the commit's outcome is unknown."""
    retries = number_property(table.properties, TableProperties.COMMIT_NUM_RETRIES, _RETRIES, least=0)
    now = table
    while True:
        change = RowChange(now, kind=kind, branch=branch or _MAIN, ids=ids or RandomIds(), clock=clock)
        try:
            find(change)
            return change.commit()
        except ConflictError:
            retries -= 1
            later = now.reloaded()
            # Where nothing has changed, a retry would end the same.
            if retries < 0 or later.library.metadata_location == now.library.metadata_location:
                raise
            now = later
        finally:
            change.abort()


class RowChange:
    """What one statement does to the rows of one version of a branch."""

    def __init__(self, table: IcebergTable, *, kind: str, branch: str, ids: Ids, clock: Clock | None = None) -> None:
        self.table = table
        self.branch = branch
        self._ids = ids
        self._clock = clock
        self._serializable = _is_serializable(table, kind)
        with lakelet_errors(f"table {table.full_name}"):
            self._head = head_of(table, branch)
            self._writer: TableWriter | None = TableWriter(write_plan(table, ids.uuid()), _TASK)
        self._numbers: dict[str, int] = {}
        self._files: list[tuple[IcebergScan, ScanFile]] = []
        self._gone_files: list[Numbers] = []
        self._gone_rows: list[Positions] = []
        self._where: Predicate | None = None

    def scan(self, where: Predicate | None = None) -> IcebergScan:
        """A scan of the version, with files pruned by a condition."""
        # A branch is read in the table's schema, which its snapshot may not have been written with.
        return scan_of(self.table, ref=self.branch, where=where)

    def read(self, scan: IcebergScan, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch | None, int, Positions]]:
        """The rows of all files of a scan in these columns, with the numbers of their files and their positions; None for rows in
        no columns."""
        for file in scan.files:
            number = self._number(scan, file)
            if not columns and not file.has_equality_deletes:
                for positions in _counted(file, scan.deleted(file)):
                    yield None, number, positions
                continue
            for batch, positions in scan.read_located(file, columns):
                yield batch if columns else None, number, positions

    def remove(self, files: Numbers, rows: Positions) -> None:
        """Removes rows by their places."""
        self._gone_files.append(files)
        self._gone_rows.append(rows)

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds rows; InvalidError where they do not fit the table."""
        if batch.num_rows:
            assert self._writer is not None, "rows come before the commit"
            self._writer.write(batch)

    def rest_on(self, where: Predicate | None) -> None:
        """Sets the condition of the rows that the change depends on, for conflict detection; all rows unless it is called."""
        self._where = where

    def changes_twice(self) -> bool:
        """Whether a row is removed more than once."""
        files, rows = self._gone()
        return bool(((np.diff(files) == 0) & (np.diff(rows) == 0)).any())

    def commit(self) -> MadeSnapshot | None:
        """Rewrites the files with removed rows, and commits; None where nothing changes."""
        assert self._writer is not None, "a change is committed once"
        files, rows = self._gone()
        numbers, starts = np.unique(files, return_index=True)
        removed = []
        for place, number in enumerate(numbers.tolist()):
            scan, file = self._files[number]
            behind = starts[place + 1] if place + 1 < len(starts) else len(rows)
            self._copy_rest(scan, file, np.unique(rows[starts[place] : behind]))
            removed.append(file.path)
        added: list[CommitData] = self._writer.close()
        # From here on files are removed by the commit alone, which knows its outcome.
        self._writer = None
        if not added and not removed:
            return None
        return replace_files(
            self.table,
            removed,
            added,
            base_snapshot_id=None if self._head is None else self._head.snapshot_id,
            operation=operation_of(len(added), len(removed)).value,
            branch=self.branch,
            serializable=self._serializable,
            where=self._where,
            ids=self._ids,
            clock=self._clock,
        )

    def abort(self) -> None:
        """Removes what was written, unless it has been handed over to a commit."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.abort()

    def _number(self, scan: IcebergScan, file: ScanFile) -> int:
        if file.path not in self._numbers:
            self._numbers[file.path] = len(self._files)
            self._files.append((scan, file))
        return self._numbers[file.path]

    def _gone(self) -> tuple[Numbers, Positions]:
        """Files and positions of the removed rows, in order."""
        if not self._gone_rows:
            return np.empty(0, np.int32), np.empty(0, np.int64)
        files, rows = np.concatenate(self._gone_files), np.concatenate(self._gone_rows)
        order = np.lexsort((rows, files))
        return files[order], rows[order]

    def _copy_rest(self, scan: IcebergScan, file: ScanFile, gone: Positions) -> None:
        """Copies the remaining rows of a file."""
        hidden = scan.deleted(file)
        if len(gone) == file.row_count - (0 if hidden is None else len(hidden)):
            return
        for batch, positions in scan.read_located(file):
            found = np.searchsorted(gone, positions)
            stays = gone[np.minimum(found, len(gone) - 1)] != positions
            self.add(batch if stays.all() else batch.filter(pa.array(stays)))


def _counted(file: ScanFile, hidden: Positions | None) -> Iterator[Positions]:
    """The positions of a file's rows, of which nothing more is asked: the file need not be opened."""
    for start in range(0, file.row_count, _POSITIONS_AT_ONCE):
        positions = np.arange(start, min(start + _POSITIONS_AT_ONCE, file.row_count), dtype=np.int64)
        yield positions if hidden is None else np.setdiff1d(positions, hidden, assume_unique=True)


def _is_serializable(table: IcebergTable, kind: str) -> bool:
    name = _ISOLATION.format(kind)
    level = table.properties.get(name, _SERIALIZABLE)
    if level.lower() not in (_SERIALIZABLE, _SNAPSHOT):
        raise InvalidError(
            f"table {table.full_name}: '{name}': expected {_SERIALIZABLE} or {_SNAPSHOT}, found {level!r}"
        )
    return level.lower() == _SERIALIZABLE
