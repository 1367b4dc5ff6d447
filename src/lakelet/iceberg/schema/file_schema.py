"""The Arrow schema of data files for an Iceberg schema, with field ids at every depth.

Names that Avro would not take are escaped as Iceberg's engines escape them (`a b` is `a_x20b`); readers go by ids. Text and lists
are of Arrow's small kind, which is what most rows come in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema, sanitize_column_names
from pyiceberg.types import IcebergType, ListType, MapType, PrimitiveType, StructType

_TYPES = pa.types


@dataclass(frozen=True, slots=True)
class LeafColumn:
    """A column of a Parquet file. `path` are the names from the table's column down, `place` says which of its siblings each is,
    and `parquet_path` is the path in the file. It is `repeated` inside a list or map."""

    field_id: int
    type: PrimitiveType
    path: tuple[str, ...]
    place: tuple[int, ...]
    parquet_path: str
    repeated: bool

    @property
    def nested(self) -> bool:
        """Whether it is inside a struct, list or map."""
        return len(self.path) > 1


@dataclass(frozen=True, slots=True)
class _Above:
    """The path to a field."""

    path: tuple[str, ...] = ()
    place: tuple[int, ...] = ()
    parquet_path: tuple[str, ...] = ()
    repeated: bool = False

    def and_below(self, name: str, position: int, written: str, *, repeated: bool = False) -> _Above:
        path, place = (*self.path, name), (*self.place, position)
        return _Above(path, place, (*self.parquet_path, written), self.repeated or repeated)


def file_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of data files."""
    found = schema_to_pyarrow(sanitize_column_names(schema))
    return pa.schema([field.with_type(_small(field.type)) for field in found])


def leaf_columns(schema: Schema) -> list[LeafColumn]:
    """All columns of data files, in their order."""
    written = sanitize_column_names(schema).as_struct()
    return list(_leaves(0, schema.as_struct(), written, _Above()))


def _small(arrow: pa.DataType) -> pa.DataType:
    if _TYPES.is_large_string(arrow):
        return pa.string()
    if _TYPES.is_large_binary(arrow):
        return pa.binary()
    if _TYPES.is_struct(arrow):
        return pa.struct([_small_field(field) for field in arrow])
    if _TYPES.is_list(arrow) or _TYPES.is_large_list(arrow):
        return pa.list_(_small_field(arrow.value_field))
    if _TYPES.is_map(arrow):
        return pa.map_(_small_field(arrow.key_field), _small_field(arrow.item_field))
    return arrow


def _small_field(field: pa.Field) -> pa.Field:
    return field.with_type(_small(field.type))


def _leaves(field_id: int, given: IcebergType, written: IcebergType, above: _Above) -> Iterator[LeafColumn]:
    match given, written:
        case StructType(), StructType():
            for position, (ours, theirs) in enumerate(zip(given.fields, written.fields, strict=True)):
                below = above.and_below(ours.name, position, theirs.name)
                yield from _leaves(ours.field_id, ours.field_type, theirs.field_type, below)
        case ListType(), ListType():
            below = above.and_below("element", 0, "list.element", repeated=True)
            yield from _leaves(given.element_id, given.element_type, written.element_type, below)
        case MapType(), MapType():
            below = above.and_below("key", 0, "key_value.key", repeated=True)
            yield from _leaves(given.key_id, given.key_type, written.key_type, below)
            below = above.and_below("value", 1, "key_value.value", repeated=True)
            yield from _leaves(given.value_id, given.value_type, written.value_type, below)
        case PrimitiveType(), _:
            yield LeafColumn(field_id, given, above.path, above.place, ".".join(above.parquet_path), above.repeated)
