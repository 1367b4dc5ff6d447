"""Rows as they come in, checked and turned into the table's columns.

Columns are matched by name. A type is converted only where every value survives: integers, decimals and times into a
type that holds them (checked value by value), text and binary between Arrow's layouts, dictionaries to their values,
timestamps with a zone to the same instant in UTC. Text is never parsed and numbers are never rounded. A column that is
missing takes its default, else NULL. The first offending row is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import InvalidError
from lakelet.model.arrow_kinds import is_bytes, is_text
from lakelet.model.arrow_types import arrow_schema, precision_step
from lakelet.model.types import (
    BINARIES,
    FLOATS,
    INTEGERS,
    MAX_LENGTH,
    STRINGS,
    Array,
    Atomic,
    DataType,
    Field,
    Kind,
    Map,
    Multiset,
    Row,
)
from lakelet.sink.defaults import default_array

_TYPES = pa.types
_LONGEST_INTEGER = 20
_SHOWN_CHARACTERS = 100


class RowCaster:
    """Turns batches of one input schema into batches of a table's columns."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = tuple(fields)
        self._schema = arrow_schema(fields)
        self._checked: pa.Schema | None = None

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches that come out."""
        return self._schema

    def cast(self, batch: pa.RecordBatch, *, first_row: int = 0) -> pa.RecordBatch:
        """The batch in the table's columns; InvalidError for anything that does not fit."""
        if self._checked is None or batch.schema is not self._checked:
            self._check_schema(batch.schema)
            self._checked = batch.schema
        arrays = []
        for field, target in zip(self._fields, self._schema, strict=True):
            index = batch.schema.get_field_index(field.name)
            if index < 0:
                arrays.append(default_array(field, batch.num_rows))
                continue
            array = _convert(batch.column(index), target.type, field, first_row)
            check_values(array, field.type, field.name, first_row)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _check_schema(self, schema: pa.Schema) -> None:
        known = {field.name for field in self._fields}
        names = schema.names
        if len(set(names)) != len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise InvalidError(f"the data has the column {twice[0]!r} {names.count(twice[0])} times")
        unknown = [name for name in names if name not in known]
        if unknown:
            raise InvalidError(
                f"the data has the column {unknown[0]!r}, which is not in the table; "
                f"its columns are {', '.join(f.name for f in self._fields)}"
            )
        for field in self._fields:
            index = schema.get_field_index(field.name)
            if index >= 0:
                _check_castable(schema.field(index).type, field.type, field.name)
            elif not field.type.nullable and field.default is None:
                raise InvalidError(
                    f"column {field.name!r} is {field.type} without a default, but the data does not have it"
                )


def _check_castable(source: pa.DataType, target: DataType, where: str) -> None:
    if _TYPES.is_dictionary(source):
        source = source.value_type
    if _TYPES.is_null(source):
        return
    match target:
        case Row(fields) if _TYPES.is_struct(source):
            _check_struct(source, fields, where)
        case Array(element) if (
            _TYPES.is_list(source)
            or _TYPES.is_large_list(source)
            or _TYPES.is_fixed_size_list(source)
            or _TYPES.is_list_view(source)
        ):
            _check_castable(source.value_type, element, f"{where}.element")
        case Map(key, value) if _TYPES.is_map(source):
            _check_castable(source.key_type, key, f"{where}.key")
            _check_castable(source.item_type, value, f"{where}.value")
        case Multiset(element) if _TYPES.is_map(source):
            _check_castable(source.key_type, element, f"{where}.key")
            _check_castable(source.item_type, Atomic(Kind.INT), f"{where}.value")
        case Atomic(kind, _) if _ACCEPTS[kind](source):
            return
        case _:
            raise InvalidError(
                f"column {where!r} is {target}; the data has {source}, which does not convert without loss"
            )


def _check_struct(source: pa.StructType, fields: Sequence[Field], where: str) -> None:
    known = {field.name for field in fields}
    for inner in source:
        if inner.name not in known:
            raise InvalidError(
                f"column {where!r}: the data has the field {inner.name!r}, which is not among {', '.join(sorted(known))}"
            )
    for field in fields:
        index = source.get_field_index(field.name)
        if index >= 0:
            _check_castable(source.field(index).type, field.type, f"{where}.{field.name}")
        elif not field.type.nullable:
            raise InvalidError(f"column {where!r}: the data lacks the field {field.name!r}, which is {field.type}")


def _is_naive(source: pa.DataType) -> bool:
    return bool(_TYPES.is_timestamp(source) and source.tz is None)


def _is_zoned(source: pa.DataType) -> bool:
    return bool(_TYPES.is_timestamp(source) and source.tz is not None)


def _is_number(source: pa.DataType) -> bool:
    return bool(_TYPES.is_integer(source) or _TYPES.is_floating(source))


def _is_exact(source: pa.DataType) -> bool:
    return bool(_TYPES.is_integer(source) or _TYPES.is_decimal(source))


