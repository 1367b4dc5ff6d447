"""A crash at every storage call of procedures: copies of tables, and repairs that drop missing files."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from lakelet.catalog.lake import Lake
from lakelet.catalog.table_copy import copy_table
from lakelet.errors import LakeletError
from lakelet.storage.memory import MemoryStore
from lakelet.storage.store import ObjectStore
from lakelet.testing.instrumented_stores import CountingStore, CrashStore, SimulatedCrash, changes
from tests.crash.warehouse import TABLE, check, copied, lake_on

COLUMNS = [("id", "BIGINT"), ("p", "STRING")]


def start(*, keyed: bool) -> MemoryStore:
    store = MemoryStore()
    lake = lake_on(store, "start")
    lake.create_database("d")
    key = ["id", "p"] if keyed else []
    options = {"bucket": "1", "write-only": "true"} if keyed else {"write-only": "true"}
    table = lake.create_table(TABLE, COLUMNS, primary_key=key, partitioned_by=["p"], options=options)
    for first in (0, 4):
        table.write([{"id": id_, "p": "ab"[id_ % 2]} for id_ in range(first, first + 6)])
    return store


def steps(store: ObjectStore, operation: Callable[[Lake], object]) -> range:
    """The numbers of the calls that change something."""
    counting = CountingStore(copied(store))
    operation(lake_on(counting, "run"))
    assert {call for call, _ in counting.log} >= {"put", "put_if_absent"}
    return range(1, counting.changing_calls + 1)


def crashed(store: ObjectStore, operation: Callable[[Lake], object], number: int) -> ObjectStore:
    """What is left in the store. Trouble after a successful commit is reported, not raised."""
    left = copied(store)
    with suppress(SimulatedCrash):
        operation(lake_on(CrashStore(left, crash_at=number, only=changes), "run"))
    return left


def ids(store: ObjectStore, name: str) -> list[int]:
    return sorted(lake_on(store, "look").table(name).scan().to_arrow().column("id").to_pylist())


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
def test_files_that_are_gone(*, keyed: bool) -> None:
    store = start(keyed=keyed)
    lost = [path for path, _ in lake_on(store, "look").table(TABLE).files() if "/p=a/" in path]
    store.delete(lost)

    def drop(lake: Lake) -> object:
        return lake.table(TABLE).remove_unexisting_files()

    expected = [1, 3, 5, 7, 9] if keyed else [1, 3, 5, 5, 7, 9]
    for number in steps(store, drop):
        left = crashed(store, drop, number)
        table = lake_on(left, "again").table(TABLE)
        if len(table.snapshots()) == 2:
            with pytest.raises(LakeletError):
                ids(left, TABLE)
        again = table.remove_unexisting_files()
        assert len(again.paths) in (0, len(lost))
        assert ids(left, TABLE) == expected
        assert len(table.snapshots()) == 3


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
def test_copies(*, keyed: bool) -> None:
    store = start(keyed=keyed)

    def copy(lake: Lake) -> object:
        return copy_table(lake, lake.table(TABLE), "d.copy", mode="overwrite")

    expected = ids(store, TABLE)
    for number in steps(store, copy):
        left = crashed(store, copy, number)
        lake = lake_on(left, "again")
        if lake.table_exists("d.copy"):
            assert ids(left, "d.copy") in ([], expected)
        copy(lake)
        assert ids(left, "d.copy") == ids(left, TABLE) == expected
        check(left)
