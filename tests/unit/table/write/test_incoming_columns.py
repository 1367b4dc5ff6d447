"""`write(evolve=True)`: columns and wider types that data brings along."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError
from lakelet.storage.memory import MemoryStore

WIDE = 2**40
MAPPED = pa.array([[("k", {"a": 1, "b": 2})]], pa.map_(pa.string(), pa.struct({"a": pa.int32(), "b": pa.int64()})))


@pytest.fixture
def lake() -> Lake:
    made = Lake(MemoryStore())
    made.create_database("d")
    return made


def types(lake: Lake) -> dict[str, str]:
    return {field.name: str(field.type) for field in lake.table("d.t").schema.fields}


ROWS = [{"id": 1, "new": "x"}]
FORMS = {
    "dicts": lambda: ROWS,
    "arrow": lambda: pa.Table.from_pylist(ROWS),
    "pandas": lambda: pd.DataFrame(ROWS),
    "polars": lambda: pl.DataFrame(ROWS),
    "reader": lambda: pa.Table.from_pylist(ROWS).to_reader(),
    "stream": lambda: iter([pa.Table.from_pylist(ROWS)]),
    "stream of dicts": lambda: iter([ROWS]),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("key", [[], ["id"]])
def test_columns_are_added(lake: Lake, form: str, key: list[str]) -> None:
    table = lake.create_table("d.t", [("id", "BIGINT")], primary_key=key, options={"bucket": "1", "bucket-key": "id"})
    table.write([{"id": 0}])
    with pytest.raises(InvalidError, match="'new'"):
        table.write(FORMS[form]())
    table.write(FORMS[form](), evolve=True)
    table.write([{"id": 2, "new": "y"}], evolve=True)
    found = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert found == [{"id": 0, "new": None}, {"id": 1, "new": "x"}, {"id": 2, "new": "y"}]
    assert table.schema.id == 1


@pytest.mark.parametrize(
    ("declared", "values", "becomes"),
    [
        ("INT", pa.array([WIDE]), "BIGINT"),
        ("INT", pa.array([7], pa.int64()), "INT"),
        ("TINYINT", pa.array([300], pa.int16()), "SMALLINT"),
        ("FLOAT", pa.array([1.1]), "DOUBLE"),
        ("FLOAT", pa.array([1.5]), "FLOAT"),
        ("DECIMAL(5, 2)", pa.array([Decimal("1.2345")]), "DECIMAL(7, 4)"),
        ("DECIMAL(5, 2)", pa.array([Decimal("123456.7")]), "DECIMAL(8, 2)"),
        ("VARCHAR(3)", pa.array(["abcd"]), "STRING"),
        ("VARCHAR(3)", pa.array(["abc"]), "VARCHAR(3)"),
        ("BINARY(2)", pa.array([b"abc"]), "BYTES"),
        ("ROW<a INT>", pa.array([{"a": WIDE, "b": "x"}]), "ROW<`a` BIGINT, `b` STRING>"),
        ("ARRAY<INT>", pa.array([[WIDE]]), "ARRAY<BIGINT>"),
        ("MAP<STRING, ROW<a INT>>", MAPPED, "MAP<STRING, ROW<`a` INT, `b` BIGINT>>"),
    ],
)
def test_types_widen_where_values_need_it(lake: Lake, declared: str, values: pa.Array, becomes: str) -> None:
    table = lake.create_table("d.t", [("v", declared)])
    table.write(pa.table({"v": values}), evolve=True)
    assert types(lake)["v"] == becomes
    assert table.scan().count() == 1


@pytest.mark.parametrize(
    ("declared", "values"),
    [("BIGINT", pa.array(["x"])), ("INT", pa.array([1.5])), ("STRING", pa.array([1])), ("DATE", pa.array([1]))],
)
def test_nothing_is_narrowed_or_turned_into_another_kind(lake: Lake, declared: str, values: pa.Array) -> None:
    table = lake.create_table("d.t", [("v", declared)])
    with pytest.raises(InvalidError):
        table.write(pa.table({"v": values}), evolve=True)
    assert types(lake) == {"v": declared}


def test_streams_widen_by_their_types_alone(lake: Lake) -> None:
    table = lake.create_table("d.t", [("i", "INT"), ("s", "VARCHAR(3)")])
    table.write(iter([pa.table({"i": [WIDE], "s": ["abc"]}), pa.table({"i": [1], "s": ["x"]})]), evolve=True)
    assert types(lake) == {"i": "BIGINT", "s": "VARCHAR(3)"}
    assert table.scan().count() == 2


def test_a_column_that_tells_kinds_is_none_of_the_tables(lake: Lake) -> None:
    table = lake.create_table("d.t", [("id", "BIGINT")], primary_key=["id"])
    table.write(pa.table({"id": [1, 2], "v": [1, 2], "op": ["+I", "-D"]}), kinds="op", evolve=True)
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "v": 1}]


def test_writers_that_evolve_at_once_lose_nothing(lake: Lake) -> None:
    table = lake.create_table("d.t", [("id", "BIGINT")], primary_key=["id"], options={"bucket": "1"})
    failures: list[BaseException] = []

    def write(number: int) -> None:
        try:
            row: dict[str, Any] = {"id": number, "shared": number, f"own{number}": "x"}
            table.write([row], evolve=True, missing="keep")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert set(types(lake)) == {"id", "shared", "own0", "own1", "own2", "own3"}
    found = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    assert {number: (row["shared"], row[f"own{number}"]) for number, row in found.items()} == {
        number: (number, "x") for number in range(4)
    }


def test_a_stream_that_is_empty_changes_nothing(lake: Lake) -> None:
    table = lake.create_table("d.t", [("id", "BIGINT")])
    nothing: Iterator[pa.Table] = iter(())
    assert table.write(nothing, evolve=True) is None
    assert table.schema.id == 0
