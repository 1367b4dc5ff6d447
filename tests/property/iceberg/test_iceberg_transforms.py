"""Every transform of arrays gives what pyiceberg gives value by value, whatever the array looks like inside."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from lakelet.errors import InvalidError
from lakelet.iceberg.transforms import PartitionTransform, transform_of
from lakelet.iceberg.transforms.murmur import _hash_loop
from tests.tiers.examples import examples

_DAYS = 3_652_059 - 719_163 - 1
_FIRST_DAY = -719_162
_MICROS_A_DAY = 86_400_000_000
_EPOCH = datetime(1970, 1, 1)

_days = st.integers(_FIRST_DAY, _DAYS) | st.sampled_from([-1, 0, 1, -365, -366, -31, _FIRST_DAY, _DAYS])
_micros = st.integers(_FIRST_DAY * _MICROS_A_DAY, (_DAYS + 1) * _MICROS_A_DAY - 1) | st.sampled_from(
    [-1, 0, 1, -3_600_000_000, -3_600_000_001, -_MICROS_A_DAY, -_MICROS_A_DAY - 1]
)
_nanos = st.integers(-(2**63) + 1, 2**63 - 1) | st.sampled_from([-1, 0, 1, -999, -1000, -1001])


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    edges = [
        0,
        1,
        -1,
        127,
        128,
        -128,
        -129,
        32767,
        32768,
        -32768,
        -32769,
        2**63 - 1,
        2**63,
        -(2**63),
        2**64,
        most,
        -most,
    ]
    units = st.integers(-most, most) | st.sampled_from([edge for edge in edges if abs(edge) <= most])
    return units.map(lambda unit: Decimal((int(unit < 0), tuple(map(int, str(abs(unit)))), -scale)))


_VALUES: list[tuple[IcebergType, st.SearchStrategy[Any]]] = [
    (IntegerType(), st.integers(-(2**31), 2**31 - 1)),
    (LongType(), st.integers(-(2**63), 2**63 - 1)),
    (DateType(), _days.map(lambda days: date(1970, 1, 1) + timedelta(days))),
    (TimeType(), st.times().map(lambda found: found.replace(tzinfo=None))),
    (TimestampType(), _micros.map(lambda micros: _EPOCH + timedelta(microseconds=micros))),
    (TimestamptzType(), _micros.map(lambda micros: _EPOCH.replace(tzinfo=UTC) + timedelta(microseconds=micros))),
    (TimestampNanoType(), _nanos),
    (TimestamptzNanoType(), _nanos),
    (
        StringType(),
        st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(["", "null", "日本語テスト", "🦆🦆🦆🦆"]),
    ),
    (BinaryType(), st.binary(max_size=40)),
    (FixedType(7), st.binary(min_size=7, max_size=7)),
    (UUIDType(), st.uuids()),
    *((DecimalType(*size), _decimals(*size)) for size in ((1, 0), (9, 2), (18, 18), (19, 3), (38, 0), (38, 10))),
]
_TRANSFORMS: list[Transform[Any, Any]] = [
    IdentityTransform(),
    VoidTransform(),
    BucketTransform(1),
    BucketTransform(16),
    BucketTransform(2**31 - 1),
    TruncateTransform(1),
    TruncateTransform(3),
    TruncateTransform(10),
    TruncateTransform(2**31 - 1),
    YearTransform(),
    MonthTransform(),
    DayTransform(),
    HourTransform(),
]
_CASES = [
    pytest.param(transform, kind, values, id=f"{transform}-{kind}")
    for transform in _TRANSFORMS
    for kind, values in _VALUES
    if transform.can_transform(kind)
]


@pytest.mark.parametrize(("transform", "kind", "values"), _CASES)
@settings(max_examples=examples(40))
@given(data=st.data())
def test_equal_to_pyiceberg(
    transform: Transform[Any, Any], kind: IcebergType, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    given_values = data.draw(st.lists(values | st.none(), max_size=12))
    array = _shaped(_array(given_values, kind), data)
    ours = transform_of(PartitionField(1, 1000, transform, "p"), kind)
    expected = [_expected(transform, kind, value) for value in given_values]
    if any(value is _UNHELD for value in expected):
        with pytest.raises(InvalidError, match="less than"):
            ours.apply(array)
        return
    found = ours.apply(array)
    assert ours.get_partition_values(found) == expected
    assert [ours.get_partition_value(value) for value in found] == expected
    _check_text(ours, transform, kind, expected)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=20), max_size=12))
def test_compiled_hash(texts: list[str]) -> None:
    """The compiled loop and its twin in numpy are the same function."""
    transform = BucketTransform(2**31 - 1)
    ours = transform_of(PartitionField(1, 1000, transform, "p"), StringType())
    _hash_loop.load_if_enabled()
    assert ours.apply(pa.array(texts, pa.string())).to_pylist() == [
        transform.transform(StringType())(text) for text in texts
    ]


_UNHELD = object()


def _array(values: list[Any], kind: IcebergType) -> pa.Array:
    arrow = schema_to_pyarrow(Schema(NestedField(1, "c", kind))).field(0).type
    if isinstance(kind, UUIDType):
        storage = pa.array([None if value is None else value.bytes for value in values], pa.binary(16))
        return pa.ExtensionArray.from_storage(pa.uuid(), storage)
    return pa.array(values, arrow)


def _shaped(array: pa.Array, data: st.DataObject) -> pa.Array | pa.ChunkedArray:
    """The same values: sliced, on buffers that are not aligned, as a dictionary, in chunks, in another layout."""
    shape = data.draw(st.sampled_from(["plain", "sliced", "unaligned", "dictionary", "chunks", "small", "view"]))
    if shape == "sliced":
        around = pa.concat_arrays([array, array, array]) if len(array) else array
        return around.slice(len(array), len(array))
    if shape == "unaligned" and not isinstance(array, pa.ExtensionArray):
        buffers = [None if buffer is None else _moved(buffer) for buffer in array.buffers()]
        return pa.Array.from_buffers(array.type, len(array), buffers)
    if shape == "dictionary" and not isinstance(array, pa.ExtensionArray):
        return array.dictionary_encode()
    if shape == "chunks":
        half = len(array) // 2
        return pa.chunked_array([array.slice(0, half), array.slice(half)], array.type)
    if shape == "small" and pa.types.is_large_string(array.type):
        return array.cast(pa.string())
    if shape == "small" and pa.types.is_large_binary(array.type):
        return array.cast(pa.binary())
    if shape == "view" and pa.types.is_large_string(array.type):
        return array.cast(pa.string_view())
    if shape == "view" and pa.types.is_large_binary(array.type):
        return array.cast(pa.binary_view())
    return array


def _moved(buffer: pa.Buffer) -> pa.Buffer:
    return pa.py_buffer(b"\0" + buffer.to_pybytes()).slice(1)


def _expected(transform: Transform[Any, Any], kind: IcebergType, value: Any) -> Any:
    """pyiceberg's value, as manifests keep it."""
    if value is None:
        return None
    found = transform.transform(kind)(value)
    if isinstance(transform, TruncateTransform) and isinstance(kind, IntegerType | LongType) and found < kind.min:
        return _UNHELD
    if isinstance(transform, TruncateTransform) and isinstance(kind, DecimalType) and _unheld(found, kind):
        return _UNHELD
    return _physical(found)


def _unheld(value: Decimal, kind: DecimalType) -> bool:
    # Its own digits, for arithmetic would round to those of the context.
    sign, digits, _ = value.as_tuple()
    units = int("".join(map(str, digits))) * (-1 if sign else 1)
    return units < -(10**kind.precision - 1)


def _physical(value: Any) -> Any:
    match value:
        case uuid.UUID():
            return value.bytes
        case datetime():
            return (value.replace(tzinfo=None) - _EPOCH) // timedelta(microseconds=1)
        case date():
            return (value - _EPOCH.date()).days
        case time():
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
        case _:
            return value


def _check_text(
    ours: PartitionTransform, transform: Transform[Any, Any], kind: IcebergType, expected: list[Any]
) -> None:
    spec = PartitionSpec(PartitionField(1, 1000, transform, "p"))
    schema = Schema(NestedField(1, "c", kind))
    for value in expected:
        text = ours.to_human_string(value)
        one = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "p"))
        path = spec.partition_to_path(Record(value), schema)
        text_path = one.partition_to_path(Record(text), Schema(NestedField(1, "c", StringType())))
        assert path == text_path
