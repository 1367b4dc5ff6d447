"""Map table columns to Spark: types, Arrow schemas, and arrays in both directions.

    table                               Spark                   Arrow between the two
    TIMESTAMP(p)                        TIMESTAMP_NTZ           timestamp[us]; digits 7 to 9 are rounded down
    TIMESTAMP(p) WITH LOCAL TIME ZONE   TIMESTAMP               timestamp[us, UTC], rounded likewise
    TIME(p)                             INT                     int32, milliseconds of the day
    MULTISET<t>                         MAP<t, INT>             map
    CHAR, VARCHAR / BINARY, VARBINARY   STRING / BINARY         string / binary
    all others                          the type of that name

The same holds inside of nested types. Everything is nullable in Spark, for its Python data source takes nothing else.
Spark itself casts nothing that a task yields, so arrays must have exactly these types. Only the arrays that differ
are rebuilt; no value passes through Python. Whether values fit a table's column is not checked here, but by the sink.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_kinds import is_text
from lakelet.model.types import BINARIES, STRINGS, TIMESTAMPS, Array, Atomic, DataType, Field, Kind, Map, Multiset, Row

DAY_MILLIS = 86_400_000
_MICROS = {"s": 1_000_000, "ms": 1_000}
_NANOS_OF_MICRO = 1_000
_PLAIN: dict[Kind, tuple[T.DataType, pa.DataType]] = {
    Kind.BOOLEAN: (T.BooleanType(), pa.bool_()),
    Kind.TINYINT: (T.ByteType(), pa.int8()),
    Kind.SMALLINT: (T.ShortType(), pa.int16()),
    Kind.INT: (T.IntegerType(), pa.int32()),
    Kind.BIGINT: (T.LongType(), pa.int64()),
    Kind.FLOAT: (T.FloatType(), pa.float32()),
    Kind.DOUBLE: (T.DoubleType(), pa.float64()),
    **dict.fromkeys(STRINGS, (T.StringType(), pa.string())),
    **dict.fromkeys(BINARIES, (T.BinaryType(), pa.binary())),
    Kind.DATE: (T.DateType(), pa.date32()),
    Kind.TIME: (T.IntegerType(), pa.int32()),
    Kind.TIMESTAMP: (T.TimestampNTZType(), pa.timestamp("us")),
    Kind.TIMESTAMP_LTZ: (T.TimestampType(), pa.timestamp("us", tz="UTC")),
}
Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)


def spark_type(data_type: DataType) -> T.DataType:
    """The Spark type of a column."""
    match data_type:
        case Atomic(Kind.DECIMAL, precision, scale):
            return T.DecimalType(precision, scale)
        case Atomic(kind):
            return _PLAIN[kind][0]
        case Array(element):
            return T.ArrayType(spark_type(element))
        case Map(key, value):
            return T.MapType(spark_type(key), spark_type(value))
        case Multiset(element):
            return T.MapType(spark_type(element), T.IntegerType())
        case Row(fields):
            return spark_schema(fields)


def spark_schema(fields: Sequence[Field]) -> T.StructType:
    """The Spark schema of these columns, all nullable."""
    return T.StructType([T.StructField(field.name, spark_type(field.type)) for field in fields])


def arrow_type_of_spark(data_type: DataType) -> pa.DataType:
    """The Arrow type in which Spark and a task exchange a column."""
    match data_type:
        case Atomic(Kind.DECIMAL, precision, scale):
            return pa.decimal128(precision, scale)
        case Atomic(kind):
            return _PLAIN[kind][1]
        case Array(element):
            return pa.list_(pa.field("element", arrow_type_of_spark(element)))
        case Map(key, value):
            return _map_type(arrow_type_of_spark(key), arrow_type_of_spark(value))
        case Multiset(element):
            return _map_type(arrow_type_of_spark(element), pa.int32())
        case Row(fields):
            return pa.struct(list(arrow_of_spark(fields)))


def arrow_of_spark(fields: Sequence[Field]) -> pa.Schema:
    """The Arrow schema of what a task yields to Spark for `spark_schema` of the same columns."""
    return pa.schema([pa.field(field.name, arrow_type_of_spark(field.type)) for field in fields])


def _map_type(key: pa.DataType, value: pa.DataType) -> pa.DataType:
    return pa.map_(pa.field("key", key, nullable=False), pa.field("value", value))


def to_spark_arrow(rows: Rows, fields: Sequence[Field]) -> Rows:
    """The rows in Spark's Arrow types: the columns named by `fields`, in their order."""
    columns = [_to_spark_column(rows.column(field.name), field) for field in fields]
    if not columns:
        return rows.select([])
    built: Rows = type(rows).from_arrays(columns, schema=arrow_of_spark(fields))
    return built


