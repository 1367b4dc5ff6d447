"""A fallback branch for partitions that a table lacks."""

from collections.abc import Callable

import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError, NotFoundError
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.unit.versioned_table import SetClock

COLUMNS = [("id", "BIGINT"), ("p", "STRING"), ("v", "INT")]


def rows(p: str, *ids: int, v: int = 0) -> list[dict[str, object]]:
    return [{"id": id_, "p": p, "v": v} for id_ in ids]


def create(*, keyed: bool, partitioned: bool = True) -> tuple[Table, Table]:
    """A table and the branch that fills in for it."""
    lake = Lake(MemoryStore(), clock=SetClock())
    lake.create_database("d")
    table = lake.create_table(
        "d.t",
        COLUMNS,
        primary_key=["id", "p"] if keyed else [],
        partitioned_by=["p"] if partitioned else [],
        options={"write-only": "true"} | ({"bucket": "1"} if keyed else {}),
    )
    table.branches.create("late")
    table.set_options({"scan.fallback-branch": "late"})
    return table, table.on_branch("late")


@pytest.fixture(params=[False, True], ids=["append", "keyed"])
def both(request: pytest.FixtureRequest) -> tuple[Table, Table]:
    table, branch = create(keyed=request.param)
    for p in "bcd":
        branch.write(rows(p, 1, 2, v=9))
    table.write(rows("a", 1, 2, 3))
    table.write(rows("b", 7))
    return table, branch


def found(table: Table, where: str | None = None, **version: object) -> list[tuple[object, ...]]:
    read = table.scan(where=where, **version).to_arrow().to_pylist()  # type: ignore[arg-type]
    return sorted(tuple(row.values()) for row in read)


MAIN = [(1, "a", 0), (2, "a", 0), (3, "a", 0), (7, "b", 0)]
ALL = sorted([*MAIN, (1, "c", 9), (2, "c", 9), (1, "d", 9), (2, "d", 9)])


def test_partitions_that_are_missing_come_from_the_branch(both: tuple[Table, Table]) -> None:
    table, branch = both
    assert found(table) == ALL
    assert found(branch) == sorted((id_, p, 9) for id_ in (1, 2) for p in "bcd")
    assert found(table, "p = 'c'") == [(1, "c", 9), (2, "c", 9)]
    assert found(table, "v = 9 AND id = 2") == [(2, "c", 9), (2, "d", 9)]


def test_a_partition_that_is_there_is_complete_whatever_matches(both: tuple[Table, Table]) -> None:
    table, _ = both
    # The branch has such rows of partition b, but that is main's.
    assert found(table, "p = 'b' AND v = 9") == []


def test_columns_counts_and_limits(both: tuple[Table, Table]) -> None:
    table, _ = both
    assert table.scan().count() == 8
    assert table.scan(where="v = 9").count() == 4
    assert table.scan(where="p = 'd'").count() == 2
    assert table.scan(limit=6).count() == 6
    for limit in range(9):
        assert table.scan(limit=limit).to_arrow().num_rows == limit
    assert table.scan(limit=3, where="v = 9").to_arrow().num_rows == 3
    assert table.scan(columns=["v"]).to_arrow().column("v").to_pylist().count(9) == 4
    assert sum(batch.num_rows for batch in table.scan().to_batches()) == 8


def test_splits_are_read_one_by_one(both: tuple[Table, Table]) -> None:
    table, _ = both
    scan = table.scan()
    plan = scan.plan()
    assert {split.branch for split in plan.splits} == {None, "late"}
    read = [row for split in plan.splits for batch in scan.read(split) for row in batch.to_pylist()]
    assert sorted(tuple(row.values()) for row in read) == ALL
    assert all(batch.schema == scan.arrow_schema for split in plan.splits for batch in scan.read(split))
    assert plan.files_total == 5


def test_duckdb_reads_it_too(both: tuple[Table, Table]) -> None:
    table, _ = both
    relation = table.scan().to_duckdb()
    assert relation.filter("v = 9").aggregate("count(*)").fetchall() == [(4,)]


def test_a_partition_that_is_emptied_falls_back_again(both: tuple[Table, Table]) -> None:
    table, _ = both
    table.write([], mode="overwrite", partition={"p": "b"})
    assert found(table, "p = 'b'") == [(1, "b", 9), (2, "b", 9)]


def test_an_empty_table_is_all_fallback(both: tuple[Table, Table]) -> None:
    table, branch = create(keyed=False)
    assert found(table) == []
    branch.write(rows("a", 1))
    assert found(table) == [(1, "a", 0)]
    assert table.scan().count() == 1


