"""Columns of every type with the values at the edges of each, NULL among them."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np

from tests.conformance.tables import Rows

LONG = "straße-" * 700
UNICODE = "naïve 数据 🦆 \u0000 \ufffd \U0010ffff"
_WIDE = "9" * 28 + "." + "9" * 10

# Name, type, values besides NULL.
Column = tuple[str, str, list[Any]]

_MOMENTS = {
    "ms": ("0001-01-01T00:00:00.000", "9999-12-31T23:59:59.999", "1969-12-31T23:59:59.001", "2024-02-29T12:00:00.500"),
    "us": ("0001-01-01T00:00:00", "9999-12-31T23:59:59.999999", "1969-12-31T23:59:59.000001", "1582-10-10T01:02:03"),
    "ns": (
        "1677-09-21T00:12:44",
        "2262-04-11T23:47:16.854775807",
        "1969-12-31T23:59:59.000000001",
        "2000-01-01T00:00:00.123456789",
    ),
}
# Java Paimon itself gives other moments back from ORC files: before 1582, and before 1970 with a fraction of a second.
_ORC_MOMENTS = {
    "ms": ("1700-01-01T00:00:00.000", "2262-01-01T23:59:59.999", "1969-12-31T23:59:59.000", "1970-01-01T00:00:00.001"),
    "us": ("1700-01-01T00:00:00", "2262-01-01T23:59:59.999999", "1969-12-31T23:59:59", "1970-01-01T00:00:00.000001"),
    "ns": (
        "1700-01-01T00:00:00",
        "2262-01-01T23:59:59.999999999",
        "1969-12-31T23:59:59",
        "2000-01-01T00:00:00.123456789",
    ),
}


def columns(file_format: str, *, nanos: bool = True, multiset: bool = True) -> list[Column]:
    """Every column that files of the format can hold."""
    moments = {
        unit: [int(np.datetime64(text, unit).astype(np.int64)) for text in texts]
        for unit, texts in (_ORC_MOMENTS if file_format == "orc" else _MOMENTS).items()
    }
    found = [*_ATOMIC, *_timestamps(moments), *_nested(moments)]
    # Java refuses nanoseconds in Avro.
    found += _nanoseconds(moments) if nanos and file_format != "avro" else []
    return found + (_MULTISETS if multiset else [])


def rows(chosen: list[Column]) -> Rows:
    """Rows with an `id`, in which every column takes each of its values, and NULL, at least once."""
    count = 1 + max(len(values) for _, _, values in chosen)
    made: Rows = [{"id": number} for number in range(count + 1)]
    for name, _, values in chosen:
        # The last row is NULL throughout; the others take NULL in turn.
        for number, row in enumerate(made[:-1]):
            row[name] = [*values, None][number % (len(values) + 1)]
    return made


_ATOMIC: list[Column] = [
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
    (
        "date",
        "DATE",
        [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1969, 12, 31), datetime.date(1582, 10, 10)],
    ),
    ("time", "TIME(3)", [datetime.time(0), datetime.time(23, 59, 59, 999000), datetime.time(12, 30, 1, 7000)]),
    ("time0", "TIME(0)", [datetime.time(0), datetime.time(23, 59, 59)]),
]
_MULTISETS: list[Column] = [("counts", "MULTISET<STRING>", [[("a", 1), ("b", 3)], []])]


def _timestamps(moments: dict[str, list[int]]) -> list[Column]:
    seconds = [value // 1000 * 1000 for value in moments["ms"]]
    kinds = [(0, seconds), (3, moments["ms"]), (6, moments["us"])]
    plain: list[Column] = [(f"ts{digits}", f"TIMESTAMP({digits})", values) for digits, values in kinds]
    zoned: list[Column] = [
        (f"ltz{digits}", f"TIMESTAMP({digits}) WITH LOCAL TIME ZONE", values) for digits, values in kinds
    ]
    return plain + zoned


def _nanoseconds(moments: dict[str, list[int]]) -> list[Column]:
    return [("ts9", "TIMESTAMP(9)", moments["ns"]), ("ltz9", "TIMESTAMP(9) WITH LOCAL TIME ZONE", moments["ns"])]


def _nested(moments: dict[str, list[int]]) -> list[Column]:
    ms, us = moments["ms"], moments["us"]
    return [
        ("ints", "ARRAY<INT>", [[], [None], [1, None, -(2**31)]]),
        ("texts", "ARRAY<STRING NOT NULL>", [["", LONG, UNICODE], []]),
        ("moments", "ARRAY<TIMESTAMP(6)>", [[us[0], None, us[1]]]),
        ("prices", "MAP<STRING, DECIMAL(20, 3)>", [[], [("a", Decimal("1.500")), ("", None)]]),
        ("codes", "MAP<INT, BYTES>", [[(1, b"\x00"), (-1, None)], []]),
        (
            "point",
            "ROW<x DOUBLE, y DECIMAL(9, 2), at TIMESTAMP(3)>",
            [{"x": -0.0, "y": None, "at": ms[2]}, {"x": None, "y": None, "at": None}],
        ),
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
                {
                    "a": {
                        "b": [{"c": [("k", {"d": datetime.date(1969, 1, 1), "e": [1, None]}), ("n", None)]}, None],
                        "f": True,
                    },
                    "g": "",
                },
                {"a": {"b": [{"c": None}], "f": None}, "g": None},
                {"a": None, "g": "only"},
            ],
        ),
        ("lists", "MAP<STRING, ARRAY<ROW<v INT>>>", [[("a", [{"v": 1}, {"v": None}, None]), ("b", []), ("c", None)]]),
        ("days", "MAP<DATE, TIMESTAMP(6) WITH LOCAL TIME ZONE>", [[(datetime.date(1969, 12, 31), us[2])]]),
    ]
