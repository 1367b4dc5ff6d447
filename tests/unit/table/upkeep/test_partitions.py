"""The partitions of a table: which there are, and dropping them."""

import datetime as dt

import pyarrow as pa
import pytest

from lakelet import Lake, Table
from lakelet.storage.memory import MemoryStore
from lakelet.table.upkeep.partitions import drop_partitions, live_partitions
from tests.unit.hooked_store import HookedStore

DAY = dt.date(2026, 1, 2)


@pytest.fixture
def store() -> HookedStore:
    return HookedStore(MemoryStore())


@pytest.fixture
def table(store: HookedStore) -> Table:
    lake = Lake(store)
    lake.create_database("d")
    columns = [("id", "INT"), ("day", "DATE"), ("p", "STRING")]
    return lake.create_table("d.t", columns, partitioned_by=["day", "p"], options={"partition.default-name": "none"})


def fill(table: Table) -> None:
    table.write(pa.table({"id": [1, 2, 3, 4], "day": [DAY, DAY, None, DAY], "p": ["b", "a/b", None, "b"]}))


def names(table: Table) -> list[str]:
    return [partition.name(table.schema) for partition in live_partitions(table, table.schema)]


def test_those_that_have_files(table: Table) -> None:
    assert names(table) == []
    fill(table)
    assert names(table) == ["day=2026-01-02/p=a/b", "day=2026-01-02/p=b", "day=none/p=none"]
    assert [dict(partition.values) for partition in live_partitions(table, table.schema)] == [
        {"day": "2026-01-02", "p": "a/b"},
        {"day": "2026-01-02", "p": "b"},
        {"day": None, "p": None},
    ]
    table.delete(where="p = 'b'")
    assert names(table) == ["day=2026-01-02/p=a/b", "day=none/p=none"]


def test_those_that_agree_with_one_of_several_specs(table: Table) -> None:
    fill(table)
    found = live_partitions(table, table.schema, [{"p": "b"}, {"day": None}])
    assert [partition.values["p"] for partition in found] == ["b", None]
    assert live_partitions(table, table.schema, []) == []


def test_several_are_dropped_in_one_commit(table: Table) -> None:
    fill(table)
    made = drop_partitions(table, live_partitions(table, table.schema, [{"p": "b"}, {"day": None}]))
    assert made is not None
    assert made.id == 2
    assert table.scan().to_arrow()["id"].to_pylist() == [2]
    assert table.scan(version=1).count() == 4
    assert drop_partitions(table, []) is None
    assert table.latest_snapshot() == made


def test_a_drop_takes_what_is_written_meanwhile(table: Table, store: HookedStore) -> None:
    fill(table)
    chosen = live_partitions(table, table.schema, [{"p": "b"}])
    store.when = lambda call, path: call == "put" and "/manifest/" in path
    store.after = lambda: table.write(pa.table({"id": [5, 6], "day": [DAY, DAY], "p": ["b", "c"]}))
    drop_partitions(table, chosen)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [2, 3, 6]
