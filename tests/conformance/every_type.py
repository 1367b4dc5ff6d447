"""Columns of every type with the values at the edges of each, NULL among them.

`columns_for` and `rows_for` take the file format and leave out what its Java writer cannot hold.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np

from tests.conformance.tables import Rows

LONG = "straße-" * 700
_WIDE = "9" * 28 + "." + "9" * 10
UNICODE = "naïve 数据 🦆 \u0000 \ufffd \U0010ffff"


def _at(text: str, unit: str) -> int:
    return int(np.datetime64(text, unit).astype(np.int64))


_MS = [_at(t, "ms") for t in ("0001-01-01T00:00:00.000", "9999-12-31T23:59:59.999", "1969-12-31T23:59:59.001", "2024-02-29T12:00:00.5")]
_US = [_at(t, "us") for t in ("0001-01-01T00:00:00", "9999-12-31T23:59:59.999999", "1969-12-31T23:59:59.000001", "1582-10-10T01:02:03")]
_NS = [
    _at(t, "ns")
    for t in ("1677-09-21T00:12:44", "2262-04-11T23:47:16.854775807", "1969-12-31T23:59:59.000000001", "2000-01-01T00:00:00.123456789")
]
_S = [value // 1000 * 1000 for value in _MS]

# Name, type, values besides NULL.
_ATOMIC: list[tuple[str, str, list[Any]]] = [
    ("yes", "BOOLEAN", [True, False]),
    ("tiny", "TINYINT", [-(2**7), 2**7 - 1, 0]),
    ("small", "SMALLINT", [-(2**15), 2**15 - 1, 0]),
    ("int", "INT", [-(2**31), 2**31 - 1, 0]),
    ("big", "BIGINT", [-(2**63), 2**63 - 1, 0]),
    ("float", "FLOAT", [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 3.4028235e38, 1e-45, 1.1]),
    ("double", "DOUBLE", [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1.7976931348623157e308, 5e-324, 0.1]),
    ("dec9", "DECIMAL(9, 2)", [Decimal("-9999999.99"), Decimal("9999999.99"), Decimal("0.00")]),
    ("dec18", "DECIMAL(18, 4)", [Decimal("-99999999999999.9999"), Decimal("99999999999999.9999"), Decimal("1.0000")]),
    ("dec38", "DECIMAL(38, 10)", [Decimal("-" + _WIDE), Decimal(_WIDE), Decimal("-0.0000000001")]),
    ("dec5", "DECIMAL(5, 5)", [Decimal("-0.99999"), Decimal("0.00001")]),
    ("text", "STRING", ["", LONG, UNICODE, "x" * 16, "x" * 17, " ", "NULL"]),
    ("char", "CHAR(5)", ["abcde", "äöüßé", "ab"]),
    ("varchar", "VARCHAR(20)", ["", "z" * 20, "数" * 20]),
    ("binary", "BINARY(4)", [b"\x00\x00\x00\x00", b"\xff\xfe\x80\x7f"]),
    ("varbinary", "VARBINARY(9)", [b"", b"\x00", b"123456789"]),
    ("bytes", "BYTES", [b"", bytes(range(256)) * 20]),
    ("date", "DATE", [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1969, 12, 31), datetime.date(1582, 10, 10)]),
    ("time", "TIME(3)", [datetime.time(0), datetime.time(23, 59, 59, 999000), datetime.time(12, 30, 1, 7000)]),
    ("time0", "TIME(0)", [datetime.time(0), datetime.time(23, 59, 59)]),
    ("ts0", "TIMESTAMP(0)", _S),
    ("ts3", "TIMESTAMP(3)", _MS),
    ("ts6", "TIMESTAMP(6)", _US),
    ("ltz0", "TIMESTAMP(0) WITH LOCAL TIME ZONE", _S),
    ("ltz3", "TIMESTAMP(3) WITH LOCAL TIME ZONE", _MS),
    ("ltz6", "TIMESTAMP(6) WITH LOCAL TIME ZONE", _US),
]
_NANOS: list[tuple[str, str, list[Any]]] = [
    ("ts9", "TIMESTAMP(9)", _NS),
    ("ltz9", "TIMESTAMP(9) WITH LOCAL TIME ZONE", _NS),
]
_NESTED: list[tuple[str, str, list[Any]]] = [
    ("ints", "ARRAY<INT>", [[], [None], [1, None, -(2**31)]]),
    ("texts", "ARRAY<STRING NOT NULL>", [["", LONG, UNICODE], []]),
    ("moments", "ARRAY<TIMESTAMP(6)>", [[_US[0], None, _US[1]]]),
    ("prices", "MAP<STRING, DECIMAL(20, 3)>", [[], [("a", Decimal("1.500")), ("", None)]]),
    ("codes", "MAP<INT, BYTES>", [[(1, b"\x00"), (-1, None)], []]),
    ("point", "ROW<x DOUBLE, y DECIMAL(9, 2), at TIMESTAMP(3)>", [{"x": -0.0, "y": None, "at": _MS[2]}, {"x": None, "y": None, "at": None}]),
    ("matrix", "ARRAY<ARRAY<SMALLINT>>", [[], [[], None, [1, None]], [[-(2**15)]]]),
    (
        "people",
        "ARRAY<ROW<name STRING, tags ARRAY<STRING>>>",
        [[{"name": "a", "tags": None}, None, {"name": None, "tags": ["x", None]}], []],
    ),
    (
        "deep",
        "ROW<a ROW<b ARRAY<ROW<c MAP<STRING, ROW<d DATE, e ARRAY<BIGINT>>>>>, f BOOLEAN>, g STRING>",
        [
            {"a": {"b": [{"c": [("k", {"d": datetime.date(1969, 1, 1), "e": [1, None]}), ("n", None)]}, None], "f": True}, "g": ""},
            {"a": {"b": [{"c": None}], "f": None}, "g": None},
            {"a": None, "g": "only"},
        ],
    ),
    ("lists", "MAP<STRING, ARRAY<ROW<v INT>>>", [[("a", [{"v": 1}, {"v": None}, None]), ("b", []), ("c", None)]]),
    ("counts", "MULTISET<STRING>", [[("a", 1), ("b", 3)], []]),
    ("days", "MAP<DATE, TIMESTAMP(6) WITH LOCAL TIME ZONE>", [[(datetime.date(1969, 12, 31), _US[2])]]),
]


def columns(*, nanos: bool = True, multiset: bool = True, nested: bool = True) -> list[tuple[str, str, list[Any]]]:
    """Name, type and values of every column asked for."""
    found = [*_ATOMIC, *(_NANOS if nanos else []), *(_NESTED if nested else [])]
    return [column for column in found if multiset or "MULTISET" not in column[1]]


def rows(chosen: list[tuple[str, str, list[Any]]]) -> Rows:
    """Rows in which every column takes each of its values, and NULL, at least once."""
    count = 1 + max(len(values) for _, _, values in chosen)
    made: Rows = [{"id": number} for number in range(count + 1)]
    for name, _, values in chosen:
        for number, row in enumerate(made[:-1]):
            # The last row is NULL throughout; the others take NULL in turn.
            row[name] = [*values, None][number % (len(values) + 1)]
    return made
