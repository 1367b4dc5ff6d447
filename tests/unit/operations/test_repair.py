"""Repair of hints as an operation."""

from lakelet.operations.repair import RepairedTable, repair
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table


def test_wrong_hints_are_rewritten(table: Table, store: MemoryStore) -> None:
    assert repair([table]) == (RepairedTable("d.t", 1, 3, 0),)
    store.put("d.db/t/snapshot/LATEST", b"2")
    assert repair([table]) == (RepairedTable("d.t", 1, 3, 1),)
