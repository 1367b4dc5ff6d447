"""Deletes by predicate: which files they touch."""

import pyarrow.compute as pc
import pytest

from lakelet import Lake, LakeletError, Table
from lakelet.model.snapshot import CommitKind
from lakelet.storage.memory import MemoryStore
from lakelet.testing.instrumented_stores import CountingStore


@pytest.fixture
def table() -> Table:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    made = lake.create_table("d.t", [("id", "BIGINT"), ("p", "STRING"), ("x", "DOUBLE")], partitioned_by=["p"])
    for start in (0, 10, 20):
        made.write(
            [{"id": start + number, "p": "ab"[number % 2], "x": None if number == 4 else 1.0} for number in range(6)]
        )
    return made


def names(table: Table) -> set[str]:
    return {file.name for _, file in table.files()}


def ids(table: Table) -> list[int]:
    found: list[int] = sorted(table.scan().to_arrow().column("id").to_pylist())
    return found


ALL = [0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25]


@pytest.mark.parametrize(
    ("where", "gone", "files_gone", "files_come"),
    [
        ("id = 11", [11], 1, 1),
        ("id IN (0, 25)", [0, 25], 2, 2),
        ("p = 'a'", [0, 2, 4, 10, 12, 14, 20, 22, 24], 3, 0),
        ("id < 6", [0, 1, 2, 3, 4, 5], 2, 0),
        ("id >= 24", [24, 25], 2, 2),
        ("x IS NULL", [4, 14, 24], 3, 1),
        ("TRUE", ALL, 6, 0),
        (pc.field("id") == 11, [11], 1, 1),
    ],
)
def test_only_files_with_a_match_are_rewritten(
    table: Table, where: str, gone: list[int], files_gone: int, files_come: int
) -> None:
    before = names(table)
    snapshot = table.delete(where=where)
    assert snapshot is not None
    assert snapshot.commit_kind is CommitKind.OVERWRITE
    assert snapshot.delta_record_count == -len(gone)
    assert snapshot.total_record_count == len(ALL) - len(gone)
    assert ids(table) == [number for number in ALL if number not in gone]
    assert (len(before - names(table)), len(names(table) - before)) == (files_gone, files_come)
    # What was there before is still there.
    assert table.scan(version=3).count() == len(ALL)


@pytest.mark.parametrize("where", ["id = 7", "FALSE", "p = 'z'", "x > 100", "x <> 1"])
def test_nothing_to_delete_is_no_commit(table: Table, where: str) -> None:
    before = names(table)
    assert table.delete(where=where) is None
    assert len(table.snapshots()) == 3
    assert names(table) == before


def test_a_wrong_condition_changes_nothing(table: Table) -> None:
    for where in ("zz = 1", "id = ", "p = 1 2"):
        with pytest.raises(LakeletError):
            table.delete(where=where)
    assert ids(table) == ALL


def test_files_of_an_older_schema_are_rewritten_in_the_new_one(table: Table) -> None:
    table.rename_column("x", "y")
    table.add_column("note", "STRING", default="new")
    table.delete(where="id = 11 OR (note IS NULL AND id = 13)")
    assert ids(table) == [number for number in ALL if number not in (11, 13)]
    assert table.scan(where="id = 15").to_arrow().to_pylist() == [{"id": 15, "p": "b", "y": 1.0, "note": None}]


def test_with_a_user_and_identifier_it_happens_once(table: Table) -> None:
    first = table.delete(where="id = 11", commit_user="job", commit_identifier=1)
    assert first is not None
    table.write([{"id": 11, "p": "a", "x": 1.0}])
    again = table.delete(where="id = 11", commit_user="job", commit_identifier=1)
    assert again is not None
    assert again.id == first.id
    assert 11 in ids(table)


def test_files_that_metadata_decides_are_not_read() -> None:
    store = CountingStore(MemoryStore())
    lake = Lake(store)
    lake.create_database("d")
    table = lake.create_table("d.t", [("id", "BIGINT"), ("p", "STRING")], partitioned_by=["p"])
    for number in range(6):
        table.write([{"id": number, "p": "ab"[number % 2]}])
    store.reset()
    table.delete(where="p = 'a' OR id = 5")
    assert not [path for _, path in store.log if path.endswith(".parquet")]
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == [1, 3]
