"""Cast incoming rows to the table's columns, with only lossless conversions.

Columns are matched by name. A type is converted only where every value survives (checked by value, in `sink/rows/conversion`):
numbers into a type that holds them, times without rounding, dates to the timestamp of their midnight and back, text and binary
between Arrow's layouts, dictionaries to their values, timestamps with a zone to the same instant in UTC, uuids to their text or
bytes. Text is never parsed. A column that is missing takes its default, else NULL. The first offending row is named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_kinds import is_bytes, is_text
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.types import (
    BINARIES,
    FLOATS,
    INTEGERS,
    STRINGS,
    TIMESTAMPS,
    Array,
    Atomic,
    DataType,
    Field,
    Kind,
    Map,
    Multiset,
    Row,
)
from lakelet.sink.rows.conversion import convert_array
from lakelet.sink.rows.defaults import LITERALS, ColumnDefaults
from lakelet.sink.rows.value_checks import HAS_ZONE, NEEDS_ZONE, check_values, shown_value

_TYPES = pa.types
# Types that tables do not support, and the types that their values can be stored as.
_HINTS: dict[Callable[[pa.DataType], bool], str] = {
    _TYPES.is_duration: "; tables have no durations: cast it to a whole number of its units, for BIGINT, or to text",
    _TYPES.is_interval: "; tables have no intervals: cast it to a whole number of its units, for BIGINT, or to text",
}


class RowCaster:
    """Turns batches of one input schema into batches of a table's columns; those that they lack take their `defaults`."""

    def __init__(self, fields: Sequence[Field], defaults: ColumnDefaults = LITERALS) -> None:
        self._fields = tuple(fields)
        self._defaults = defaults
        self._schema = arrow_schema(fields)
        self._checked: pa.Schema | None = None

    @property
    def schema(self) -> pa.Schema:
        """The schema of the cast batches."""
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
                arrays.append(self._defaults.array(field, batch.num_rows))
                continue
            array = _convert(batch.column(index), target.type, field, first_row)
            check_values(array, field.type, field.name, first_row)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def check_names(self, schema: pa.Schema) -> None:
        """InvalidError for columns that are not the table's, and for those that are there twice."""
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

    def _check_schema(self, schema: pa.Schema) -> None:
        self.check_names(schema)
        for field in self._fields:
            index = schema.get_field_index(field.name)
            if index >= 0:
                _check_castable(schema.field(index).type, field.type, field.name)
            elif not field.type.nullable and not self._defaults.has(field):
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
                f"column {where!r} is {target}; the data has {source}, which does not convert without loss{_hint(source, target)}"
            )


def _hint(source: pa.DataType, target: DataType) -> str:
    if _TYPES.is_timestamp(source) and isinstance(target, Atomic) and target.kind in TIMESTAMPS:
        return HAS_ZONE if target.kind is Kind.TIMESTAMP else NEEDS_ZONE
    return next((hint for is_kind, hint in _HINTS.items() if is_kind(source)), "")


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


def _is_day_or_naive(source: pa.DataType) -> bool:
    return bool(_TYPES.is_date(source) or _is_naive(source))


def _is_number(source: pa.DataType) -> bool:
    return bool(_TYPES.is_integer(source) or _TYPES.is_floating(source) or _TYPES.is_decimal(source))


def _is_text_or_uuid(source: pa.DataType) -> bool:
    return is_text(source) or source == pa.uuid()


def _is_bytes_or_uuid(source: pa.DataType) -> bool:
    return is_bytes(source) or source == pa.uuid()


_ACCEPTS: dict[Kind, Callable[[pa.DataType], bool]] = {
    Kind.BOOLEAN: _TYPES.is_boolean,
    **dict.fromkeys((*INTEGERS, *FLOATS, Kind.DECIMAL), _is_number),
    **dict.fromkeys(STRINGS, _is_text_or_uuid),
    **dict.fromkeys(BINARIES, _is_bytes_or_uuid),
    Kind.DATE: _is_day_or_naive,
    Kind.TIME: _TYPES.is_time,
    Kind.TIMESTAMP: _is_day_or_naive,
    Kind.TIMESTAMP_LTZ: _is_zoned,
}


def _convert(array: pa.Array, target: pa.DataType, field: Field, first_row: int) -> pa.Array:
    if array.type == target:
        return array
    try:
        return convert_array(array, target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        _check_nulls(array, target, field, first_row)
        raise InvalidError(
            f"column {field.name!r} is {field.type}; {_offender(array, target, first_row)} does not fit ({error})"
        ) from error


def _check_nulls(array: pa.Array, target: pa.DataType, field: Field, first_row: int) -> None:
    """Raise an error that names the NULL which kept an array from converting, if that was the reason."""
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
            convert_array(array.take(pa.array(range(low, middle))), target)
            low = middle
        except pa.ArrowException:
            high = middle
    return f"row {first_row + low} with {shown_value(array[low])}" if len(array) else "the data"
