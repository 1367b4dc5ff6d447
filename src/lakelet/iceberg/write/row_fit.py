"""Check and convert input rows to the columns of an Iceberg table's files.

Columns, and members of structs, are matched by name; case-insensitively only where that is unambiguous. A type is
converted only where every value survives, by the same rule as for Lakelet's own tables (`sink/rows/conversion`), and text or
16 bytes to a uuid. A column that is missing takes its default, else NULL. Errors name
the column, what was expected and what was found, and the first row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType, UUIDType

from lakelet.errors import InvalidError
from lakelet.iceberg.schema.file_schema import file_schema
from lakelet.iceberg.write.value_fit import check_type, fit_values

_TYPES = pa.types
_LISTS = (
    _TYPES.is_list,
    _TYPES.is_large_list,
    _TYPES.is_fixed_size_list,
    _TYPES.is_list_view,
    _TYPES.is_large_list_view,
)

RowOf = Callable[[int], int]


class RowFit:
    """Converts the batches of one input to the columns of a table's files."""

    def __init__(self, schema: Schema) -> None:
        self._fields = schema.fields
        self.schema = file_schema(schema)
        self._checked: pa.Schema | None = None
        self._sources: dict[str, int] = {}
        self._rows = 0

    def check_schema(self, schema: pa.Schema) -> None:
        """InvalidError for columns that are missing, too many, or of a type that never fits."""
        if schema is self._checked:
            return
        self._sources = _matched(schema.names, self._fields, "the data", "column")
        for field in self._fields:
            position = self._sources.get(field.name)
            if position is None:
                _check_missing(field, f"column {field.name!r}")
            else:
                _check_nested(schema.field(position).type, field.field_type, field.name)
        self._checked = schema

    def fit(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows in the table's columns."""
        self.check_schema(batch.schema)
        first = self._rows
        arrays = []
        for field, target in zip(self._fields, self.schema, strict=True):
            position = self._sources.get(field.name)
            if position is None:
                arrays.append(_default(field, target.type, batch.num_rows))
                continue
            array = _fitted(batch.column(position), field, target.type, field.name, lambda row: first + row)
            _check_required(array, field, field.name, lambda row: first + row)
            arrays.append(array)
        self._rows += batch.num_rows
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _matched(names: Sequence[str], fields: Sequence[NestedField], what: str, kind: str) -> dict[str, int]:
    """For each field that is given, by name, its position among the names."""
    found: dict[str, int] = {}
    known = {field.name for field in fields}
    inexact: dict[str, list[str]] = {}
    for field in fields:
        inexact.setdefault(field.name.lower(), []).append(field.name)
    for position, name in enumerate(names):
        choices = [name] if name in known else inexact.get(name.lower(), [])
        if not choices:
            raise InvalidError(
                f"{what}: the {kind} {name!r} is not in the table; expected {', '.join(field.name for field in fields)}"
            )
        if len(choices) > 1:
            raise InvalidError(f"{what}: the {kind} {name!r} may be any of {', '.join(choices)}")
        if choices[0] in found:
            raise InvalidError(f"{what}: the {kind} {choices[0]!r} is given twice")
        found[choices[0]] = position
    return found


def _check_missing(field: NestedField, what: str) -> None:
    if field.required and field.write_default is None:
        raise InvalidError(f"{what}: expected {field.field_type}, required, and the data does not have it")


def _check_nested(source: pa.DataType, kind: IcebergType, where: str) -> None:
    source = _plain(source)
    if _TYPES.is_null(source):
        return
    match kind:
        case StructType() if _TYPES.is_struct(source):
            names = [source.field(index).name for index in range(source.num_fields)]
            places = _matched(names, kind.fields, f"column {where!r}", "field")
            for field in kind.fields:
                if field.name not in places:
                    _check_missing(field, f"column {f'{where}.{field.name}'!r}")
                else:
                    _check_nested(source.field(places[field.name]).type, field.field_type, f"{where}.{field.name}")
        case ListType() if any(is_list(source) for is_list in _LISTS):
            _check_nested(source.value_type, kind.element_type, f"{where}.element")
        case MapType() if _TYPES.is_map(source):
            _check_nested(source.key_type, kind.key_type, f"{where}.key")
            _check_nested(source.item_type, kind.value_type, f"{where}.value")
        case StructType() | ListType() | MapType():
            raise InvalidError(f"column {where!r}: expected {kind}, found {source}")
        case _:
            check_type(source, kind, where)


def _plain(source: pa.DataType) -> pa.DataType:
    """The type of the values."""
    if _TYPES.is_dictionary(source) or _TYPES.is_run_end_encoded(source):
        return _plain(source.value_type)
    return source


def _default(field: NestedField, target: pa.DataType, count: int) -> pa.Array:
    if field.write_default is None:
        return pa.nulls(count, target)
    value = field.write_default
    if isinstance(field.field_type, UUIDType):
        value = getattr(value, "bytes", value)
    return pa.repeat(pa.scalar(value, target), count)


def _fitted(array: pa.Array, field: NestedField, target: pa.DataType, where: str, row_of: RowOf) -> pa.Array:
    if _TYPES.is_dictionary(array.type) or _TYPES.is_run_end_encoded(array.type):
        array = _decoded(array)
    if _TYPES.is_null(array.type):
        return pa.nulls(len(array), target)
    match field.field_type:
        case StructType():
            return _struct(array, field.field_type, target, where, row_of)
        case ListType():
            return _list(array, field.field_type, target, where, row_of)
        case MapType():
            return _map(array, field.field_type, target, where, row_of)
        case kind:
            return fit_values(array, kind, target, where, row_of)


def _decoded(array: pa.Array) -> pa.Array:
    if _TYPES.is_run_end_encoded(array.type):
        return pc.run_end_decode(array)
    values = array.dictionary
    if _TYPES.is_string_view(values.type) or _TYPES.is_binary_view(values.type):
        # Arrow cannot look up in a dictionary of views, as polars makes it.
        values = values.cast(pa.large_string() if _TYPES.is_string_view(values.type) else pa.large_binary())
    return values.take(array.indices)


def _struct(array: pa.Array, kind: StructType, target: pa.DataType, where: str, row_of: RowOf) -> pa.Array:
    names = [array.type.field(index).name for index in range(array.type.num_fields)]
    places = _matched(names, kind.fields, f"column {where!r}", "field")
    # Members of a NULL struct are NULL.
    given = array.flatten()
    present = array.is_valid() if array.null_count else None
    members = []
    for index, field in enumerate(kind.fields):
        arrow, below = target.field(index).type, f"{where}.{field.name}"
        if field.name not in places:
            members.append(_default(field, arrow, len(array)))
            continue
        member = _fitted(given[places[field.name]], field, arrow, below, row_of)
        _check_required(member, field, below, row_of, present)
        members.append(_never_null(member) if field.required and member.null_count else member)
    mask = None if present is None else pc.invert(present)
    return pa.StructArray.from_arrays(members, fields=list(target), mask=mask)


def _never_null(array: pa.Array) -> pa.Array:
    """The values, with anything in place of NULL: Parquet's writer wants none in a required field, even below a NULL struct."""
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(array.type, _never_null(array.storage))
    whole = pa.concat_arrays([array])
    _, *buffers = whole.buffers()
    if _TYPES.is_struct(whole.type):
        return pa.StructArray.from_arrays(
            [whole.field(at) for at in range(whole.type.num_fields)], fields=list(whole.type)
        )
    if _TYPES.is_map(whole.type):
        return pa.MapArray.from_arrays(whole.offsets, whole.keys, whole.items, type=whole.type)
    if _TYPES.is_list(whole.type):
        return pa.ListArray.from_arrays(whole.offsets, whole.values, type=whole.type)
    return pa.Array.from_buffers(whole.type, len(whole), [None, *buffers], 0, whole.offset)


def _list(array: pa.Array, kind: ListType, target: pa.DataType, where: str, row_of: RowOf) -> pa.Array:
    # Without the values below NULL.
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.append(0, np.cumsum(lengths))
    below, owner = f"{where}.element", _owner(offsets, row_of)
    values = _fitted(array.flatten(), kind.element_field, target.value_type, below, owner)
    _check_required(values, kind.element_field, below, owner)
    mask = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, type=target, mask=mask)


