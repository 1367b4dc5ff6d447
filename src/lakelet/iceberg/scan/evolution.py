"""Schema evolution: map a file's columns to the schema that is read by field id, renamed, widened or filled in, at every depth.

    stored in the file                         read as
    1: id int                                  1: id long                          widened
    2: qty int                                 2: quantity int                     renamed
    3: s struct<4: a int, 5: b string>         3: s struct<5: b string, 6: c int>  a dropped, c NULL or its initial default

A file without field ids, such as one that was adopted into the table, is matched by the names of the
table's name mapping. NULL lists, maps and structs stay NULL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType, UUIDType

from lakelet.errors import CorruptionError, InvalidError

_ID_KEYS = (b"PARQUET:field_id", b"iceberg.id")
_UTC = ("UTC", "+00:00", "Etc/UTC", "Z")


@dataclass(frozen=True, slots=True)
class Stored:
    """A field of a file: its place among its siblings, its id, and what is inside of it (of a list the element, of a map key
    and value)."""

    place: int
    field_id: int | None
    name: str
    type: pa.DataType
    children: tuple[Stored, ...] = ()


def stored_fields(schema: pa.Schema, mapping: NameMapping | None, path: str) -> tuple[Stored, ...]:
    """The fields of a file by their ids; InvalidError for a file without ids in a table without a name mapping."""
    given = tuple(_stored(place, field) for place, field in enumerate(schema))
    if any(_has_ids(field) for field in given):
        return given
    if mapping is None:
        raise InvalidError(
            f"{path} has no field ids, and the table has no 'schema.name-mapping.default' that says which column is which"
        )
    return tuple(_mapped(field, mapping.root) for field in given)


def _stored(place: int, field: pa.Field) -> Stored:
    kind = field.type
    inner: Sequence[pa.Field] = ()
    if pa.types.is_struct(kind):
        inner = [kind.field(number) for number in range(kind.num_fields)]
    elif pa.types.is_map(kind):
        inner = [kind.key_field, kind.item_field]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = [kind.value_field]
    found = next((field.metadata[key] for key in _ID_KEYS if field.metadata and key in field.metadata), None)
    children = tuple(_stored(number, one) for number, one in enumerate(inner))
    return Stored(place, None if found is None else int(found), field.name, kind, children)


def _has_ids(field: Stored) -> bool:
    return field.field_id is not None or any(_has_ids(child) for child in field.children)


def _mapped(field: Stored, names: Sequence[MappedField]) -> Stored:
    found = next((one for one in names if field.name in one.names), None)
    inner = () if found is None else found.fields
    if pa.types.is_struct(field.type):
        children = tuple(_mapped(child, inner) for child in field.children)
    else:
        # Lists and maps have names of their own for what is inside.
        called = ("key", "value") if pa.types.is_map(field.type) else ("element",)
        renamed = [
            Stored(one.place, None, name, one.type, one.children)
            for one, name in zip(field.children, called, strict=False)
        ]
        children = tuple(_mapped(child, inner) for child in renamed)
    return Stored(field.place, None if found is None else found.field_id, field.name, field.type, children)


@dataclass(frozen=True, slots=True)
class PlainColumn:
    """A column that a file has as a whole, under a name and in a type of its own; without either, it is NULL in all rows."""

    name: str
    type: pa.DataType
    stored_name: str | None = None
    stored_type: pa.DataType | None = None


@dataclass(frozen=True, slots=True)
class PlainColumns:
    """How columns are stored in a file, and all that the file has: names with types."""

    columns: tuple[PlainColumn, ...]
    stored: tuple[tuple[str, str], ...]


def plain_columns(
    stored: Sequence[Stored], constants: Mapping[int, Any], fields: Sequence[NestedField]
) -> PlainColumns | None:
    """How columns are stored in a file, for readers that know nothing of ids; None where one is neither a column of the file
    nor NULL: a value that all rows have, or a nested column whose members changed."""
    by_id = {one.field_id: one for one in stored}
    found = []
    for field in fields:
        kind, there = arrow_type(field.field_type), by_id.get(field.field_id)
        if there is None:
            if field.required or field.initial_default is not None or constants.get(field.field_id) is not None:
                return None
            found.append(PlainColumn(field.name, kind))
        elif not _same_layout(there, field.field_type):
            return None
        else:
            found.append(PlainColumn(field.name, kind, there.name, there.type))
    return PlainColumns(tuple(found), tuple((one.name, str(one.type)) for one in stored))


def _same_layout(stored: Stored, wanted: IcebergType) -> bool:
    """Whether a type has the same members, under the same names, all the way down."""
    match wanted:
        case StructType():
            members = [(field.field_id, field.name) for field in wanted.fields]
            same = members == [(child.field_id, child.name) for child in stored.children]
            return same and all(
                _same_layout(child, field.field_type)
                for child, field in zip(stored.children, wanted.fields, strict=True)
            )
        case ListType():
            return len(stored.children) == 1 and _same_layout(stored.children[0], wanted.element_type)
        case MapType():
            key, value = wanted.key_type, wanted.value_type
            both = zip(stored.children, (key, value), strict=False)
            return len(stored.children) == len((key, value)) and all(_same_layout(one, kind) for one, kind in both)
    return not stored.children


def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema in which rows come: no field says that it cannot be NULL."""
    return pa.schema([pa.field(field.name, arrow_type(field.field_type)) for field in schema.fields])


