"""Arrow columns of a payload to columns of a table's types, whole columns at a time: the twin of `payload_values`.

Only columns all of whose values fit are taken, without a change of the table: everything else is left to records, which decide
value by value, and so is every error.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.types import MAX_LENGTH, Array, Atomic, DataType, Kind, Row
from lakelet.service.ingest.payload_growth import EXACT

_INTEGERS = {Kind.TINYINT: pa.int8(), Kind.SMALLINT: pa.int16(), Kind.INT: pa.int32(), Kind.BIGINT: pa.int64()}


class NotColumnarError(Exception):
    """A column that has to be looked at value by value."""


def payload_column(column: pa.Array, data_type: DataType, *, takes_large: bool) -> pa.Array:
    """A column in a table's type; NotColumnarError where a value does not fit. Integers beyond 2^53 need `takes_large`."""
    if column.null_count == len(column):
        return pa.nulls(len(column), to_arrow(data_type))
    match data_type:
        case Atomic(kind=kind) if kind in _INTEGERS:
            return _integers(column, kind, takes_large=takes_large)
        case Atomic(kind=Kind.DOUBLE):
            return _doubles(column)
        case Atomic(kind=Kind.BOOLEAN) if pa.types.is_boolean(column.type):
            return column
        case Atomic(kind=Kind.VARCHAR, precision=length) if length == MAX_LENGTH and _is_text(column.type):
            return column.cast(pa.string())
        case Array(element) if pa.types.is_list(column.type):
            values = payload_column(column.flatten(), element, takes_large=takes_large)
            lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
            offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
            mask = column.is_null() if column.null_count else None
            return pa.ListArray.from_arrays(pa.array(offsets), values, type=to_arrow(data_type), mask=mask)
        case Row() if pa.types.is_struct(column.type):
            found = struct_columns(column, data_type, frozenset(), takes_large=takes_large)
            mask = column.is_null() if column.null_count else None
            return pa.StructArray.from_arrays(found, fields=list(to_arrow(data_type)), mask=mask)
    raise NotColumnarError


def struct_columns(
    column: pa.StructArray, row: Row, exact: frozenset[str], *, takes_large: bool = False
) -> list[pa.Array]:
    """The columns of a ROW's fields; fields in `exact`, or with `takes_large` all, may hold integers beyond 2^53."""
    names = [field.name for field in column.type]
    if len(set(names)) < len(names):
        raise NotColumnarError
    given = dict(zip(names, column.flatten(), strict=True))
    known = {field.name for field in row.fields}
    if any(one.null_count < len(one) for name, one in given.items() if name not in known):
        raise NotColumnarError
    return [
        pa.nulls(len(column), to_arrow(field.type))
        if field.name not in given
        else payload_column(given[field.name], field.type, takes_large=takes_large or field.name in exact)
        for field in row.fields
    ]


def _integers(column: pa.Array, kind: Kind, *, takes_large: bool) -> pa.Array:
    if pa.types.is_floating(column.type):
        # One that is integral is an integer however it came.
        _within_exact(column)
    elif not pa.types.is_integer(column.type):
        raise NotColumnarError
    elif not takes_large and kind is Kind.BIGINT:
        _within_exact(column)
    try:
        return column.cast(_INTEGERS[kind])
    except pa.ArrowInvalid:
        raise NotColumnarError from None


def _doubles(column: pa.Array) -> pa.Array:
    if pa.types.is_integer(column.type):
        _within_exact(column)
    elif not (pa.types.is_float64(column.type) or pa.types.is_float32(column.type)):
        raise NotColumnarError
    return column.cast(pa.float64())


def _within_exact(column: pa.Array) -> None:
    """NotColumnarError for a number beyond 2^53, and for what is none."""
    found = pc.min_max(column)
    least, most = found["min"].as_py(), found["max"].as_py()
    if not -EXACT <= least <= most <= EXACT:
        raise NotColumnarError


def _is_text(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))
