"""Field ids in data files, by Paimon's rule.

A column carries its schema's field id. The element of an ARRAY and the key and value of a MAP have no field of their
own; their ids are derived from the enclosing field's id and their nesting depth in it:

    element, value   BASE + id * 1024 + depth        key   BASE - (id * 1024 + depth)        BASE = (2^31 - 1) / 4
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa

from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.types import Array, DataType, Field, Map, Multiset, Row

_BASE = (2**31 - 1) // 4
_DEPTHS = 1024
_KEY = b"PARQUET:field_id"
# Every file of a table needs the same one, and types are values.
_REMEMBERED = 64


def schema_with_ids(fields: Sequence[Field]) -> pa.Schema:
    """The Arrow schema of these columns with a field id on every field, nested ones included."""
    return _remembered_schema(tuple(fields))


@lru_cache(maxsize=_REMEMBERED)
def _remembered_schema(fields: tuple[Field, ...]) -> pa.Schema:
    return pa.schema([_field(field.name, field.type, field.id, field.id, 0) for field in fields])


def element_id(owner: int, depth: int) -> int:
    """The id of an array's element or a map's value that lies `depth` deep in the column `owner`."""
    return _BASE + owner * _DEPTHS + depth


def key_id(owner: int, depth: int) -> int:
    """The id of a map's key."""
    return _BASE - (owner * _DEPTHS + depth)


def _field(name: str, data_type: DataType, number: int, owner: int, depth: int) -> pa.Field:
    metadata = {_KEY: str(number).encode()}
    return pa.field(name, _type(data_type, owner, depth), nullable=data_type.nullable, metadata=metadata)


def _type(data_type: DataType, owner: int, depth: int) -> pa.DataType:
    inner = owner * _DEPTHS + depth + 1
    match data_type:
        case Array(element):
            return pa.list_(_field("element", element, _BASE + inner, owner, depth + 1))
        case Map(key, value):
            key_field = _field("key", key, _BASE - inner, owner, depth + 1).with_nullable(False)
            return pa.map_(key_field, _field("value", value, _BASE + inner, owner, depth + 1))
        case Multiset(element):
            key_field = _field("key", element, _BASE - inner, owner, depth + 1).with_nullable(False)
            count = pa.field("value", pa.int32(), nullable=False, metadata={_KEY: str(_BASE + inner).encode()})
            return pa.map_(key_field, count)
        case Row(fields):
            return pa.struct([_field(field.name, field.type, field.id, field.id, 0) for field in fields])
        case _:
            return to_arrow(data_type)
