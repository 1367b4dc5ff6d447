"""The partitions that a compaction covers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.unit.versioned_table import HOUR_MS, SetClock


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def table(clock: SetClock) -> Table:
    lake = Lake(MemoryStore(), clock=clock)
    lake.create_database("d")
    made = lake.create_table(
        "d.t",
        [("id", "INT"), ("p", "INT"), ("q", "STRING")],
        primary_key=["id", "p", "q"],
        partitioned_by=["p", "q"],
        options={"bucket": "1", "write-only": "true"},
    )
    for _ in range(2):
        made.write([{"id": 1, "p": p, "q": q} for p in (1, 2) for q in "ab"])
    return made


def compacted(table: Table, **scope: Any) -> list[str]:
    table.compact(full=True, **scope)
    return sorted("".join(part[2:] for part in path.split("/")[2:4]) for path, file in table.files() if file.level)


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ({"partition": {"p": 1}}, ["1a", "1b"]),
        ({"partition": [{"p": "1", "q": "a"}, {"p": 2, "q": "b"}]}, ["1a", "2b"]),
        ({"partition": []}, []),
        ({"where": "p = 2 OR q = 'a'"}, ["1a", "2a", "2b"]),
        ({"where": "p + 1 = 2"}, ["1a", "1b"]),
        ({"where": "p > 1", "partition": {"q": "a"}}, ["2a"]),
        ({}, ["1a", "1b", "2a", "2b"]),
    ],
)
def test_values_and_conditions(table: Table, scope: dict[str, Any], expected: list[str]) -> None:
    assert compacted(table, **scope) == expected


def test_idle_partitions(table: Table, clock: SetClock) -> None:
    assert compacted(table, idle_for="1 h") == []
    clock.now += 3 * HOUR_MS
    table.write([{"id": 2, "p": 1, "q": "b"}])
    assert compacted(table, idle_for=timedelta(hours=2), where="p = 1") == ["1a"]
    assert compacted(table, idle_for="2 h") == ["1a", "2a", "2b"]


def test_options_for_once(table: Table) -> None:
    table.compact(full=True, options={"num-levels": "3"})
    assert {file.level for _, file in table.files()} == {2}
    assert "num-levels" not in table.options
    with pytest.raises(InvalidError, match="unknown table option 'num-level'"):
        table.compact(options={"num-level": "3"})


@pytest.mark.parametrize("where", ["id = 1", "nothing = 1", "p =", ""])
def test_conditions_that_are_none(table: Table, where: str) -> None:
    with pytest.raises(InvalidError):
        table.compact(where=where)


def test_tables_without_partitions() -> None:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    table = lake.create_table("d.t", [("id", "INT")])
    with pytest.raises(InvalidError, match="no partitions to choose from"):
        table.compact(where="id = 1")
    assert table.compact(idle_for="1 d") is None
