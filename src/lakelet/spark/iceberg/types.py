"""Map the columns of an Iceberg table to Spark types.

    Iceberg             Spark
    time                BIGINT, microseconds of the day
    uuid                STRING, 550e8400-e29b-41d4-a716-446655440000
    fixed, binary       BINARY
    timestamp           TIMESTAMP_NTZ
    timestamptz         TIMESTAMP
    timestamp_ns …      the same, cut off to microseconds downwards
    all others          the type of that name

The same holds inside of nested types. Everything is nullable in Spark; NULL where the table allows none is for the writer to
find.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema
from lakelet.model.types import STRINGS, Array, Atomic, DataType, Field, Kind, Map, Row
from lakelet.spark.types import to_spark_arrow

DAY_MICROS = 86_400_000_000
_TIME = pa.time64("us")
_UUID = pa.binary(16)
_UUID_LETTERS = 36


def spark_columns(schema: TableSchema) -> TableSchema:
    """The columns in the types of the exchange with Spark. None is a routing column, unlike in Lakelet's own tables."""
    return replace(schema, fields=spark_fields(schema.fields), partition_keys=(), options={})


def _without_times(data_type: DataType) -> DataType:
    match data_type:
        case Atomic(Kind.TIME):
            return Atomic(Kind.BIGINT, nullable=data_type.nullable)
        case Array(element):
            return replace(data_type, element=_without_times(element))
        case Map(key, value):
            return replace(data_type, key=_without_times(key), value=_without_times(value))
        case Row(fields):
            inner = tuple(replace(field, type=_without_times(field.type)) for field in fields)
            return replace(data_type, fields=inner)
        case _:
            return data_type


def spark_fields(fields: Sequence[Field]) -> tuple[Field, ...]:
    """Columns in the types of the exchange with Spark."""
    return tuple(replace(field, type=_without_times(field.type)) for field in fields)


class Times:
    """Converts microseconds of the day, as Spark sends them, into times, at any depth."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._types = {field.name: field.type for field in fields if _has(field.type, Kind.TIME)}

    def made(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with its times; InvalidError for a number that is no time of the day."""
        return _changed(batch, self._types, _to_time)


def to_spark(batch: pa.RecordBatch, fields: Sequence[Field]) -> pa.RecordBatch:
    """Rows of a table in Spark's Arrow types: the columns named by `fields`, in their order."""
    texts = {field.name: field.type for field in fields if _has(field.type, *STRINGS)}
    return to_spark_arrow(_changed(batch, texts, _to_text), spark_fields(fields))


_Change = Callable[[pa.Array, Atomic, str], pa.Array]


def _changed(batch: pa.RecordBatch, types: Mapping[str, DataType], change: _Change) -> pa.RecordBatch:
    for name, data_type in types.items():
        place = batch.schema.get_field_index(name)
        if place >= 0:
            array = _over_leaves(batch.column(place), data_type, change, name)
            if array is not batch.column(place):
                batch = batch.set_column(place, batch.schema.field(place).with_type(array.type), array)
    return batch


def _has(data_type: DataType, *kinds: Kind) -> bool:
    match data_type:
        case Atomic(kind):
            return kind in kinds
        case Array(element):
            return _has(element, *kinds)
        case Map(key, value):
            return _has(key, *kinds) or _has(value, *kinds)
        case Row(fields):
            return any(_has(field.type, *kinds) for field in fields)
        case _:
            return False


def _over_leaves(array: pa.Array, data_type: DataType, change: _Change, where: str) -> pa.Array:
    """The array with its leaf values changed; offsets and NULLs above them are kept."""
    match data_type:
        case Row(fields) if pa.types.is_struct(array.type):
            known = {field.name: field.type for field in fields}
            inner = [
                _over_leaves(child, known[name], change, f"{where}.{name}") if name in known else child
                for name, child in zip(array.type.names, array.flatten(), strict=True)
            ]
            own = [array.type.field(place).with_type(child.type) for place, child in enumerate(inner)]
            return pa.StructArray.from_arrays(inner, fields=own, mask=array.is_null() if array.null_count else None)
        case Array(element) if pa.types.is_list(array.type):
            values = _over_leaves(array.values, element, change, f"{where}.element")
            return _same_lists(array, pa.list_(array.type.value_field.with_type(values.type)), values)
        case Map(key, value) if pa.types.is_map(array.type):
            keys = _over_leaves(array.keys, key, change, f"{where}.key")
            items = _over_leaves(array.items, value, change, f"{where}.value")
            target = pa.map_(array.type.key_field.with_type(keys.type), array.type.item_field.with_type(items.type))
            entries = pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
            return _same_lists(array, target, entries)
        case Atomic():
            return change(array, data_type, where)
        case _:
            return array


def _same_lists(array: pa.Array, target: pa.DataType, values: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(target, len(array), array.buffers()[:2], offset=array.offset, children=[values])


def _to_time(array: pa.Array, data_type: Atomic, where: str) -> pa.Array:
    if data_type.kind is not Kind.TIME or pa.types.is_time(array.type):
        return array
    if not pa.types.is_integer(array.type):
        return array.cast(_TIME) if pa.types.is_null(array.type) else array
    wrong = pc.fill_null(pc.or_(pc.less(array, 0), pc.greater_equal(array, DAY_MICROS)), False)
    place = wrong.index(True).as_py()
    if place >= 0:
        raise InvalidError(
            f"column {where!r} is a time, given as microseconds of the day: expected 0 to {DAY_MICROS - 1}, "
            f"found {array[place].as_py()}"
        )
    return array.cast(pa.int64()).view(_TIME)


def _to_text(array: pa.Array, data_type: Atomic, _: str) -> pa.Array:
    """The usual spelling of uuids; what is text already stays so."""
    storage = array.storage if isinstance(array, pa.ExtensionArray) else array
    if data_type.kind not in STRINGS or storage.type != _UUID:
        return array
    missing = storage.is_null()
    data = np.frombuffer(storage.buffers()[1], np.uint8)[storage.offset * 16 :][: len(storage) * 16].reshape(-1, 16)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    text = np.full((len(storage), _UUID_LETTERS), ord("-"), np.uint8)
    # Two letters a byte, with dashes after bytes 4, 6, 8 and 10.
    places = np.array([2 * byte + sum(byte >= dash for dash in (4, 6, 8, 10)) for byte in range(16)])
    text[:, places], text[:, places + 1] = digits[data >> 4], digits[data & 15]
    offsets = pa.py_buffer(np.arange(0, (len(storage) + 1) * _UUID_LETTERS, _UUID_LETTERS, dtype=np.int32))
    made = pa.StringArray.from_buffers(len(storage), offsets, pa.py_buffer(text.tobytes()))
    return pc.if_else(missing, pa.scalar(None, pa.string()), made) if storage.null_count else made