_ACCEPTS: dict[Kind, Callable[[pa.DataType], bool]] = {
    Kind.BOOLEAN: _TYPES.is_boolean,
    **dict.fromkeys(INTEGERS, _is_exact),
    **dict.fromkeys(FLOATS, _is_number),
    Kind.DECIMAL: _is_exact,
    **dict.fromkeys(STRINGS, is_text),
    **dict.fromkeys(BINARIES, is_bytes),
    Kind.DATE: _TYPES.is_date,
    Kind.TIME: _TYPES.is_time,
    Kind.TIMESTAMP: _is_naive,
    Kind.TIMESTAMP_LTZ: _is_zoned,
}


def _convert(array: pa.Array, target: pa.DataType, field: Field, first_row: int) -> pa.Array:
    if array.type == target:
        return array
    if _holds_dictionary(array.type):
        array = _without_dictionaries(array)
        if array.type == target:
            return array
    try:
        return _cast_array(array, target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        _check_nulls(array, target, field, first_row)
        raise InvalidError(
            f"column {field.name!r} is {field.type}; {_offender(array, target, first_row)} does not fit ({error})"
        ) from error


def _holds_dictionary(arrow: pa.DataType) -> bool:
    if _TYPES.is_dictionary(arrow):
        return True
    return any(_holds_dictionary(arrow.field(index).type) for index in range(arrow.num_fields))


def _without_dictionaries(array: pa.Array) -> pa.Array:
    """The values themselves, in ROWs and ARRAYs too; a dictionary of views, as polars makes, is one Arrow cannot look up in."""
    arrow = array.type
    if _TYPES.is_dictionary(arrow):
        values = array.dictionary
        if _TYPES.is_string_view(values.type) or _TYPES.is_binary_view(values.type):
            values = values.cast(pa.string() if _TYPES.is_string_view(values.type) else pa.binary())
        return pa.DictionaryArray.from_arrays(array.indices, values).dictionary_decode()
    if not _holds_dictionary(arrow):
        return array
    if _TYPES.is_struct(arrow):
        members = [_without_dictionaries(member) for member in array.flatten()]
        return pa.StructArray.from_arrays(members, names=[inner.name for inner in arrow], mask=array.is_null())
    if _TYPES.is_list(arrow) or _TYPES.is_large_list(arrow):
        whole = pa.concat_arrays([array])
        lists = pa.ListArray if _TYPES.is_list(arrow) else pa.LargeListArray
        return lists.from_arrays(whole.offsets, _without_dictionaries(whole.values), mask=whole.is_null())
    return array


def _cast_array(array: pa.Array, target: pa.DataType) -> pa.Array:
    """A safe cast; ArrowInvalid for a value that would change, floating-point numbers included."""
    if _TYPES.is_integer(array.type) and _TYPES.is_decimal(target):
        # From integers Arrow wants room for the greatest of their type; from a decimal it looks at the values.
        array = array.cast(pa.decimal256(_LONGEST_INTEGER + target.scale, target.scale))
    converted = array.cast(target, safe=True)
    if _narrows(array.type, target):
        _check_narrowed(array, converted)
    return converted


def _narrows(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether floating-point numbers lose digits at any depth, which Arrow does not count as unsafe."""
    if _TYPES.is_floating(source) and _TYPES.is_floating(target):
        return bool(source.bit_width > target.bit_width)
    if _TYPES.is_struct(source) and _TYPES.is_struct(target):
        return any(_narrows(inner.type, target.field(inner.name).type) for inner in source)
    if _TYPES.is_map(source) and _TYPES.is_map(target):
        return _narrows(source.key_type, target.key_type) or _narrows(source.item_type, target.item_type)
    if hasattr(source, "value_type") and _TYPES.is_list(target):
        return _narrows(source.value_type, target.value_type)
    return False


def _check_narrowed(array: pa.Array, converted: pa.Array) -> None:
    """ArrowInvalid where a number changed."""
    for wide, narrow in _leaves(array, converted):
        if _narrows(wide.type, narrow.type):
            differs = pc.and_(pc.not_equal(wide, narrow.cast(wide.type)), pc.invert(pc.is_nan(wide)))
            if pc.any(differs).as_py():
                value = wide[differs.index(True).as_py()].as_py()
                raise pa.ArrowInvalid(f"{value!r} cannot be held exactly")


def _leaves(array: pa.Array, converted: pa.Array) -> Iterator[tuple[pa.Array, pa.Array]]:
    """The arrays without children inside, before and after; values are NULL where anything above them is."""
    if _TYPES.is_struct(array.type):
        members = dict(zip([inner.name for inner in converted.type], converted.flatten(), strict=True))
        for inner, member in zip(array.type, array.flatten(), strict=True):
            yield from _leaves(member, members[inner.name])
    elif _TYPES.is_map(array.type):
        before, after = (pa.concat_arrays([found.drop_null()]) for found in (array, converted))
        yield from _leaves(before.keys, after.keys)
        yield from _leaves(before.items, after.items)
    elif _TYPES.is_list(converted.type):
        yield from _leaves(array.flatten(), converted.flatten())
    else:
        yield array, converted


def _check_nulls(array: pa.Array, target: pa.DataType, field: Field, first_row: int) -> None:
    """Names the NULL that kept an array from converting, if that was the reason."""
    try:
        relaxed = array.cast(_nullable(target), safe=True)
    except pa.ArrowException:
        return
    check_values(relaxed, field.type, field.name, first_row)


def _nullable(arrow: pa.DataType) -> pa.DataType:
    """The type with NULL allowed everywhere but in keys."""
    if _TYPES.is_struct(arrow):
        return pa.struct([inner.with_type(_nullable(inner.type)).with_nullable(True) for inner in arrow])
    if _TYPES.is_map(arrow):
        return pa.map_(arrow.key_field, arrow.item_field.with_type(_nullable(arrow.item_type)).with_nullable(True))
    if _TYPES.is_list(arrow):
        return pa.list_(arrow.value_field.with_type(_nullable(arrow.value_type)).with_nullable(True))
    return arrow


def _offender(array: pa.Array, target: pa.DataType, first_row: int) -> str:
    """The first row that does not convert, found by halving."""
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            # Taken, not sliced: the members of a sliced list are all converted.
            _cast_array(array.take(pa.array(range(low, middle))), target)
            low = middle
        except pa.ArrowException:
            high = middle
    return f"row {first_row + low} with {_short(array[low].as_py())}" if len(array) else "the data"


def _short(value: object) -> str:
    """A value for a message, which a long one would fill."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def check_values(array: pa.Array, data_type: DataType, where: str, first_row: int = 0) -> None:
    """Refuses NULL in NOT NULL columns and fields, text or bytes longer than the type allows, and times with more digits."""
    _check_inside(array, data_type, where, lambda row: first_row + row)


def _check_inside(array: pa.Array, data_type: DataType, where: str, row_of: Callable[[int], int]) -> None:
    """Like `check_values`; `row_of` tells the row of the table that a value belongs to."""
    if not data_type.nullable and array.null_count:
        row = row_of(array.is_null().index(True).as_py())
        raise InvalidError(f"column {where!r} is NOT NULL, but row {row} has NULL")
    match data_type:
        case Atomic(kind, precision) if kind in (*STRINGS, *BINARIES) and precision < MAX_LENGTH:
            lengths = pc.utf8_length(array) if kind in STRINGS else pc.binary_length(array)
            longest = pc.max(lengths).as_py()
            if longest is not None and longest > precision:
                index = pc.greater(lengths, precision).index(True).as_py()
                raise InvalidError(
                    f"column {where!r} is {data_type}, but row {row_of(index)} has a value of length {lengths[index].as_py()}"
                )
        case Atomic() if (step := precision_step(data_type)) > 1:
            units = array.view(pa.int32() if _TYPES.is_time32(array.type) else pa.int64())
            surplus = np.flatnonzero(units.fill_null(0).to_numpy() % step)
            if surplus.size:
                index = int(surplus[0])
                raise InvalidError(
                    f"column {where!r} is {data_type}, but row {row_of(index)} has {array[index].as_py()!s}, with more digits"
                )
        case Row(fields) if _needs_check(data_type):
            # Values below a NULL struct do not count.
            present, inner_row = _present(array, row_of)
            for index, field in enumerate(fields):
                _check_inside(present.field(index), field.type, f"{where}.{field.name}", inner_row)
        case Array(element) if _needs_check(data_type):
            present, inner_row = _present(array, row_of)
            _check_inside(present.flatten(), element, f"{where}.element", _owner(present.offsets, inner_row))
        case Multiset(element) if _needs_check(data_type):
            _check_inside(array, Map(element, Atomic(Kind.INT, nullable=False), data_type.nullable), where, row_of)
        case Map(key, value) if _needs_check(data_type):
            present, inner_row = _present(array, row_of)
            # Copied, for keys and items of a sliced map are those of the whole.
            present = pa.concat_arrays([present])
            owner = _owner(present.offsets, inner_row)
            _check_inside(present.keys, key, f"{where}.key", owner)
            _check_inside(present.items, value, f"{where}.value", owner)
        case _:
            return


def _present(array: pa.Array, row_of: Callable[[int], int]) -> tuple[pa.Array, Callable[[int], int]]:
    """The values that are not NULL, and which row each belongs to."""
    if not array.null_count:
        return array, row_of
    return array.drop_null(), lambda index: row_of(pc.indices_nonzero(array.is_valid())[index].as_py())


def _owner(offsets: pa.Array, row_of: Callable[[int], int]) -> Callable[[int], int]:
    """Which row an element belongs to, told by where the lists begin."""
    starts = offsets.to_numpy() - offsets[0].as_py()
    return lambda index: row_of(int(np.searchsorted(starts, index, side="right")) - 1)


def _needs_check(data_type: DataType) -> bool:
    """Whether anything inside a type restricts its values."""
    match data_type:
        case Array(element) | Multiset(element):
            inner: tuple[DataType, ...] = (element,)
        case Map(key, value):
            inner = (key, value)
        case Row(fields):
            inner = tuple(field.type for field in fields)
        case Atomic(kind, precision):
            return (kind in (*STRINGS, *BINARIES) and precision < MAX_LENGTH) or precision_step(data_type) > 1
    return any(not child.nullable or _needs_check(child) for child in inner)
