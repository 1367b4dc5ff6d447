"""Hints are made right from what is there."""

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import NotFoundError
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def table(store: MemoryStore) -> Table:
    lake = Lake(store)
    lake.create_database("d")
    table = lake.create_table("d.t", [("id", "BIGINT")])
    for number in range(3):
        table.write(pa.table({"id": [number]}))
    return table


def hints(store: MemoryStore) -> tuple[bytes, bytes]:
    return store.get("d.db/t/snapshot/EARLIEST"), store.get("d.db/t/snapshot/LATEST")


def test_right_hints_are_left(store: MemoryStore, table: Table) -> None:
    assert table.repair().repaired == ()
    assert hints(store) == (b"1", b"3")


@pytest.mark.parametrize("wrong", [b"2", b"77", b"", b"what", b"-1", None])
def test_wrong_and_missing_hints_are_made_right(store: MemoryStore, table: Table, wrong: bytes | None) -> None:
    for name in ("EARLIEST", "LATEST"):
        path = f"d.db/t/snapshot/{name}"
        store.delete([path]) if wrong is None else store.put(path, wrong)
    repaired = table.repair()
    assert (repaired.earliest, repaired.latest, len(repaired.repaired)) == (1, 3, 2)
    assert hints(store) == (b"1", b"3")
    assert table.scan().count() == 3


def test_hints_of_changelogs(store: MemoryStore, table: Table) -> None:
    for number in (1, 2):
        store.copy(f"d.db/t/snapshot/snapshot-{number}", f"d.db/t/changelog/changelog-{number}")
    store.delete(["d.db/t/snapshot/snapshot-1", "d.db/t/snapshot/snapshot-2"])
    assert (table.repair().earliest, table.repair().repaired) == (3, ())
    assert store.get("d.db/t/changelog/EARLIEST") == b"1"
    assert store.get("d.db/t/changelog/LATEST") == b"2"


def test_hints_without_snapshots_go(store: MemoryStore) -> None:
    lake = Lake(store)
    lake.create_database("d")
    table = lake.create_table("d.t", [("id", "BIGINT")])
    store.put("d.db/t/snapshot/LATEST", b"4")
    repaired = table.repair()
    assert (repaired.latest, repaired.repaired) == (None, ("d.db/t/snapshot/LATEST",))
    assert store.head("d.db/t/snapshot/LATEST") is None


def test_a_dropped_table(store: MemoryStore, table: Table) -> None:
    Lake(store).drop_table("d.t")
    with pytest.raises(NotFoundError):
        table.repair()
    assert list(store.list("d.db")) == []
