"""Values of every type, at the edges and where one might be taken for another, as Arrow's own numbers where Python has none."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

_BLANKS = st.text(" a\t\x00é", max_size=4)
_BYTES = st.binary(max_size=3) | st.sampled_from([b"a", b"a\0", b"a\0\0", b"a ", b""])
_MILLIS = st.integers(-62135596800_000, 253402300799_999) | st.integers(-3000, 3000)
_MICROS = st.integers(-62135596800_000_000, 253402300799_999_999) | st.integers(-3_000_000, 3_000_000)
# Without the first and the last days, of whose texts DuckDB makes no timestamp.
_NANOS = st.integers(-(2**63) + 2**48, 2**63 - 2**48) | st.integers(-3_000_000_000, 3_000_000_000)


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
NESTED = ("{}", "ARRAY<{}>", "MAP<STRING, {}>", "ROW<a INT, b {}>")


def wrapped(value: Any, nesting: str) -> Any:
    """A value inside of a nested one."""
    match nesting:
        case "ARRAY<{}>":
            return [value, None]
        case "MAP<STRING, {}>":
            return [("k", value)]
        case "ROW<a INT, b {}>":
            return {"a": 1, "b": value}
        case _:
            return value


def bits(column: pa.ChunkedArray | pa.Array) -> list[str]:
    """Values as text in which NaN equals itself and zeros of both signs differ."""
    return [str(value) for value in column]