def arrow_type(kind: IcebergType) -> pa.DataType:
    """The Arrow type in which values of an Iceberg type come."""
    match kind:
        case StructType():
            return pa.struct([pa.field(field.name, arrow_type(field.field_type)) for field in kind.fields])
        case ListType():
            return pa.list_(pa.field("element", arrow_type(kind.element_type)))
        case MapType():
            return pa.map_(arrow_type(kind.key_type), arrow_type(kind.value_type))
    made = schema_to_pyarrow(kind)
    if pa.types.is_large_string(made):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(made) else made


@dataclass(frozen=True, slots=True)
class Evolution:
    """How the columns of one file become those of a schema. `constants` are values by field id of columns that the file need not
    have, because all its rows have the same."""

    stored: tuple[Stored, ...]
    constants: Mapping[int, Any]
    path: str

    def needed(self, fields: Sequence[NestedField]) -> list[Stored]:
        """The top-level fields of the file that columns are made of, in the file's order."""
        wanted = {field.field_id for field in fields}
        return [one for one in self.stored if one.field_id in wanted]

    def batch(self, given: pa.RecordBatch, fields: Sequence[NestedField]) -> pa.RecordBatch:
        """Rows in columns `fields`, out of a batch of exactly the needed ones."""
        there = {one.field_id: place for place, one in enumerate(self.needed(fields))}
        by_id = {one.field_id: one for one in self.stored}
        columns = []
        for field in fields:
            if field.field_id in there:
                columns.append(
                    self._fitted(given.column(there[field.field_id]), by_id[field.field_id], field.field_type)
                )
            else:
                columns.append(self._missing(field, given.num_rows))
        schema = pa.schema([pa.field(field.name, arrow_type(field.field_type)) for field in fields])
        if not columns:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * given.num_rows, pa.struct([])))
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _missing(self, field: NestedField, count: int) -> pa.Array:
        kind = arrow_type(field.field_type)
        value = self.constants.get(field.field_id)
        if value is None:
            value = field.initial_default
        if value is None:
            if field.required:
                raise CorruptionError(
                    f"{self.path} has no column {field.name!r} (field {field.field_id}), which is required"
                )
            return pa.nulls(count, kind)
        return pa.repeat(_scalar(value, kind), count)

    def _fitted(self, array: pa.Array, stored: Stored, wanted: IcebergType) -> pa.Array:
        if isinstance(array.type, pa.DictionaryType):
            array = array.dictionary_decode()
        match wanted:
            case StructType() if pa.types.is_struct(array.type):
                return self._struct(array, stored, wanted)
            case ListType() if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
                offsets, start, length = _offsets(array)
                values = self._fitted(array.values.slice(start, length), stored.children[0], wanted.element_type)
                return pa.ListArray.from_arrays(offsets, values, type=arrow_type(wanted), mask=_mask(array))
            case MapType() if pa.types.is_map(array.type):
                offsets, start, length = _offsets(array)
                keys = self._fitted(array.keys.slice(start, length), stored.children[0], wanted.key_type)
                items = self._fitted(array.items.slice(start, length), stored.children[1], wanted.value_type)
                return pa.MapArray.from_arrays(offsets, keys, items, type=arrow_type(wanted), mask=_mask(array))
        if not wanted.is_primitive:
            raise CorruptionError(f"{self.path}: column {stored.name!r} is stored as {stored.type}, expected {wanted}")
        return self._cast(array, stored, wanted)

    def _struct(self, array: pa.StructArray, stored: Stored, wanted: StructType) -> pa.Array:
        by_id = {child.field_id: child for child in stored.children}
        children = []
        for field in wanted.fields:
            child = by_id.get(field.field_id)
            if child is None:
                children.append(self._missing(field, len(array)))
            else:
                children.append(self._fitted(array.field(child.place), child, field.field_type))
        return pa.StructArray.from_arrays(
            children, fields=list(arrow_type(wanted)), mask=array.is_null() if array.null_count else None
        )

    def _cast(self, array: pa.Array, stored: Stored, wanted: IcebergType) -> pa.Array:
        target = arrow_type(wanted)
        given = array.type
        if given == target:
            return array
        if isinstance(wanted, UUIDType) and _is_bytes(given):
            return pa.ExtensionArray.from_storage(target, pc.cast(array, target.storage_type))
        if isinstance(given, pa.UuidType):
            array, given = array.storage, array.storage.type
            if given == target:
                return array
        if not _is_promotion(given, target):
            raise CorruptionError(f"{self.path}: column {stored.name!r} is stored as {given}, expected {wanted}")
        # Nanoseconds, which other writers put into files of tables that have microseconds, are cut.
        finer = pa.types.is_timestamp(given) and given.unit == "ns"
        return pc.cast(array, target, safe=not finer)


