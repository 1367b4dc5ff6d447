"""Text becomes a typed value with the spellings that Paimon takes, and nothing else does."""

from datetime import timedelta
from typing import Any

import pytest

from lakelet.options.kinds import (
    BOOL,
    COLUMNS,
    DURATION,
    FILE_NAME_PART,
    FLOAT,
    INT,
    LONG,
    MAP,
    RELATIVE_PATH,
    SIZE,
    STATS_MODE,
    Kind,
    integer,
    one_of,
    per_level,
    size,
)

FORMATS = one_of("parquet", "THROW_ERROR")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (BOOL, "true", True),
        (BOOL, "FALSE", False),
        (INT, "-2147483648", -(2**31)),
        (LONG, "9223372036854775807", 2**63 - 1),
        (FLOAT, "0.05", 0.05),
        (SIZE, "128 mb", 128 << 20),
        (SIZE, "64kb", 64 << 10),
        (SIZE, "1 g", 1 << 30),
        (SIZE, "2TB", 2 << 40),
        (SIZE, "3 mebibytes", 3 << 20),
        (SIZE, "500 bytes", 500),
        (SIZE, "4096", 4096),
        (SIZE, "9223372036854775807 bytes", 2**63 - 1),
        (DURATION, "1 h", timedelta(hours=1)),
        (DURATION, "30 min", timedelta(minutes=30)),
        (DURATION, "5m", timedelta(minutes=5)),
        (DURATION, "10 s", timedelta(seconds=10)),
        (DURATION, "500 ms", timedelta(milliseconds=500)),
        (DURATION, "7 micros", timedelta(microseconds=7)),
        (DURATION, "2500 ns", timedelta(microseconds=2)),
        (DURATION, "2 Days", timedelta(days=2)),
        (DURATION, "250", timedelta(milliseconds=250)),
        (DURATION, "PT1H", timedelta(hours=1)),
        (DURATION, "PT0.01S", timedelta(milliseconds=10)),
        (DURATION, "pt0s", timedelta()),
        (DURATION, "P2DT3H4M5.5S", timedelta(days=2, hours=3, minutes=4, seconds=5.5)),
        (COLUMNS, "a, b", ("a", "b")),
        (MAP, "", {}),
        (MAP, "k1:v1, k2:v:2", {"k1": "v1", "k2": "v:2"}),
        (per_level(FORMATS), "0:PARQUET", {0: "parquet"}),
        (FORMATS, "throw_error", "THROW_ERROR"),
        (STATS_MODE, "Truncate(8)", "truncate(8)"),
        (FILE_NAME_PART, "data-", "data-"),
        (RELATIVE_PATH, "a/b/", "a/b"),
    ],
)
def test_reads(kind: Kind[Any], text: str, value: object) -> None:
    read = kind.convert(text)
    assert read == value
    assert type(read) is type(value) or isinstance(value, dict)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (BOOL, "yes"),
        (BOOL, "1"),
        (INT, "2147483648"),
        (INT, "1.5"),
        (INT, "1_000"),
        (INT, "٣"),
        (LONG, "9223372036854775808"),
        (FLOAT, "nan"),
        (FLOAT, "inf"),
        (SIZE, "-1"),
        (SIZE, "1.5 gb"),
        (SIZE, "12 parsecs"),
        (SIZE, "mb"),
        (SIZE, "9223372036854775808"),
        (SIZE, "99999999 tb"),
        (DURATION, "1 fortnight"),
        (DURATION, "-1 s"),
        (DURATION, "P"),
        (DURATION, "PT"),
        (DURATION, "P1DT"),
        (DURATION, "PT1"),
        (DURATION, "99999999999 d"),
        (COLUMNS, ""),
        (COLUMNS, "a,,b"),
        (COLUMNS, "a,a"),
        (MAP, "novalue"),
        (MAP, "a:1,a:2"),
        (per_level(FORMATS), "x:parquet"),
        (per_level(FORMATS), "-1:parquet"),
        (per_level(FORMATS), "0:csv"),
        (FORMATS, "csv"),
        (STATS_MODE, "truncate(0)"),
        (STATS_MODE, "truncate"),
        (FILE_NAME_PART, ""),
        (FILE_NAME_PART, "../data-"),
        (FILE_NAME_PART, ".."),
        (RELATIVE_PATH, "/etc"),
        (RELATIVE_PATH, "a/../../b"),
        (RELATIVE_PATH, ""),
    ],
)
def test_refuses(kind: Kind[Any], text: str) -> None:
    with pytest.raises(ValueError):
        kind.convert(text)


def test_bounds_hold_and_are_told() -> None:
    bounded = integer(-2, 22, but_not=(0,))
    assert [bounded.convert(text) for text in ("-2", "1", "22")] == [-2, 1, 22]
    for text in ("-3", "0", "23"):
        with pytest.raises(ValueError):
            bounded.convert(text)
    assert bounded.expected == "a whole number, at least -2, at most 22, not 0"
    with pytest.raises(ValueError):
        size(1).convert("0")


def test_maps_are_read_only() -> None:
    with pytest.raises(TypeError):
        MAP.convert("a:1")["b"] = "2"  # type: ignore[index]
