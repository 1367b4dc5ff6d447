"""Convert logical types to Arrow types and back.

`to_arrow` gives the one Arrow type that a column has inside Lakelet; `from_arrow` reads a schema that a
user provides. Neither touches data.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.model.types import MAX_DEPTH, MAX_LENGTH, Array, Atomic, DataType, Field, Kind, Map, Multiset, Row

# A small write needs the same few types and schemas a dozen times. They are values, on both sides.
_REMEMBERED_TYPES = 1024
_REMEMBERED_SCHEMAS = 64
_PLAIN = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.TINYINT: pa.int8(),
    Kind.SMALLINT: pa.int16(),
    Kind.INT: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.CHAR: pa.string(),
    Kind.VARCHAR: pa.string(),
    Kind.BINARY: pa.binary(),
    Kind.VARBINARY: pa.binary(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.time32("ms"),
}
_FROM = {
    pa.bool_(): Kind.BOOLEAN,
    pa.int8(): Kind.TINYINT,
    pa.int16(): Kind.SMALLINT,
    pa.int32(): Kind.INT,
    pa.int64(): Kind.BIGINT,
    pa.uint8(): Kind.SMALLINT,
    pa.uint16(): Kind.INT,
    pa.uint32(): Kind.BIGINT,
    pa.float16(): Kind.FLOAT,
    pa.float32(): Kind.FLOAT,
    pa.float64(): Kind.DOUBLE,
    pa.date32(): Kind.DATE,
}
_MILLI, _MICRO = 3, 6
_SHOWN_CHARACTERS = 100
_UNIT_PRECISION = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def timestamp_unit(precision: int) -> str:
    """The Arrow unit that holds a TIMESTAMP of this precision."""
    return "ms" if precision <= _MILLI else "us" if precision <= _MICRO else "ns"


def precision_step(data_type: DataType) -> int:
    """The number of Arrow units between two neighbouring values of a time type: 1000 for TIMESTAMP(0), kept in
    milliseconds; 1 for types that are no times."""
    match data_type:
        case Atomic(Kind.TIMESTAMP | Kind.TIMESTAMP_LTZ, precision):
            return int(10 ** (_UNIT_PRECISION[timestamp_unit(precision)] - precision))
        case Atomic(Kind.TIME, precision):
            return int(10 ** max(_MILLI - precision, 0))
        case _:
            return 1


@lru_cache(maxsize=_REMEMBERED_TYPES)
def to_arrow(data_type: DataType) -> pa.DataType:
    """The Arrow type in which values of `data_type` are read and written."""
    match data_type:
        case Atomic(Kind.DECIMAL, precision, scale):
            return pa.decimal128(precision, scale)
        case Atomic(Kind.TIMESTAMP, precision):
            return pa.timestamp(timestamp_unit(precision))
        case Atomic(Kind.TIMESTAMP_LTZ, precision):
            return pa.timestamp(timestamp_unit(precision), tz="UTC")
        case Atomic(kind):
            return _PLAIN[kind]
        case Array(element):
            return pa.list_(pa.field("element", to_arrow(element), nullable=element.nullable))
        case Map(key, value):
            return pa.map_(
                pa.field("key", to_arrow(key), nullable=False),
                pa.field("value", to_arrow(value), nullable=value.nullable),
            )
        case Multiset(element):
            return pa.map_(
                pa.field("key", to_arrow(element), nullable=False), pa.field("value", pa.int32(), nullable=False)
            )
        case Row(fields):
            return pa.struct([arrow_field(field) for field in fields])


def arrow_field(field: Field) -> pa.Field:
    """The Arrow field of a column, with its nullability and comment."""
    metadata = {"comment": field.description} if field.description else None
    return pa.field(field.name, to_arrow(field.type), nullable=field.type.nullable, metadata=metadata)


def arrow_schema(fields: Sequence[Field]) -> pa.Schema:
    """The Arrow schema of these columns."""
    return _remembered_schema(tuple(fields))


@lru_cache(maxsize=_REMEMBERED_SCHEMAS)
def _remembered_schema(fields: tuple[Field, ...]) -> pa.Schema:
    return pa.schema([arrow_field(field) for field in fields])


def from_arrow(arrow: pa.DataType, *, nullable: bool = True, where: str = "column", depth: int = 1) -> DataType:
    """The logical type for an Arrow type; inner fields carry the id -1 until a schema numbers them."""
    types = pa.types
    if depth > MAX_DEPTH:
        raise InvalidError(f"{where[:_SHOWN_CHARACTERS]}…: expected at most {MAX_DEPTH} types inside one another")
    if arrow in _FROM:
        return Atomic(_FROM[arrow], nullable=nullable)
    if types.is_string(arrow) or types.is_large_string(arrow) or types.is_string_view(arrow):
        return Atomic(Kind.VARCHAR, MAX_LENGTH, nullable=nullable)
    if types.is_fixed_size_binary(arrow):
        return Atomic(Kind.BINARY, arrow.byte_width, nullable=nullable)
    if types.is_binary(arrow) or types.is_large_binary(arrow) or types.is_binary_view(arrow):
        return Atomic(Kind.VARBINARY, MAX_LENGTH, nullable=nullable)
    if types.is_uint64(arrow):
        return Atomic(Kind.DECIMAL, 20, 0, nullable=nullable)
    if types.is_decimal(arrow):
        if arrow.precision > 38 or not 0 <= arrow.scale <= arrow.precision:
            raise InvalidError(f"{where}: {arrow} does not fit DECIMAL(38, s) with 0 <= s <= 38")
        return Atomic(Kind.DECIMAL, arrow.precision, arrow.scale, nullable=nullable)
    if types.is_time(arrow):
        return Atomic(Kind.TIME, _UNIT_PRECISION[arrow.unit], nullable=nullable)
    if types.is_timestamp(arrow):
        kind = Kind.TIMESTAMP if arrow.tz is None else Kind.TIMESTAMP_LTZ
        return Atomic(kind, _UNIT_PRECISION[arrow.unit], nullable=nullable)
    if types.is_date64(arrow):
        return Atomic(Kind.DATE, nullable=nullable)
    if types.is_dictionary(arrow):
        return from_arrow(arrow.value_type, nullable=nullable, where=where)
    if arrow == pa.uuid():
        return Atomic(Kind.VARCHAR, MAX_LENGTH, nullable=nullable)
    return _nested_from_arrow(arrow, nullable, where, depth + 1)


def _nested_from_arrow(arrow: pa.DataType, nullable: bool, where: str, depth: int) -> DataType:
    types = pa.types
    if types.is_map(arrow):
        key = from_arrow(arrow.key_type, nullable=False, where=f"{where}.key", depth=depth)
        value = from_arrow(arrow.item_type, nullable=arrow.item_field.nullable, where=f"{where}.value", depth=depth)
        return Map(key, value, nullable)
    if (
        types.is_list(arrow)
        or types.is_large_list(arrow)
        or types.is_fixed_size_list(arrow)
        or types.is_list_view(arrow)
    ):
        element = from_arrow(
            arrow.value_type, nullable=arrow.value_field.nullable, where=f"{where}.element", depth=depth
        )
        return Array(element, nullable)
    if types.is_struct(arrow):
        fields = tuple(
            Field(
                -1,
                inner.name,
                from_arrow(inner.type, nullable=inner.nullable, where=f"{where}.{inner.name}", depth=depth),
            )
            for inner in arrow
        )
        return Row(fields, nullable)
    hint = "; cast it to a whole number of its units, or to text" if types.is_duration(arrow) else ""
    raise InvalidError(f"{where}: the Arrow type {arrow} has no counterpart among table types{hint}")