def _to_spark_column(column: pa.Array | pa.ChunkedArray, field: Field) -> pa.Array | pa.ChunkedArray:
    if isinstance(column, pa.ChunkedArray):
        chunks = [_to_spark(chunk, field.type, field.name) for chunk in column.chunks]
        return pa.chunked_array(chunks, arrow_type_of_spark(field.type))
    return _to_spark(column, field.type, field.name)


def _to_spark(array: pa.Array, data_type: DataType, where: str) -> pa.Array:
    target = arrow_type_of_spark(data_type)
    if array.type == target:
        return array
    if pa.types.is_dictionary(array.type):
        return _to_spark(array.dictionary_decode(), data_type, where)
    match data_type:
        case Row(fields):
            inside = dict(zip(array.type.names, array.flatten(), strict=True))
            members = [_to_spark(inside[field.name], field.type, f"{where}.{field.name}") for field in fields]
            mask = array.is_null() if array.null_count else None
            return pa.StructArray.from_arrays(members, fields=list(target), mask=mask)
        case Array(element):
            lists = array if pa.types.is_list(array.type) else array.cast(pa.list_(array.type.value_field))
            return _same_lists(lists, target, _to_spark(lists.values, element, f"{where}.element"))
        case Map(key, value):
            return _map_to_spark(array, target, key, value, where)
        case Multiset(element):
            return _map_to_spark(array, target, element, Atomic(Kind.INT), where)
        case Atomic(Kind.TIME):
            return array.cast(pa.time32("ms")).view(pa.int32())
        case Atomic(kind) if kind in TIMESTAMPS:
            return _micros(array, target, where)
        case _:
            return array.cast(target)


def _map_to_spark(array: pa.Array, target: pa.DataType, key: DataType, value: DataType, where: str) -> pa.Array:
    keys = _to_spark(array.keys, key, f"{where}.key")
    items = _to_spark(array.items, value, f"{where}.value")
    return _same_lists(array, target, _entries(target, keys, items))


