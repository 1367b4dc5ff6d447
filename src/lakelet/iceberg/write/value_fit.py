"""Convert the values of one primitive column to an Iceberg type, without loss."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
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
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from lakelet.errors import InvalidError
from lakelet.iceberg.transforms.plain_array import byte_ranges
from lakelet.model.arrow.arrow_kinds import is_bytes, is_text
from lakelet.sink.rows.conversion import convert_array
from lakelet.sink.rows.value_checks import first_unshowable, reach_text, shown_value

_TYPES = pa.types
# Of the decimals only these can arrive with more digits than their type has: a cast checks the others.
_WIDEST = frozenset(pa.decimal128(38, scale) for scale in range(39))
_UUID_BYTES = 16
_UUID = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"


def check_type(source: pa.DataType, kind: IcebergType, where: str) -> None:
    """InvalidError where no value of the one type can be converted to the other."""
    accepts = _ACCEPTS.get(type(kind))
    if accepts is None:
        raise InvalidError(f"column {where!r}: rows of type {kind} cannot be written")
    if not accepts(source):
        raise InvalidError(f"column {where!r}: expected {kind}, found {source}, which does not convert without loss")


def fit_values(
    array: pa.Array, kind: IcebergType, target: pa.DataType, where: str, row_of: Callable[[int], int]
) -> pa.Array:
    """The values in the stored type; InvalidError with the first that does not fit."""
    fitted = array if array.type == target else _converted(array, kind, target, where, row_of)
    at = first_unshowable(fitted) if _TYPES.is_temporal(target) or target in _WIDEST else None
    if at is not None:
        raise InvalidError(
            f"column {where!r}: expected {kind}, of {reach_text(target)}, found {shown_value(fitted[at])} in row {row_of(at)}"
        )
    return fitted


def _converted(
    array: pa.Array, kind: IcebergType, target: pa.DataType, where: str, row_of: Callable[[int], int]
) -> pa.Array:
    try:
        return _fit(array, kind, target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        at = _first_bad(array, kind, target)
        found = f"{shown_value(array[at])} in row {row_of(at)}" if at < len(array) else str(array.type)
        raise InvalidError(f"column {where!r}: expected {kind}, found {found} ({error})") from error


def _fit(array: pa.Array, kind: IcebergType, target: pa.DataType) -> pa.Array:
    """ArrowInvalid for a value that would change."""
    if isinstance(kind, (UUIDType, FixedType)) and isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(kind, UUIDType):
        return pa.ExtensionArray.from_storage(pa.uuid(), _uuids(array))
    if isinstance(kind, FixedType):
        return _fixed(array, target)
    return convert_array(array, target)


def _fixed(array: pa.Array, target: pa.DataType) -> pa.Array:
    if not _TYPES.is_fixed_size_binary(array.type):
        array = array.cast(pa.binary())
    lengths = pc.binary_length(array)
    if not pc.all(pc.equal(lengths, target.byte_width), min_count=0).as_py():
        raise pa.ArrowInvalid(f"expected {target.byte_width} bytes")
    return array.cast(target)


def _uuids(array: pa.Array) -> pa.Array:
    """Uuids as 16 bytes each, from bytes or from their usual text."""
    target = pa.binary(_UUID_BYTES)
    if not is_text(array.type):
        return _fixed(array, target)
    array = array.cast(pa.string())
    if not pc.all(pc.match_substring_regex(array, _UUID), min_count=0).as_py():
        raise pa.ArrowInvalid("no text of a uuid")
    data, starts, lengths = byte_ranges(pc.replace_substring(array.drop_null(), "-", ""))
    text = data[starts[0] : starts[-1] + lengths[-1]].tobytes().decode() if len(starts) else ""
    values = pa.Array.from_buffers(target, len(starts), [None, pa.py_buffer(bytes.fromhex(text))])
    if not array.null_count:
        return values
    places = pc.subtract(pc.cumulative_sum(array.is_valid().cast(pa.int64())), 1)
    return values.take(pc.if_else(array.is_valid(), places, None))


def _first_bad(array: pa.Array, kind: IcebergType, target: pa.DataType) -> int:
    """The first value that does not fit, found by bisection."""
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            _fit(array.slice(low, middle - low), kind, target)
            low = middle
        except pa.ArrowException:
            high = middle
    return low


def _is_uuid(source: pa.DataType) -> bool:
    return source == pa.uuid() or is_text(source) or is_bytes(source)


def _is_number(source: pa.DataType) -> bool:
    return bool(_TYPES.is_integer(source) or _TYPES.is_floating(source) or _TYPES.is_decimal(source))


def _is_text_or_uuid(source: pa.DataType) -> bool:
    return is_text(source) or source == pa.uuid()


def _is_bytes_or_uuid(source: pa.DataType) -> bool:
    return is_bytes(source) or source == pa.uuid()


def _is_day_or_naive(source: pa.DataType) -> bool:
    return bool(_TYPES.is_date(source) or _is_naive(source))


def _is_naive(source: pa.DataType) -> bool:
    return bool(_TYPES.is_timestamp(source) and source.tz is None)


def _is_zoned(source: pa.DataType) -> bool:
    return bool(_TYPES.is_timestamp(source) and source.tz is not None)


_ACCEPTS: dict[type[IcebergType], Callable[[pa.DataType], bool]] = {
    BooleanType: _TYPES.is_boolean,
    IntegerType: _is_number,
    LongType: _is_number,
    FloatType: _is_number,
    DoubleType: _is_number,
    DecimalType: _is_number,
    StringType: _is_text_or_uuid,
    BinaryType: _is_bytes_or_uuid,
    FixedType: _is_bytes_or_uuid,
    UUIDType: _is_uuid,
    DateType: _is_day_or_naive,
    TimeType: _TYPES.is_time,
    TimestampType: _is_day_or_naive,
    TimestampNanoType: _is_day_or_naive,
    TimestamptzType: _is_zoned,
    TimestamptzNanoType: _is_zoned,
}