def _map(array: pa.Array, kind: MapType, target: pa.DataType, where: str, row_of: RowOf) -> pa.Array:
    # Copied, for keys and items of a sliced map are those of the whole.
    present = pa.concat_arrays([array.filter(array.is_valid())])
    lengths = np.zeros(len(array), np.int64)
    lengths[array.is_valid().to_numpy(zero_copy_only=False)] = np.diff(present.offsets.to_numpy())
    offsets = np.append(0, np.cumsum(lengths))
    owner = _owner(offsets, row_of)
    sides = []
    for field, values, name in ((kind.key_field, present.keys, "key"), (kind.value_field, present.items, "value")):
        arrow = target.key_type if name == "key" else target.item_type
        fitted = _fitted(values, field, arrow, f"{where}.{name}", owner)
        _check_required(fitted, field, f"{where}.{name}", owner)
        sides.append(fitted)
    mask = array.is_null() if array.null_count else None
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), *sides, type=target, mask=mask)


def _owner(offsets: np.ndarray[tuple[int], np.dtype[np.int64]], row_of: RowOf) -> RowOf:
    """Which row an element belongs to."""
    return lambda index: row_of(int(np.searchsorted(offsets, index, side="right")) - 1)


def _check_required(
    array: pa.Array, field: NestedField, where: str, row_of: RowOf, present: pa.Array | None = None
) -> None:
    """Refuses NULL in required fields; values that are not `present` are ignored."""
    if not field.required or not array.null_count:
        return
    missing = array.is_null() if present is None else pc.and_(array.is_null(), present)
    count = pc.sum(missing).as_py()
    if count:
        first = row_of(missing.index(True).as_py())
        raise InvalidError(
            f"column {where!r}: expected {field.field_type}, required, found NULL {count} "
            f"{'time' if count == 1 else 'times'}, first in row {first}"
        )
