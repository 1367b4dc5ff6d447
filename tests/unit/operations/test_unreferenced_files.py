"""Orphan files and missing files as operations."""

from lakelet.operations.unreferenced_files import (
    MissingFile,
    RemoveOrphanFiles,
    TableOrphans,
    remove_missing_files,
    remove_orphan_files,
)
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.unit.versioned_table import data_files, ids


def test_orphans_are_told_table_by_table(table: Table, store: MemoryStore) -> None:
    store.put("d.db/t/bucket-0/data-orphan.parquet", b"abc")
    seen: list[TableOrphans] = []
    (found,) = remove_orphan_files([table], RemoveOrphanFiles("1 ms", dry_run=True), seen.append)
    assert seen == [found]
    assert (found.table, found.report.count, found.report.bytes) == ("d.t", 1, 3)
    assert "d.db/t/bucket-0/data-orphan.parquet" in data_files(store)


def test_missing_files_leave_the_table(table: Table, store: MemoryStore) -> None:
    ((_, first),) = table.files(version=1)
    path = next(one for one in data_files(store) if one.endswith(first.name))
    store.delete([path])
    (gone,) = remove_missing_files([table])
    assert gone == MissingFile("d.t", gone.path, 4)
    assert gone.path.endswith(path)
    assert ids(table) == [2, 3]
