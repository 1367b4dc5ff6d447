"""One insert into an Iceberg table, on the driver: a plan for the writers, then all their files as one snapshot.

transaction = IcebergTransaction(table, branch=…)
plan = transaction.begin_insert(mode, partition)      to every writer
transaction.update_commit_data(files)                 from every writer
transaction.finish_insert()                           one snapshot, or none
transaction.rollback()                                the files go
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lakelet.errors import InvalidError
from lakelet.iceberg.commit_data import CommitData
from lakelet.iceberg.library_errors import lakelet_errors
from lakelet.iceberg.table import IcebergTable
from lakelet.iceberg.write_plan import WritePlan, write_plan
from lakelet.ids import Ids, RandomIds

MODES = ("append", "overwrite", "overwrite_partitions")
COMMIT_ID = "lakelet.commit-id"


@dataclass(frozen=True, slots=True)
class MadeSnapshot:
    """A snapshot that an insert made."""

    id: int
    operation: str
    added_files: int
    added_rows: int
    removed_files: int


class IcebergTransaction:
    """One insert. `commit_id` names it in the snapshot's summary, by which its outcome can be looked up."""

    def __init__(
        self, table: IcebergTable, *, branch: str | None = None, commit_id: str | None = None, ids: Ids | None = None
    ) -> None:
        self._table = table
        self._branch = branch or "main"
        self._job = (ids or RandomIds()).uuid()
        self._commit_id = commit_id or self._job
        self._mode = "append"
        self._data: list[CommitData] = []

    def begin_insert(self, mode: str = "append", partition: Mapping[str, object] | None = None) -> WritePlan:
        """Pins the table's version and gives what writers need. `partition` holds values of identity partition columns, for
        a static overwrite."""
        if mode not in MODES:
            raise InvalidError(f"mode {mode!r}: expected one of {', '.join(MODES)}")
        self._mode = mode
        return write_plan(self._table, self._job)

    def update_commit_data(self, data: Iterable[CommitData]) -> None:
        """Takes the files of a writer."""
        self._data.extend(data)

    def finish_insert(self) -> MadeSnapshot | None:
        """Commits all files as one snapshot; None where there is nothing to commit."""
        if not self._data:
            return None
        table = self._table.library
        with lakelet_errors(f"table {self._table.full_name}"), table.transaction() as change:
            update = change.update_snapshot({COMMIT_ID: self._commit_id}, self._branch).fast_append()
            with update:
                for data in self._data:
                    update.append_data_file(data.data_file())
        rows = sum(data.row_count for data in self._data)
        return MadeSnapshot(update.snapshot_id, "append", len(self._data), rows, 0)

    def rollback(self) -> None:
        """Removes the files that writers told of."""
        for data in self._data:
            self._table.library.io.delete(data.file_path)
