"""Plans that are kept between queries are those of the same version, columns and condition."""

import random
from pathlib import Path

import pyarrow as pa
import pytest

import lakelet
from lakelet.scan import kept_entries
from lakelet.scan.kept_entries import PlanName
from lakelet.table import Table

PARTITIONS = 40


@pytest.fixture
def table(tmp_path: Path) -> Table:
    lake = lakelet.connect(str(tmp_path))
    lake.create_database("d")
    made = lake.create_table("d.t", [("p", "INT"), ("k", "STRING"), ("v", "DOUBLE")], partitioned_by=["p"])
    made.write(rows(range(PARTITIONS)))
    return made


def rows(numbers: range) -> pa.Table:
    return pa.table(
        {
            "p": pa.array(numbers, pa.int32()),
            "k": [f"key {number:03}" for number in numbers],
            "v": [number / 2 for number in numbers],
        }
    )


def found(table: Table, where: str, **asked: object) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table.scan(where=where, **asked).to_arrow().to_pylist())  # type: ignore[arg-type]


def listed(column: str, numbers: list[int]) -> str:
    values = [f"'key {number:03}'" if column == "k" else str(number) for number in numbers]
    return f"{column} IN ({', '.join(values)})"


@pytest.mark.parametrize("column", ["p", "k", "v"])
@pytest.mark.parametrize("negated", [False, True])
def test_long_lists_that_differ_in_the_middle_are_two_conditions(table: Table, column: str, *, negated: bool) -> None:
    ends = [*range(12), *range(28, 40)]
    prefix = "NOT " if negated else ""
    for _ in range(2):
        for middle in (15, 20, 25):
            where = prefix + listed(column, sorted([*ends, middle]))
            assert found(table, where) == found(table, where, cache=False), where


@pytest.mark.parametrize("where", ["p = {}", "NOT p <> {}", "p = {} AND k IS NOT NULL", "p IS NULL OR p = {}"])
def test_a_condition_on_the_moment_is_decided_at_every_query(
    table: Table, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[object] = []
    monkeypatch.setattr(PlanName, "keep", lambda name, plan, files, manifests, deletes_rows: kept.append(name))
    moment = "CAST(random() * 0 + month(now()) AS INT)"
    for _ in range(2):
        found(table, where.format(moment))
    assert kept == []
    found(table, where.format("7"))
    assert kept


@pytest.mark.parametrize("seed", range(2))
def test_whatever_was_asked_before_the_rows_are_those_of_the_store(table: Table, seed: int) -> None:
    choose = random.Random(seed)
    conditions = [
        *(f"p {operator} {number}" for operator in ("=", "<", ">=", "<>") for number in (3, 20)),
        *(
            f"v {operator} {number}"
            for operator in ("=", "<", ">=")
            for number in ("2", "2.0", "-0.0", "'NaN'::DOUBLE")
        ),
        *(listed(column, choose.sample(range(PARTITIONS), 30)) for column in ("p", "k", "v") for _ in range(3)),
        "k LIKE 'key 00%'",
        "k LIKE 'key !_0%' ESCAPE '!'",
        "p IS NULL",
        "p + 1 = 5",
        "(p = 1 OR k = 'key 002') AND NOT v > 3",
    ]
    for _ in range(25):
        if choose.random() < 0.1:
            table.write(rows(range(start := choose.randrange(PARTITIONS), start + 3)))
        if choose.random() < 0.05:
            table.delete(where=f"p = {choose.randrange(PARTITIONS)}")
        where = choose.choice(conditions)
        assert found(table, where) == found(table, where, cache=False), where
        assert table.scan(where=where).count() == table.scan(where=where, cache=False).count()


def changed(table: Table, step: int, rng: random.Random) -> None:
    """One change of the table: most only add files, some remove or replace them."""
    numbers = range(rng.randrange(PARTITIONS), PARTITIONS + 3)
    match rng.choice(["append", "append", "append", "delete", "overwrite", "rollback", "manifests"]):
        case "append":
            table.write(rows(numbers[:: rng.randrange(1, 9)]))
        case "delete":
            table.delete(where=f"p = {rng.choice(numbers)}")
        case "overwrite":
            table.write(rows(numbers[:2]), mode="overwrite_partitions")
        case "rollback" if step > 2:
            table.rollback(table.snapshots()[-2].id)
        case _:
            table.compact_manifests()


@pytest.mark.parametrize("seed", range(4))
def test_entries_that_continue_those_of_an_earlier_version_are_the_ones_of_the_store(table: Table, seed: int) -> None:
    rng = random.Random(seed)
    for step in range(24):
        changed(table, step, rng)
        for where in (None, "p >= 20", f"p = {rng.randrange(PARTITIONS)}", "v > 7.5"):
            plans = [table.scan(where=where, cache=cache).plan() for cache in (True, False)]
            paths = [[path for split in plan.splits for path in split.paths] for plan in plans]
            assert paths[0] == paths[1], (step, where)
            assert plans[0].snapshot_id == plans[1].snapshot_id
            assert {split.snapshot_id for split in plans[0].splits} <= {plans[0].snapshot_id}


def test_a_commit_has_only_its_own_files_indexed(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.set_options({"write-only": "true"})
    for number in (1, 2):
        table.scan(where=f"p = {number}").plan()
    indexed: list[int] = []
    index = kept_entries._Part.of
    monkeypatch.setattr(
        kept_entries._Part, "of", lambda entries, schema: indexed.append(entries.num_rows) or index(entries, schema)
    )
    for step in range(40):
        table.write(rows(range(3, 5)))
        assert table.scan(where="p = 3").plan().files == step + 2
    # The parts of many commits, or merged manifests, are indexed anew from time to time.
    assert sum(count == 2 for count in indexed) > 25
    assert len(indexed) <= 45
