"""One row by its key is the row that a look-up of many keys finds, and what is refused there is refused here."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakelet
from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError
from lakelet.table import Table

KEYS: dict[str, tuple[list[tuple[str, str]], list[tuple[Any, ...]]]] = {
    "BIGINT": ([("k", "BIGINT")], [(-(2**63),), (-1,), (0,), (2**63 - 1,)]),
    "TINYINT": ([("k", "TINYINT")], [(-128,), (0,), (127,)]),
    "text and number": ([("k", "STRING"), ("n", "INT")], [("", 0), ("a", 1), ("a", 2), ("é\0", 1), ("x" * 300, 1)]),
    "number and text": ([("n", "INT"), ("k", "STRING")], [(1, "a"), (1, "a\0"), (1, "a\0\0"), (2, "")]),
    "short text": ([("k", "VARCHAR(3)")], [("abc",), ("é",)]),
    "day and money": ([("d", "DATE"), ("m", "DECIMAL(12, 2)")], [(date(2026, 1, 1), Decimal("1.50"))]),
    "moment": ([("t", "TIMESTAMP(6)")], [(datetime(2026, 1, 1, 12, 0, 0, 5),), (datetime(1960, 1, 1),)]),
    "bytes": ([("k", "BYTES")], [(b"",), (b"\0",), (b"\xff\0",)]),
    "double": ([("k", "DOUBLE")], [(0.0,), (-0.0,), (1.5,)]),
}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = lakelet.connect(str(tmp_path))
    found.create_database("d")
    return found


def one_by_many(table: Table, key: dict[str, Any], columns: list[str] | None = None) -> dict[str, Any] | None:
    found: list[dict[str, Any]] = table.get_many([key], columns).to_pylist()
    return found[0] if found else None


@pytest.mark.parametrize("shape", KEYS)
@pytest.mark.parametrize("buckets", ["1", "3", "-1"])
def test_one_row_is_the_row_that_many_keys_find(lake: Lake, shape: str, buckets: str) -> None:
    columns, keys = KEYS[shape]
    names = [name for name, _ in columns]
    options = {"bucket": buckets} if buckets == "-1" else {"bucket": buckets, "write-only": "true"}
    table = lake.create_table("d.t", [*columns, ("v", "INT")], primary_key=names, options=options)
    rows = [dict(zip(names, key, strict=True)) for key in keys]
    table.write([{**row, "v": place} for place, row in enumerate(rows)])
    table.write([{**row, "v": 100 + place} for place, row in enumerate(rows[::2])])
    table.delete(rows[-1:])
    for _ in range(2):
        for place, row in enumerate(rows):
            found = table.get(row)
            assert repr(found) == repr(one_by_many(table, row))
            assert (found is None) == (place == len(rows) - 1)
            assert table.get(row, ["v"]) == one_by_many(table, row, ["v"])
    write_and_look(table, rows[0])


def write_and_look(table: Table, row: dict[str, Any]) -> None:
    """What is in memory is never an older row, nor one in the columns of before."""
    table.write([{**row, "v": 7}])
    assert table.get(row) == {**row, "v": 7}
    base = table.snapshots()[-1].id
    table.add_column("note", "STRING")
    assert table.get(row) == {**row, "v": 7, "note": None}
    table.write([{**row, "v": 8, "note": "x"}])
    assert table.get(row) == {**row, "v": 8, "note": "x"}
    table.rename_column("v", "w")
    assert table.get(row) == {**row, "w": 8, "note": "x"}
    table.rollback(base)
    assert table.get(row) == {**row, "w": 7, "note": None}
    table.write([{**row, "w": 9, "note": None}])
    assert table.get(row, ["w"]) == {"w": 9}
    table.delete([row])
    assert table.get(row) is None


@pytest.mark.parametrize(
    "key",
    [{"k": True}, {"k": 2**31}, {"k": 1.5}, {"k": "1"}, {"k": None}, {}, {"v": 1}, {"k": 1, "z": 2}, {"k": "\ud800"}],
    ids=str,
)
def test_what_is_no_key_is_refused_as_among_many(lake: Lake, key: dict[str, Any]) -> None:
    table = lake.create_table("d.t", [("k", "INT"), ("v", "INT")], primary_key=["k"], options={"bucket": "1"})
    table.write(pa.table({"k": pa.array([1], pa.int32()), "v": pa.array([1], pa.int32())}))
    with pytest.raises(InvalidError) as many:
        table.get_many([key])
    with pytest.raises(InvalidError) as one:
        table.get(key)
    assert str(one.value) == str(many.value)


def test_other_columns_of_a_key_are_ignored_and_numbers_without_loss_are_taken(lake: Lake) -> None:
    table = lake.create_table("d.t", [("k", "INT"), ("v", "INT")], primary_key=["k"], options={"bucket": "1"})
    table.write([{"k": 1, "v": 1}])
    assert table.get({"k": 1, "v": 99}) == {"k": 1, "v": 1}
    assert table.get({"k": 1.0}) == {"k": 1, "v": 1}


@pytest.mark.parametrize("engine", ["first-row", "deduplicate"])
def test_every_engine_gives_one_row_what_it_gives_many(lake: Lake, engine: str) -> None:
    options = {"bucket": "1", "merge-engine": engine}
    table = lake.create_table("d.t", [("k", "INT"), ("v", "INT"), ("w", "INT")], primary_key=["k"], options=options)
    table.write([{"k": 1, "v": 1, "w": None}, {"k": 2, "v": 5, "w": 5}])
    table.write([{"k": 1, "v": None, "w": 3}])
    for key in (1, 2, 3):
        assert table.get({"k": key}) == one_by_many(table, {"k": key})
