"""Stored columns as SQL text, and which have none."""

import pytest
from pyspark.sql import types as T

from lakelet.model.type_parser import parse_type
from lakelet.spark.read.column_texts import column_text
from lakelet.spark.types import spark_type


def _text(stored: str | None, wanted: str) -> str | None:
    kind = None if stored is None else spark_type(parse_type(stored))
    return column_text("b`c", "a b", kind, spark_type(parse_type(wanted)), parse_type(wanted))


@pytest.mark.parametrize(
    ("stored", "wanted", "expected"),
    [
        ("INT", "INT", "`a b`"),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "TIMESTAMP(6) WITH LOCAL TIME ZONE", "`a b`"),
        ("ARRAY<DOUBLE>", "ARRAY<DOUBLE>", "`a b`"),
        ("ROW<a INT>", "ROW<a INT>", "`a b`"),
        ("INT", "BIGINT", "CAST(`a b` AS bigint)"),
        ("DECIMAL(10, 2)", "DECIMAL(12, 2)", "CAST(`a b` AS decimal(12,2))"),
        (None, "TIMESTAMP(6)", "CAST(NULL AS timestamp_ntz)"),
        ("DOUBLE", "DOUBLE", "nanvl(`a b`, CAST('NaN' AS DOUBLE))"),
        ("FLOAT", "FLOAT", "nanvl(`a b`, CAST('NaN' AS FLOAT))"),
        (
            "TIMESTAMP(3) WITH LOCAL TIME ZONE",
            "TIMESTAMP(3) WITH LOCAL TIME ZONE",
            "timestamp_micros(unix_micros(`a b`))",
        ),
    ],
)
def test_texts(stored: str | None, wanted: str, expected: str) -> None:
    assert _text(stored, wanted) == f"{expected} AS `b``c`"


def test_what_only_columns_say() -> None:
    """TIMESTAMP is one type or another in SQL by a setting; fields of a ROW are shielded one by one."""
    assert _text(None, "TIMESTAMP(6) WITH LOCAL TIME ZONE") is None
    assert _text(None, "ARRAY<INT>") is None
    assert _text("ROW<a DOUBLE>", "ROW<a DOUBLE>") is None
    assert column_text("a", "a", None, T.TimestampType(), parse_type("INT")) is None