def test_without_partitions_it_is_the_one_or_the_other() -> None:
    table, branch = create(keyed=True, partitioned=False)
    branch.write(rows("x", 1, 2))
    assert (found(table), table.get({"id": 1, "p": "x"})) == ([(1, "x", 0), (2, "x", 0)], {"id": 1, "p": "x", "v": 0})
    table.write(rows("x", 3))
    assert (found(table), table.get({"id": 1, "p": "x"})) == ([(3, "x", 0)], None)


def test_rows_by_key() -> None:
    table, branch = create(keyed=True)
    for p in "bcd":
        branch.write(rows(p, 1, 2, v=9))
    table.write(rows("a", 1, 2, 3))
    table.write(rows("b", 7))
    keys = [{"id": id_, "p": p} for p in "dbac" for id_ in (2, 9, 1)]
    got = table.get_many(keys).to_pylist()
    assert [(row["id"], row["p"], row["v"]) for row in got] == [
        (2, "d", 9),
        (1, "d", 9),
        (2, "a", 0),
        (1, "a", 0),
        (2, "c", 9),
        (1, "c", 9),
    ]
    assert table.get({"id": 1, "p": "c"}, ["v"]) == {"v": 9}
    assert table.get({"id": 1, "p": "b"}) is None
    assert table.get_many([]).num_rows == 0


def test_keys_and_buckets_may_differ() -> None:
    """A table without a key that a branch with one fills in for, as where a stream comes before the batch."""
    table, branch = create(keyed=False)
    branch.home.store.put(
        branch.home.paths.schema(0),
        create(keyed=True)[0].home.store.get("d.db/t/schema/schema-0"),
    )
    branch.write(rows("c", 1, v=1))
    branch.write(rows("c", 1, v=2))
    table.write(rows("a", 1))
    assert found(table) == [(1, "a", 0), (1, "c", 2)]
    assert table.scan().count() == 2


def test_an_older_version_is_read_beside_what_the_branch_was_then(both: tuple[Table, Table]) -> None:
    table, branch = both
    branch.write(rows("e", 5, v=9))
    table.write(rows("a", 4))
    assert found(table, version=2) == ALL
    assert found(table, version=3) == sorted([*ALL, (4, "a", 0), (5, "e", 9)])
    table.tags.create("two", 2)
    branch.tags.create("two", 1)
    assert found(table, tag="two") == MAIN


def test_writes_changes_and_files_are_of_the_table_alone(both: tuple[Table, Table]) -> None:
    table, branch = both
    assert len(table.files()) == 2
    assert set(table.changes(0).column("p").to_pylist()) == {"a", "b"}
    table.delete(where="v = 9")
    assert found(branch) == sorted((id_, p, 9) for id_ in (1, 2) for p in "bcd")
    assert found(table) == ALL


CHANGES: dict[str, Callable[[Table], object]] = {
    "other columns": lambda branch: branch.add_column("n", "INT"),
    "other types": lambda branch: branch.change_type("v", "BIGINT"),
    "other names": lambda branch: branch.rename_column("v", "w"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_branch_with_other_columns_is_refused_by_name(name: str) -> None:
    table, branch = create(keyed=False)
    CHANGES[name](branch)
    with pytest.raises(
        InvalidError, match=r"branch 'late' cannot fill in for branch 'main' .* columns and partition keys"
    ):
        table.scan()
    assert found(branch) == []


def test_a_branch_that_does_not_exist_cannot_fill_in() -> None:
    table, branch = create(keyed=False)
    with pytest.raises(NotFoundError, match="branch 'none' is not in"):
        table.set_options({"scan.fallback-branch": "none"})
    branch.home.store.delete_folder(branch.home.paths.branch_root)
    with pytest.raises(NotFoundError, match="branch 'late' is not in"):
        table.scan()
    table.set_options({"scan.fallback-branch": ""})
    assert found(table) == []


def test_rows_of_other_keys_are_not_found_by_key() -> None:
    table, branch = create(keyed=True)
    branch.home.store.put(branch.home.paths.schema(0), create(keyed=False)[0].home.store.get("d.db/t/schema/schema-0"))
    with pytest.raises(InvalidError, match="rows cannot be found by key"):
        table.get({"id": 1, "p": "a"})


def test_the_branch_cannot_be_deleted(both: tuple[Table, Table]) -> None:
    table, _ = both
    with pytest.raises(InvalidError, match=r"reset 'scan\.fallback-branch' first"):
        table.branches.delete("late")
    table.reset_options(["scan.fallback-branch"])
    table.branches.delete("late")
    assert found(table) == MAIN
