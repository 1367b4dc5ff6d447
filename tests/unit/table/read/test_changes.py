"""Changes between versions."""

from collections import Counter

import pytest

from lakelet import InvalidError, Lake, NotFoundError, Table
from lakelet.storage.memory import MemoryStore


@pytest.fixture
def table() -> Table:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    return lake.create_table("d.t", [("id", "BIGINT NOT NULL"), ("p", "STRING")], partitioned_by=["p"])


def changes(table: Table, start: int, end: int | None = None) -> Counter[tuple[str, int]]:
    return Counter((row["_row_kind"], row["id"]) for row in table.changes(start, end).to_pylist())


def test_appends_are_insertions_in_their_order(table: Table) -> None:
    table.write([{"id": 1, "p": "a"}])
    table.write([{"id": 2, "p": "a"}, {"id": 1, "p": "a"}])
    assert table.changes(0).to_pylist() == [
        {"_row_kind": "+I", "id": 1, "p": "a"},
        {"_row_kind": "+I", "id": 2, "p": "a"},
        {"_row_kind": "+I", "id": 1, "p": "a"},
    ]
    assert changes(table, 1) == Counter([("+I", 2), ("+I", 1)])
    assert changes(table, 0, 1) == Counter([("+I", 1)])
    assert changes(table, 2) == changes(table, 0, 0) == Counter()


def test_an_overwrite_shows_only_what_differs(table: Table) -> None:
    table.write([{"id": 1, "p": "a"}, {"id": 2, "p": "a"}, {"id": 2, "p": "a"}, {"id": 9, "p": "b"}])
    table.write([{"id": 2, "p": "a"}, {"id": 3, "p": "a"}], mode="overwrite_partitions")
    assert changes(table, 1) == Counter([("-D", 1), ("-D", 2), ("+I", 3)])
    table.write([], mode="overwrite", partition={"p": "a"})
    assert changes(table, 2) == Counter([("-D", 2), ("-D", 3)])


def test_a_delete_shows_the_deleted_rows_only(table: Table) -> None:
    table.write([{"id": number, "p": "a"} for number in range(5)])
    table.delete(where="id = 3")
    assert changes(table, 1) == Counter([("-D", 3)])
    table.delete(where="p = 'a'")
    assert changes(table, 2) == Counter([("-D", number) for number in (0, 1, 2, 4)])


def test_columns_are_those_of_now(table: Table) -> None:
    table.write([{"id": 1, "p": "a"}])
    table.rename_column("id", "key")
    table.add_column("note", "STRING", first=True)
    found = table.changes(0)
    assert found.column_names == ["_row_kind", "note", "key", "p"]
    assert found.to_pylist() == [{"_row_kind": "+I", "note": None, "key": 1, "p": "a"}]


def test_ranges_are_checked(table: Table) -> None:
    assert table.changes(0).num_rows == 0
    table.write([{"id": 1, "p": "a"}])
    for start, end in ((1, 0), (-1, 1)):
        with pytest.raises(InvalidError, match="0 <= start <= end"):
            table.changes(start, end)
    with pytest.raises(NotFoundError, match="snapshot 2"):
        table.changes(0, 2)