def _is_promotion(given: pa.DataType, target: pa.DataType) -> bool:
    """Whether values of a type may be read as another: Iceberg's promotions, and types that Iceberg does not distinguish."""
    types = pa.types
    if types.is_integer(given) and types.is_integer(target):
        return bool(given.bit_width <= target.bit_width)
    if types.is_floating(given) and types.is_floating(target):
        return bool(given.bit_width <= target.bit_width)
    if types.is_decimal(given) and types.is_decimal(target):
        return bool(given.scale == target.scale and given.precision <= target.precision)
    if types.is_timestamp(given) and types.is_timestamp(target):
        return bool(given.tz is None or given.tz in _UTC)
    if types.is_date(given) and types.is_timestamp(target):
        return bool(target.tz is None)
    if types.is_time(target):
        # ORC has no times, only the number of microseconds.
        return bool(types.is_time(given) or types.is_int64(given))
    texts = (types.is_string, types.is_large_string, types.is_string_view)
    if any(is_text(given) for is_text in texts) and types.is_string(target):
        return True
    # Some writers omit the annotation that bytes are a string.
    if _is_bytes(given) and (types.is_binary(target) or types.is_string(target)):
        return True
    # ORC has no bytes of fixed length; where one is longer or shorter, the cast fails.
    return bool(types.is_null(given) or (_is_bytes(given) and types.is_fixed_size_binary(target)))


def _is_bytes(kind: pa.DataType) -> bool:
    """Whether values are bytes, of a fixed length or not."""
    types = pa.types
    anyhow = (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)
    return any(is_kind(kind) for is_kind in anyhow)


def _offsets(array: pa.Array) -> tuple[pa.Array, int, int]:
    """Offsets from 0 on, and the span of the values that they are of."""
    offsets = array.offsets
    start, end = offsets[0].as_py(), offsets[-1].as_py()
    return pc.subtract(offsets, start).cast(pa.int32()), start, end - start


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    if isinstance(kind, pa.UuidType):
        storage = value.bytes if isinstance(value, UUID) else value
        return pa.ExtensionScalar.from_storage(kind, pa.scalar(storage, pa.binary(16)))
    return pa.scalar(value, kind)
