"""Tables whose data files somebody removed."""

from __future__ import annotations

import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import LakeletError
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture(params=["append", "keyed", "dynamic", "vectors"])
def table(request: pytest.FixtureRequest, store: MemoryStore) -> Table:
    lake = Lake(store)
    lake.create_database("d")
    options = {
        "append": {},
        "keyed": {"bucket": "2"},
        "dynamic": {"bucket": "-1"},
        "vectors": {"bucket": "1", "deletion-vectors.enabled": "true"},
    }[request.param]
    key = [] if request.param == "append" else ["id", "p"]
    made = lake.create_table(
        "d.t",
        [("id", "INT"), ("p", "STRING")],
        primary_key=key,
        partitioned_by=["p"],
        options=options | {"write-only": "true"},
    )
    made.write([{"id": i, "p": "ab"[i % 2]} for i in range(20)])
    made.compact(full=True)
    made.write([{"id": 0, "p": "a"}, {"id": 100, "p": "b"}])
    made.compact()
    return made


def ids(table: Table) -> list[int]:
    return sorted(table.scan(columns=["id"]).to_arrow().column("id").to_pylist())


def test_a_whole_table_stays(table: Table) -> None:
    before = table.snapshots()
    found = table.remove_unexisting_files()
    assert (found.paths, found.snapshot, table.snapshots()) == ((), None, before)


def test_what_is_left_can_be_read(table: Table, store: MemoryStore) -> None:
    lost = [path for path, _ in table.files() if "/p=a/" in path]
    there = table.scan(where="p = 'b'").to_arrow().column("id").to_pylist()
    store.delete(lost)
    with pytest.raises(LakeletError):
        ids(table)
    dry = table.remove_unexisting_files(dry_run=True)
    assert (dry.paths, dry.snapshot, dry.dry_run) == (tuple(f"{store.location}/{path}" for path in lost), None, True)
    found = table.remove_unexisting_files()
    assert found.paths == dry.paths
    assert found.snapshot == table.snapshots()[-1]
    assert ids(table) == sorted(there)
    assert table.remove_unexisting_files().paths == ()
    table.write([{"id": 0, "p": "a"}, {"id": 7, "p": "b"}])
    table.compact(full=True)
    assert table.scan(where="p = 'a'").to_arrow().column("id").to_pylist() == [0]


def test_an_empty_table() -> None:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    found = lake.create_table("d.t", [("id", "INT")]).remove_unexisting_files()
    assert (found.paths, found.snapshot) == ((), None)
