"""Rows are converted to a table's columns without loss; everything else is refused with its position."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from lakelet.errors import InvalidError
from lakelet.iceberg.write.row_fit import RowFit

_LONGS, _INTS = ListType(2, LongType(), False), ListType(2, IntegerType(), False)
# A number of 39 digits, which 128 bits hold, behind NULL.
_LONGER = pa.Array.from_buffers(
    pa.decimal128(38, 0), 2, [pa.py_buffer(b"\x02"), pa.py_buffer(bytes(16) + int("1" * 39).to_bytes(16, "little"))]
)
_UUID = UUID("550e8400-e29b-41d4-a716-446655440000")


def _fit(kind: IcebergType, values: pa.Array, *, required: bool = False) -> list[Any]:
    fit = RowFit(Schema(NestedField(1, "c", kind, required=required)))
    found = fit.fit(pa.record_batch({"c": values}))
    assert found.schema == fit.schema
    found.validate(full=True)
    result: list[Any] = found.column(0).to_pylist()
    return result


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (IntegerType(), pa.array([1, None], pa.int64()), [1, None]),
        (IntegerType(), pa.array([Decimal("3.00")]), [3]),
        (LongType(), pa.array([7], pa.uint8()), [7]),
        (LongType(), pa.nulls(2), [None, None]),
        (FloatType(), pa.array([0.5, float("inf")], pa.float64()), [0.5, float("inf")]),
        (DoubleType(), pa.array([2**53], pa.int64()), [float(2**53)]),
        (DecimalType(9, 2), pa.array([Decimal("1.5")]), [Decimal("1.50")]),
        (DecimalType(4, 2), pa.array([12], pa.int64()), [Decimal("12.00")]),
        (StringType(), pa.array(["a", None, "b"]).dictionary_encode(), ["a", None, "b"]),
        (StringType(), pa.array(["a", None]).cast(pa.string_view()), ["a", None]),
        (StringType(), pa.array(["a"], pa.large_string()), ["a"]),
        (BinaryType(), pa.array([b"abc"], pa.binary(3)), [b"abc"]),
        (FixedType(3), pa.array([b"abc", None], pa.large_binary()), [b"abc", None]),
        (UUIDType(), pa.array([str(_UUID), None, str(_UUID).upper()]), [_UUID, None, _UUID]),
        (UUIDType(), pa.array(["x", str(_UUID), "y"]).slice(1, 1), [_UUID]),
        (UUIDType(), pa.array([_UUID.bytes], pa.binary()), [_UUID]),
        (UUIDType(), pa.array([], pa.string()), []),
        (DateType(), pa.array([date(2024, 1, 1)], pa.date64()), [date(2024, 1, 1)]),
        (TimeType(), pa.array([3_600], pa.time32("s")), [datetime(1970, 1, 1, 1).time()]),
        (TimestampType(), pa.array([1_000], pa.timestamp("ns")), [datetime(1970, 1, 1, 0, 0, 0, 1)]),
        (
            TimestamptzType(),
            pa.array([datetime(2024, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))]),
            [datetime(2024, 7, 1, 10, tzinfo=UTC)],
        ),
        (BooleanType(), pa.array([True]), [True]),
        (_LONGS, pa.array([[1], None, [], [2, None]], pa.large_list(pa.int32())).slice(1), [None, [], [2, None]]),
        (ListType(2, StringType(), True), pa.array([["a", "b"]], pa.list_(pa.string(), 2)), [["a", "b"]]),
        (
            MapType(2, StringType(), 3, LongType(), False),
            pa.array([[("z", 9)], [("a", 1)], None], pa.map_(pa.large_string(), pa.int32())).slice(1),
            [[("a", 1)], None],
        ),
        (
            StructType(NestedField(2, "a", LongType(), required=True), NestedField(3, "b", StringType())),
            pa.array([{"B": "x", "a": 1}, None], pa.struct([("B", pa.string()), ("a", pa.int16())])),
            [{"a": 1, "b": "x"}, None],
        ),
        (
            StructType(NestedField(2, "a", LongType()), NestedField(3, "b", StringType())),
            pa.array([{"a": 1}]),
            [{"a": 1, "b": None}],
        ),
    ],
)  # fmt: skip
def test_fits(kind: IcebergType, values: pa.Array, expected: list[Any]) -> None:
    assert _fit(kind, values) == expected


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (IntegerType(), pa.array([1, 2**31]), r"column 'c': expected int, found 2147483648 in row 1"),
        (IntegerType(), pa.array(["1"]), r"column 'c': expected int, found string"),
        (IntegerType(), pa.array([1.0, 1.5]), r"column 'c': expected int, found 1.5 in row 1"),
        (LongType(), pa.array([2.0**60]), r"column 'c': expected long, found 1.152921504606847e\+18 in row 0"),
        (DoubleType(), pa.array([Decimal(2**53 + 1)]), r"column 'c': expected double, found Decimal.* in row 0"),
        (DateType(), pa.array([1], pa.timestamp("us")), r"column 'c': expected date, found datetime.* in row 0"),
        (DecimalType(38, 0), _LONGER, r"expected decimal\(38, 0\), of at most 38 digits, found .*1{39}.* in row 1"),
        (DateType(), pa.array([2**31 - 1], pa.date32()), r"expected date, of the years 1 to 9999, found infinity in row 0"),
        (TimestampType(), pa.array([2**63 - 1], pa.timestamp("us")), r"expected timestamp, of .*, found infinity in row 0"),
        (TimeType(), pa.array([86_400_000_000]).view(pa.time64("us")), r"expected time, of 00:00.* in row 0"),
        (TimeType(), pa.array([86_400_000], pa.int32()).view(pa.time32("ms")), r"expected time, of 00:00.* in row 0"),
        (LongType(), pa.array([Decimal("1.5")]), r"expected long, found Decimal\('1.5'\) in row 0"),
        (FloatType(), pa.array([0.5, 0.1]), r"expected float, found 0.1 in row 1"),
        (DoubleType(), pa.array([2**53 + 1]), r"expected double, found 9007199254740993 in row 0"),
        (DecimalType(9, 2), pa.array([Decimal("1.255")]), r"expected decimal\(9, 2\), found Decimal\('1.255'\) in row 0"),
        (DecimalType(3, 2), pa.array([10], pa.int64()), r"expected decimal\(3, 2\), found 10 in row 0"),
        (StringType(), pa.array([b"x"]), r"expected string, found binary"),
        (FixedType(3), pa.array([b"abc", b"ab"]), r"expected fixed\[3\], found b'ab' in row 1"),
        (UUIDType(), pa.array([str(_UUID), "no"]), r"expected uuid, found 'no' in row 1"),
        (UUIDType(), pa.array([b"short"]), r"expected uuid, found b'short' in row 0"),
        (TimestampType(), pa.array([1_001], pa.timestamp("ns")), r"expected timestamp, found .* in row 0"),
        (TimestampType(), pa.array([1], pa.timestamp("us", "UTC")), r"expected timestamp, found timestamp\[us, tz=UTC\]"),
        (TimestamptzType(), pa.array([1], pa.timestamp("us")), r"expected timestamptz, found timestamp\[us\]"),
        (TimeType(), pa.array([1_001], pa.time64("ns")), r"expected time, found .* in row 0"),
        (ListType(2, LongType(), False), pa.array([1]), r"expected list<long>, found int64"),
        (_INTS, pa.array([[1], None, [2, 2**40]]), r"'c.element': expected int, found 1099511627776 in row 2"),
        (
            ListType(2, LongType(), True),
            pa.array([[1], None, [2, None]]),
            r"'c.element': expected long, required, found NULL 1 time, first in row 2",
        ),
        (
            StructType(NestedField(2, "a", LongType(), required=True)),
            pa.array([None, {"a": 1}, {"a": None}, {"a": None}]),
            r"'c.a': expected long, required, found NULL 2 times, first in row 2",
        ),
        (StructType(NestedField(2, "a", LongType())), pa.array([{"z": 1}]), r"column 'c': the field 'z' is not in the table"),
        (
            StructType(NestedField(2, "a", LongType(), required=True), NestedField(3, "b", LongType())),
            pa.array([{"b": 1}]),
            r"'c.a': expected long, required, and the data does not have it",
        ),
        (
            MapType(2, StringType(), 3, LongType(), True),
            pa.array([[("a", 1)], [("b", None)]], pa.map_(pa.string(), pa.int64())),
            r"'c.value': expected long, required, found NULL 1 time, first in row 1",
        ),
    ],
)  # fmt: skip
def test_refused(kind: IcebergType, values: pa.Array, message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        _fit(kind, values)


_TWO = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "Name", StringType()))


def test_columns_by_name() -> None:
    fit = RowFit(_TWO)
    found = fit.fit(pa.record_batch({"NAME": ["x"], "id": [1]}))
    assert found.to_pylist() == [{"id": 1, "Name": "x"}]
    assert fit.fit(pa.record_batch({"id": [2]})).to_pylist() == [{"id": 2, "Name": None}]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"Name": ["x"]}, "column 'id': expected long, required, and the data does not have it"),
        ({"id": [1], "more": [1]}, "the column 'more' is not in the table; expected id, Name"),
        ({"id": [1], "Name": ["x"], "name": ["y"]}, "the column 'Name' is given twice"),
    ],
)
def test_columns_that_do_not_match(columns: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        RowFit(_TWO).fit(pa.record_batch(columns))


def test_names_in_doubt() -> None:
    fit = RowFit(Schema(NestedField(1, "a", LongType()), NestedField(2, "A", LongType())))
    assert fit.fit(pa.record_batch({"A": [1]})).to_pylist() == [{"a": None, "A": 1}]
    fit = RowFit(Schema(NestedField(1, "ab", LongType()), NestedField(2, "AB", LongType())))
    with pytest.raises(InvalidError, match="'Ab' may be any of ab, AB"):
        fit.fit(pa.record_batch({"Ab": [1]}))


def test_rows_are_counted_over_batches() -> None:
    fit = RowFit(_TWO)
    fit.fit(pa.record_batch({"id": range(10)}))
    with pytest.raises(InvalidError, match="'id': expected long, required, found NULL 2 times, first in row 11"):
        fit.fit(pa.record_batch({"id": [1, None, None]}))


def test_required_member_below_null_is_nothing() -> None:
    """Parquet's writer wants no NULL in a required field, not even below a struct that is NULL."""
    inner = StructType(
        NestedField(3, "u", UUIDType(), required=True),
        NestedField(4, "l", ListType(5, StringType(), True), required=True),
        NestedField(6, "s", StringType(), required=True),
    )
    kind = StructType(NestedField(2, "in", inner, required=True))
    row = {"in": {"u": str(_UUID), "l": ["x"], "s": "y"}}
    values = pa.array([row, None, row])
    assert _fit(kind, values) == [
        {"in": {"u": _UUID, "l": ["x"], "s": "y"}},
        None,
        {"in": {"u": _UUID, "l": ["x"], "s": "y"}},
    ]
    fitted = RowFit(Schema(NestedField(1, "c", kind))).fit(pa.record_batch({"c": values})).column(0)
    assert fitted.field(0).null_count == fitted.field(0).field(0).null_count == 0


def test_maps_with_uuids_that_are_all_null() -> None:
    """Arrow does not drop all values of such an array."""
    kind = MapType(2, UUIDType(), 3, StringType(), False)
    values = pa.nulls(2, pa.map_(pa.uuid(), pa.string()))
    fitted = RowFit(Schema(NestedField(1, "c", kind))).fit(pa.record_batch({"c": values}))
    assert fitted.column(0).null_count == len(values)
