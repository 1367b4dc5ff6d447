"""Every value of every type is one value in every file format: it comes back as it was written, or its write is refused.

Values that a format might take for one another are among them: text that differs in trailing blanks, bytes that differ in
trailing zeros, zeros of both signs, the first and the last moments.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakelet
from lakelet.errors import InvalidError
from lakelet.format.data_file_format import WriteSettings
from lakelet.format.data_files import data_file_format
from lakelet.model.arrow_types import arrow_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field, renumber
from lakelet.storage.memory import MemoryStore

FORMATS = ("parquet", "orc", "avro")
_BLANKS = st.text(" a\t\x00é", max_size=4)
_BYTES = st.binary(max_size=3) | st.sampled_from([b"a", b"a\0", b"a\0\0", b"a ", b""])
_MILLIS = st.integers(-62135596800_000, 253402300799_999) | st.integers(-3000, 3000)
_MICROS = st.integers(-62135596800_000_000, 253402300799_999_999) | st.integers(-3_000_000, 3_000_000)
_NANOS = st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-3_000_000_000, 3_000_000_000)


def _whole(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    return st.integers(-(10**digits) + 1, 10**digits - 1).map(
        lambda unscaled: Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale))
    )


# How values are drawn, in Arrow's own numbers where Python has no value for all of them.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": _whole(8),
    "SMALLINT": _whole(16),
    "INT": _whole(32),
    "BIGINT": _whole(64),
    "FLOAT": st.floats(width=32) | st.sampled_from([0.0, -0.0]),
    "DOUBLE": st.floats() | st.sampled_from([0.0, -0.0]),
    "DECIMAL(5, 2)": _decimals(5, 2),
    "DECIMAL(18, 18)": _decimals(18, 18),
    "DECIMAL(38, 10)": _decimals(38, 10),
    "CHAR(4)": _BLANKS,
    "VARCHAR(4)": _BLANKS,
    "STRING": _BLANKS | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    "BINARY(3)": _BYTES,
    "VARBINARY(3)": _BYTES,
    "BYTES": _BYTES,
    "DATE": st.dates().map(lambda day: day.toordinal() - dt.date(1970, 1, 1).toordinal()),
    "TIME(0)": st.integers(0, 86399).map(lambda second: second * 1000),
    "TIME(3)": st.integers(0, 86399_999),
    "TIMESTAMP(0)": _MILLIS.map(lambda value: value // 1000 * 1000),
    "TIMESTAMP(3)": _MILLIS,
    "TIMESTAMP(6)": _MICROS,
    "TIMESTAMP(9)": _NANOS,
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": _MILLIS,
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": _MICROS,
    "TIMESTAMP(9) WITH LOCAL TIME ZONE": _NANOS,
}
_NESTED = ("{}", "ARRAY<{}>", "MAP<STRING, {}>", "ROW<a INT, b {}>")


def _wrapped(value: Any, nesting: str) -> Any:
    match nesting:
        case "ARRAY<{}>":
            return [value, None]
        case "MAP<STRING, {}>":
            return [("k", value)]
        case "ROW<a INT, b {}>":
            return {"a": 1, "b": value}
        case _:
            return value


def _written(file_format: str, fields: list[Field], table: pa.Table) -> pa.Table:
    store = MemoryStore()
    with store.open_output("t/f") as output:
        writer = data_file_format(file_format).open_writer(output, fields, WriteSettings(), without_ranges=frozenset())
        writer.write(table)
        writer.close()
    names = [field.name for field in fields]
    return pa.Table.from_batches(data_file_format(file_format).read(store, "t/f", fields, names, batch_rows=100))


def _bits(column: pa.ChunkedArray) -> list[str]:
    """Values as text in which NaN equals itself and zeros of both signs differ."""
    return [str(value) for value in column]


@pytest.mark.parametrize("type_text", VALUES)
@pytest.mark.parametrize("file_format", FORMATS)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_a_file_gives_values_back_or_refuses_them(file_format: str, type_text: str, data: st.DataObject) -> None:
    nesting = data.draw(st.sampled_from(_NESTED), label="nesting")
    values = data.draw(st.lists(st.none() | VALUES[type_text], min_size=1, max_size=8), label="values")
    fields = [Field(0, "c", renumber(parse_type(nesting.format(type_text)), 1)[0])]
    table = pa.table([[_wrapped(value, nesting) for value in values]], schema=arrow_schema(fields))
    try:
        found = _written(file_format, fields, table)
    except InvalidError:
        assert "TIMESTAMP" in type_text
        return
    assert _bits(found.column("c")) == _bits(table.column("c"))


_KEYS: dict[str, list[Any]] = {
    "CHAR(5)": ["a", "a ", "a  ", " a", "", "     ", "ab\t "],
    "VARCHAR(5)": ["a", "a ", "a  ", " a", "", "     ", "a\0"],
    "STRING": ["a", "a ", "A", "a\0", ""],
    "BINARY(3)": [b"a", b"a\0", b"a\0\0", b"a ", b""],
    "BYTES": [b"a", b"a\0", b""],
    "FLOAT": [0.0, -0.0, float("nan"), float("inf")],
    "DOUBLE": [0.0, -0.0, float("nan"), 5e-324],
    "DECIMAL(38, 38)": [Decimal("0." + "9" * 38), Decimal("-0." + "9" * 38), Decimal("0." + "0" * 38)],
    "TIME(3)": [dt.time(0), dt.time(0, 0, 0, 1000), dt.time(23, 59, 59, 999000)],
    "DATE": [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1582, 10, 10)],
    "TIMESTAMP(6)": [
        dt.datetime(1969, 12, 31, 23, 59, 59),
        dt.datetime(1970, 1, 1),
        dt.datetime(1970, 1, 1, 0, 0, 0, 1),
    ],
}


@pytest.mark.parametrize("type_text", _KEYS)
@pytest.mark.parametrize("file_format", FORMATS)
def test_keys_stay_apart_in_a_table_whose_format_changes(tmp_path: Path, file_format: str, type_text: str) -> None:
    lake = lakelet.connect(str(tmp_path))
    lake.create_database("db")
    table = lake.create_table(
        "db.t", [("k", f"{type_text} NOT NULL"), ("v", "INT")], primary_key=["k"], options={"bucket": "1"}
    )
    keys = _KEYS[type_text]
    table.write([{"k": key, "v": 0} for key in keys])
    table.set_options({"file.format": file_format})
    for number, key in enumerate(keys):
        table.write([{"k": key, "v": number}])
    table.compact(full=True)
    found = table.scan().to_arrow()
    assert sorted(zip(map(repr, found["k"].to_pylist()), found["v"].to_pylist(), strict=True)) == sorted(
        (repr(key), number) for number, key in enumerate(keys)
    )
    for key in keys:
        row = table.get({"k": key})
        assert row is not None
        assert repr(row["k"]) == repr(key)
