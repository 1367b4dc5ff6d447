"""Statistics files: the text of every type, both ways."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal

import pytest

from lakelet.errors import CorruptionError
from lakelet.format.metadata.statistics_json import decode_statistics, encode_statistics
from lakelet.model.table_statistics import ColumnStatistics, TableStatistics
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field

# Minimum as a value and as Java Paimon 1.4.2's serializers write it.
TEXTS = [
    ("BOOLEAN", True, "true"),
    ("TINYINT", -3, "-3"),
    ("BIGINT", 2**62, str(2**62)),
    ("DOUBLE", 1e22, "1.0E22"),
    ("DOUBLE", 1e-5, "1.0E-5"),
    ("DOUBLE", 123456789.0, "1.23456789E8"),
    ("FLOAT", 1e10, "1.0E10"),
    ("DECIMAL(10, 2)", Decimal("123.45"), "123.45"),
    ("DECIMAL(30, 10)", Decimal("0.0000000001"), "0.0000000001"),
    ("DATE", dt.date(2022, 1, 8), "19000"),
    ("TIME(3)", dt.time(1, 2, 3, 4000), "3723004"),
    ("TIMESTAMP(3)", dt.datetime(2023, 11, 14, 22, 13, 20, 123000), "2023-11-14 22:13:20.123"),
    ("TIMESTAMP(6)", dt.datetime(2023, 11, 14, 22, 14), "2023-11-14 22:14:00.000000"),
    ("TIMESTAMP(9)", 1_700_000_000_123_456_789, "2023-11-14 22:13:20.123456789"),
    (
        "TIMESTAMP(6) WITH LOCAL TIME ZONE",
        dt.datetime(2023, 11, 14, 22, 13, 20, 123456, dt.UTC),
        "2023-11-14 22:13:20.123456",
    ),
    ("STRING", "é, x", "é, x"),
]


def fields(type_text: str) -> list[Field]:
    return [Field(4, "c", parse_type(type_text))]


@pytest.mark.parametrize(("type_text", "value", "text"), TEXTS)
def test_values_are_written_as_java_writes_them(type_text: str, value: object, text: str) -> None:
    statistics = TableStatistics(7, 2, 10, 100, {"c": ColumnStatistics(4, 9, value, value, 1, 8, 8)})
    data = encode_statistics(statistics, fields(type_text))
    assert json.loads(data) == {
        "snapshotId": 7,
        "schemaId": 2,
        "mergedRecordCount": 10,
        "mergedRecordSize": 100,
        "colStats": {
            "c": {"colId": 4, "distinctCount": 9, "min": text, "max": text, "nullCount": 1, "avgLen": 8, "maxLen": 8}
        },
    }
    asked: list[int] = []

    def fields_of(number: int) -> list[Field]:
        asked.append(number)
        return fields(type_text)

    assert decode_statistics(data, fields_of, path="p") == statistics
    assert asked == [2]


def test_nan_comes_back() -> None:
    statistics = TableStatistics(7, 0, columns={"c": ColumnStatistics(4, minimum=-math.inf, maximum=math.nan)})
    data = encode_statistics(statistics, fields("DOUBLE"))
    assert json.loads(data)["colStats"] == {"c": {"colId": 4, "min": "-Infinity", "max": "NaN"}}
    found = decode_statistics(data, lambda _: fields("DOUBLE"), path="p").columns["c"]
    assert found.minimum == -math.inf
    assert isinstance(found.maximum, float)
    assert math.isnan(found.maximum)


def test_what_is_unknown_is_left_out() -> None:
    statistics = TableStatistics(7, 0, columns={"c": ColumnStatistics(4)})
    data = encode_statistics(statistics, fields("INT"))
    assert json.loads(data) == {"snapshotId": 7, "schemaId": 0, "colStats": {"c": {"colId": 4}}}
    assert decode_statistics(data, lambda _: fields("INT"), path="p") == statistics
    bare = decode_statistics(b'{"snapshotId": 1, "schemaId": 0, "colStats": null, "x": 1}', lambda _: [], path="p")
    assert bare == TableStatistics(1, 0)


def test_bounds_of_a_column_that_nobody_knows_are_dropped() -> None:
    data = b'{"snapshotId": 1, "schemaId": 0, "colStats": {"gone": {"colId": 9, "min": "x", "nullCount": 3}}}'
    found = decode_statistics(data, lambda _: fields("INT"), path="p")
    assert found.columns == {"gone": ColumnStatistics(9, null_count=3)}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"schemaId": 0}',
        b'{"snapshotId": "x", "schemaId": 0}',
        b'{"snapshotId": 1, "schemaId": 0, "colStats": [1]}',
        b'{"snapshotId": 1, "schemaId": 0, "colStats": {"c": {"colId": 4, "min": "no number"}}}',
    ],
)
def test_a_damaged_file_is_named(data: bytes) -> None:
    with pytest.raises(CorruptionError, match="wh/stat-1: not a statistics file"):
        decode_statistics(data, lambda _: fields("INT"), path="wh/stat-1")
