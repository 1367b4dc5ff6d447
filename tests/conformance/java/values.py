"""Arrow values in the JSON spelling of Judge.java, so that rows of both sides compare with `==`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from tests.conformance.java.client import Row

FRACTION_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def rows_of(table: pa.Table) -> list[Row]:
    """The rows of an Arrow table as Java Paimon's reader prints them.

    A timestamp gets the digits of its Arrow unit, which are those Java prints for TIMESTAMP(0), (3), (6) and (9).
    """
    columns = {name: _spell_all(table.column(name)) for name in table.column_names}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _spell_all(column: pa.ChunkedArray) -> list[Any]:
    spell = speller(column.type)
    if pa.types.is_timestamp(column.type):
        # Python's datetime has no nanoseconds, so timestamps go through their integers.
        return [None if value is None else spell(value) for value in column.cast(pa.int64()).to_pylist()]
    return [None if value is None else spell(value) for value in column.to_pylist()]


def speller(type_: pa.DataType) -> Callable[[Any], Any]:
    """The function that spells one non-null value of the type; timestamps inside nested types are datetimes."""
    if pa.types.is_decimal(type_):
        return lambda value: format(value, "f")
    if pa.types.is_float32(type_):
        # The shortest decimal that reads back as this float, as Java prints it.
        return lambda value: _spell_float(float(str(np.float32(value))))
    if pa.types.is_floating(type_):
        return _spell_float
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return bytes.hex
    if pa.types.is_date(type_):
        return lambda value: value.isoformat()
    if pa.types.is_time(type_):
        return lambda value: value.isoformat(timespec="milliseconds")
    if pa.types.is_timestamp(type_):
        return lambda value: _spell_timestamp(value, type_)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        element = _nullable(speller(type_.value_type))
        return lambda values: [element(value) for value in values]
    if pa.types.is_map(type_):
        key, item = speller(type_.key_type), _nullable(speller(type_.item_type))
        return lambda pairs: [[key(k), item(v)] for k, v in pairs]
    if pa.types.is_struct(type_):
        fields = {field.name: _nullable(speller(field.type)) for field in type_}
        return lambda struct: {name: spell(struct[name]) for name, spell in fields.items()}
    return lambda value: value


def _nullable(spell: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else spell(value)


def _spell_float(value: float) -> float | str:
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _spell_timestamp(value: Any, type_: pa.TimestampType) -> str:
    digits = FRACTION_DIGITS[type_.unit]
    if not isinstance(value, int):
        value = pa.scalar(value, type_).cast(pa.int64()).as_py()
    text = str(np.datetime64(value, type_.unit)).replace("T", " ")
    assert len(text.partition(".")[2]) == digits, text
    return text + ("Z" if type_.tz is not None else "")