def _entries(map_type: pa.DataType, keys: pa.Array, items: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([keys, items], fields=[map_type.key_field, map_type.item_field])


def _same_lists(array: pa.Array, target: pa.DataType, values: pa.Array) -> pa.Array:
    """Lists or maps that begin and end where those of `array` do, over other values."""
    return pa.Array.from_buffers(target, len(array), array.buffers()[:2], offset=array.offset, children=[values])


def _micros(array: pa.Array, target: pa.DataType, where: str) -> pa.Array:
    """Timestamps in microseconds; finer ones are rounded down, before 1970 too."""
    unit = array.type.unit
    numbers = array.view(pa.int64())
    if unit == "ns":
        floored = np.floor_divide(numbers.fill_null(0).to_numpy(), _NANOS_OF_MICRO)
        numbers = pa.array(floored, mask=_null_mask(numbers))
    elif unit != "us":
        try:
            numbers = pc.multiply_checked(numbers, _MICROS[unit])
        except pa.ArrowInvalid as error:
            raise InvalidError(
                f"column {where!r}: a timestamp lies beyond the years that Spark's microseconds reach"
            ) from error
    return numbers.view(target)


def _null_mask(array: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
    return array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None


def from_spark_arrow(batch: pa.RecordBatch, fields: Sequence[Field]) -> pa.RecordBatch:
    """A batch from Spark converted for the sink: integers in place of a TIME, at any depth, become times of
    the day. Columns that are no table columns, and all other types, stay as they are."""
    known = {field.name: field for field in fields}
    sent = batch.columns
    columns = [
        _from_spark(column, known[name].type, name) if name in known else column
        for name, column in zip(batch.schema.names, sent, strict=True)
    ]
    if all(new is old for new, old in zip(columns, sent, strict=True)):
        return batch
    schema = pa.schema(
        [pa.field(old.name, new.type, old.nullable) for old, new in zip(batch.schema, columns, strict=True)]
    )
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def check_text(batch: pa.RecordBatch) -> None:
    """InvalidError for text that is no UTF-8, which Spark's strings may hold and no other reader of the table takes."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if is_text(column.type) or pa.types.is_nested(column.type):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid as error:
                raise InvalidError(f"column {name!r} holds bytes that are no text: {error}") from error


def table_arrow_type(source: pa.DataType, data_type: DataType) -> pa.DataType:
    """The type that `from_spark_arrow` makes of an Arrow type that Spark sends for a table's column."""
    match data_type:
        case Atomic(Kind.TIME) if pa.types.is_integer(source):
            return pa.time32("ms")
        case Array(element) if pa.types.is_list(source):
            inner = source.value_field
            return pa.list_(inner.with_type(table_arrow_type(inner.type, element)))
        case Map(key, value) if pa.types.is_map(source):
            return _table_map_type(source, key, value)
        case Multiset(element) if pa.types.is_map(source):
            return _table_map_type(source, element, Atomic(Kind.INT))
        case Row(fields) if pa.types.is_struct(source):
            known = {field.name: field.type for field in fields}
            return pa.struct(
                [
                    inner.with_type(table_arrow_type(inner.type, known[inner.name])) if inner.name in known else inner
                    for inner in source
                ]
            )
        case _:
            return source


def _table_map_type(source: pa.DataType, key: DataType, value: DataType) -> pa.DataType:
    key_field, item_field = source.key_field, source.item_field
    return pa.map_(
        key_field.with_type(table_arrow_type(key_field.type, key)),
        item_field.with_type(table_arrow_type(item_field.type, value)),
    )


def _from_spark(array: pa.Array, data_type: DataType, where: str) -> pa.Array:
    target = table_arrow_type(array.type, data_type)
    if target == array.type:
        return array
    match data_type:
        case Row(fields):
            known = {field.name: field.type for field in fields}
            members = [
                _from_spark(member, known[name], f"{where}.{name}") if name in known else member
                for name, member in zip(array.type.names, array.flatten(), strict=True)
            ]
            mask = array.is_null() if array.null_count else None
            return pa.StructArray.from_arrays(members, fields=list(target), mask=mask)
        case Array(element):
            return _same_lists(array, target, _from_spark(array.values, element, f"{where}.element"))
        case Map(key, value):
            return _map_from_spark(array, target, key, value, where)
        case Multiset(element):
            return _map_from_spark(array, target, element, Atomic(Kind.INT), where)
        case _:
            return _times(array, where, data_type)


def _map_from_spark(array: pa.Array, target: pa.DataType, key: DataType, value: DataType, where: str) -> pa.Array:
    keys = _from_spark(array.keys, key, f"{where}.key")
    items = _from_spark(array.items, value, f"{where}.value")
    return _same_lists(array, target, _entries(target, keys, items))


def _times(array: pa.Array, where: str, data_type: DataType) -> pa.Array:
    wrong = pc.fill_null(pc.or_(pc.less(array, 0), pc.greater_equal(array, DAY_MILLIS)), False)
    place = wrong.index(True).as_py()
    if place >= 0:
        raise InvalidError(
            f"column {where!r} is {data_type}, given as milliseconds of the day: expected 0 to {DAY_MILLIS - 1}, "
            f"found {array[place].as_py()}"
        )
    return array.cast(pa.int32()).view(pa.time32("ms"))
