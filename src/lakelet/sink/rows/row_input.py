"""Convert the input of `write` to a stream of record batches.

What is no table fails here, with its kind; whether columns and values fit is checked by the caster that comes next. Dicts
are the exception: they are read as the table's types, so that their values are checked here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import InvalidError
from lakelet.model.arrow.python_values import is_kept, without_uuids
from lakelet.model.types import Field
from lakelet.sink.rows.defaults import LITERALS, ColumnDefaults
from lakelet.sink.rows.value_checks import HAS_ZONE, NEEDS_ZONE


class Apart(Enum):
    """Whether rows that leave out different columns come in batches of their own: in the order of the rows, or grouped by their
    columns, which makes fewer batches."""

    NEVER = "never"
    IN_ORDER = "in order"
    TOGETHER = "together"


_Gaps = frozenset[tuple[str, ...]]
_NO_GAPS: _Gaps = frozenset()
# The errors that Arrow raises for Python values that are not of a type.
_REFUSALS = (pa.ArrowException, TypeError, OverflowError, ValueError)


def batches_of(
    data: Any,
    schema: pa.Schema,
    fields: Sequence[Field] = (),
    *,
    apart: Apart = Apart.NEVER,
    defaults: ColumnDefaults = LITERALS,
) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow table, batch or reader, a pandas or polars frame, anything with an Arrow stream, a list of
    dicts (read as the table's types), or an iterable of any of these.

    `fields` are the table's columns: a dict without a column that other dicts have takes one of its `defaults`. `apart` says
    whether dicts that leave out different columns come in batches of their own, which lack these columns.
    """
    if isinstance(data, pa.RecordBatch):
        yield data
    elif isinstance(data, pa.Table):
        yield from data.to_batches()
    elif isinstance(data, pa.RecordBatchReader):
        yield from data
    elif _library(data) == "pandas":
        yield from _opened(data, lambda: _from_pandas(data, schema)).to_batches()
    elif _library(data) == "polars" and hasattr(data, "collect"):
        yield from pa.table(data.collect()).to_batches()
    elif hasattr(data, "__arrow_c_stream__"):
        yield from _opened(data, lambda: pa.RecordBatchReader.from_stream(data))
    elif hasattr(data, "__arrow_c_array__"):
        yield _opened(data, lambda: pa.record_batch(data))
    elif isinstance(data, list) and data and isinstance(data[0], dict):
        for rows, gaps in _alike(data, schema, apart):
            yield from _from_rows(rows, _without(schema, gaps), fields, defaults)
    elif isinstance(data, Iterable) and not isinstance(data, (str, bytes, dict)):
        for part in data:
            yield from batches_of(part, schema, fields, apart=apart, defaults=defaults)
    else:
        raise _not_a_table(data)


def _not_a_table(data: Any, reason: str = "") -> InvalidError:
    return InvalidError(
        "expected rows in an Arrow table, batch or reader, a pandas or polars frame, a list of dicts, or an iterable of these; "
        f"found {type(data).__name__}{reason}"
    )


def _library(data: Any) -> str:
    """The package that defines a value's type; no frame library is imported for it."""
    return type(data).__module__.partition(".")[0]


def _opened(data: Any, opens: Callable[[], Any]) -> Any:
    """What `opens` gives; InvalidError for a single column, columns of mixed values and other things that are no table."""
    if _library(data) == "pandas" and not hasattr(data, "columns"):
        raise _not_a_table(data)
    try:
        return opens()
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _not_a_table(data, f" ({error})") from error


def _alike(rows: list[Any], schema: pa.Schema, apart: Apart) -> Iterator[tuple[list[Any], _Gaps]]:
    """Group the rows by the columns and fields of ROWs that they leave out; each group comes with these.

    What is no dict stays with the rows before, and is refused with them.
    """
    if apart is Apart.NEVER:
        yield rows, _NO_GAPS
        return
    found = _gaps(rows[0], schema)
    parts: list[tuple[list[Any], _Gaps]] = []
    groups: dict[_Gaps, list[Any]] = {}
    for row in rows:
        found = _gaps(row, schema) if isinstance(row, dict) else found
        groups.setdefault(found, []).append(row)
        if not parts or parts[-1][1] != found:
            parts.append(([], found))
        parts[-1][0].append(row)
    yield from parts if apart is Apart.IN_ORDER else ((group, gaps) for gaps, group in groups.items())


def _gaps(row: dict[str, Any], fields: Iterable[pa.Field]) -> _Gaps:
    """The fields that a dict leaves out, in dicts inside it too, each as the path of names to it."""
    found: set[tuple[str, ...]] = set()
    for field in fields:
        if field.name not in row:
            found.add((field.name,))
        elif pa.types.is_struct(field.type) and isinstance(row[field.name], dict):
            found.update((field.name, *path) for path in _gaps(row[field.name], field.type))
    return frozenset(found)


def _without(schema: pa.Schema, gaps: _Gaps) -> pa.Schema:
    """The columns without the fields inside them that rows leave out; columns that are left out are seen by their names."""
    inner = {name: frozenset(path[1:] for path in gaps if path[0] == name and path[1:]) for name in schema.names}
    return pa.schema([field.with_type(_pruned(field.type, inner[field.name])) for field in schema])


def _pruned(arrow: pa.DataType, gaps: _Gaps) -> pa.DataType:
    if not gaps:
        return arrow
    kept = [field for field in arrow if (field.name,) not in gaps]
    inner = {field.name: frozenset(path[1:] for path in gaps if path[0] == field.name) for field in kept}
    return pa.struct([field.with_type(_pruned(field.type, inner[field.name])) for field in kept])


def _from_pandas(frame: Any, schema: pa.Schema) -> pa.Table:
    """A pandas frame as a table: columns of Python values are read as the table's nested types, which nothing else tells."""
    names = list(frame.columns)
    nested = [
        place
        for place, name in enumerate(names)
        if str(frame.dtypes.iloc[place]) == "object"
        and name in schema.names
        and pa.types.is_nested(schema.field(name).type)
    ]
    if not nested:
        return pa.Table.from_pandas(frame, preserve_index=False)
    rest = [place for place in range(len(names)) if place not in nested]
    table = pa.Table.from_pandas(frame.iloc[:, rest], preserve_index=False).replace_schema_metadata(None)
    for place in nested:
        values = [_python_value(value) for value in frame.iloc[:, place].array]
        field = schema.field(names[place]).with_nullable(True)
        field = field.with_type(_with_given_members(field.type, values))
        column = _nested_column(values, field)
        # A table without columns would not know its number of rows.
        table = (
            table.add_column(place, field, column)
            if table.num_columns
            else pa.table([column], schema=pa.schema([field]))
        )
    return table


def _with_given_members(arrow: pa.DataType, values: Sequence[Any]) -> pa.DataType:
    """The type without the fields of ROWs that no value has: they are missing, not NULL."""
    dicts = [value for value in values if isinstance(value, dict)]
    if not pa.types.is_struct(arrow) or not dicts:
        return arrow
    given = {name for value in dicts for name in value}
    return pa.struct(
        [
            field.with_type(_with_given_members(field.type, [value.get(field.name) for value in dicts]))
            for field in arrow
            if field.name in given
        ]
    )


def _nested_column(given: Sequence[Any], field: pa.Field) -> pa.Array:
    try:
        column = pa.array(given, field.type, from_pandas=True)
    except _REFUSALS as error:
        rows = [{field.name: value} for value in given]
        raise InvalidError(f"the rows do not fit the table's types: {_misfit(rows, [field])}{error}") from error
    for number, value in enumerate(given):
        if column[number].is_valid and not is_kept(value, field.type):
            raise InvalidError(_lossy(number, value, field))
    return column


def _python_value(value: Any) -> Any:
    """A nested value without numpy's arrays, whose NaN and masked elements are NULL."""
    if isinstance(value, np.ndarray):
        # By way of Arrow, for numpy's own list of nanoseconds is one of bare numbers.
        value = pa.array(value).to_pylist() if value.dtype.kind == "M" else value.tolist()
    if isinstance(value, dict):
        return {name: _python_value(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        # Pairs of a map stay tuples, by which Arrow knows them.
        members = [_python_value(member) for member in value]
        return tuple(members) if isinstance(value, tuple) else members
    return None if isinstance(value, float) and math.isnan(value) else value


def _lossy(number: int, value: Any, field: pa.Field) -> str:
    return (
        f"the rows do not fit the table's types: row {number} has {value!r} for column {field.name!r}, "
        f"which {field.type} cannot hold without loss{_zone_hint(value, field.type)}"
    )


def _zone_hint(value: Any, arrow: pa.DataType) -> str:
    if (
        not pa.types.is_timestamp(arrow)
        or not isinstance(value, datetime)
        or (value.tzinfo is None) == (arrow.tz is None)
    ):
        return ""
    return NEEDS_ZONE if value.tzinfo is None else HAS_ZONE


def _from_rows(
    rows: list[dict[str, Any]], schema: pa.Schema, fields: Sequence[Field], defaults: ColumnDefaults
) -> Iterator[pa.RecordBatch]:
    names: set[str] = set()
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise InvalidError(f"row {number} is a {type(row).__name__}, the rows before are dicts")
        names.update(row)
    unknown = sorted((name for name in names if name not in schema.names), key=str)
    if unknown:
        raise InvalidError(
            f"the data has the column {unknown[0]!r}, which is not in the table; its columns are {', '.join(schema.names)}"
        )
    if not names:
        # A table without columns would not know its number of rows.
        yield pa.RecordBatch.from_struct_array(pa.array(rows, pa.struct([])))
        return
    columns = [field.with_nullable(True) for field in schema if field.name in names]
    try:
        table = pa.Table.from_pylist(rows, schema=pa.schema(columns))
    except _REFUSALS as error:
        plain = [
            {field.name: without_uuids(row[field.name], field.type) for field in columns if field.name in row}
            for row in rows
        ]
        if plain == rows:
            raise InvalidError(f"the rows do not fit the table's types: {_misfit(rows, columns)}{error}") from error
        yield from _from_rows(plain, schema, fields, defaults)
        return
    for field in columns:
        for number, row in enumerate(rows):
            if not is_kept(row.get(field.name), field.type):
                raise InvalidError(_lossy(number, row[field.name], field))
    yield from _with_defaults(table, rows, fields, defaults).to_batches()


def _misfit(rows: list[dict[str, Any]], columns: Sequence[pa.Field]) -> str:
    """The first value that Arrow refuses, for the message."""
    for field in columns:
        for number, row in enumerate(rows):
            try:
                pa.array([row.get(field.name)], field.type)
            except _REFUSALS:
                return f"row {number} has {row[field.name]!r} for column {field.name!r}, which is {field.type}; "
    return ""


def _with_defaults(
    table: pa.Table, rows: list[dict[str, Any]], fields: Sequence[Field], defaults: ColumnDefaults
) -> pa.Table:
    """Fill in the defaults of columns that some rows leave out; an explicit None stays NULL."""
    for field in fields:
        if not defaults.has(field) or field.name not in table.column_names:
            continue
        left_out = [field.name not in row for row in rows]
        if any(left_out):
            filled = pc.if_else(pa.array(left_out), defaults.array(field, len(rows)), table.column(field.name))
            place = table.column_names.index(field.name)
            table = table.set_column(place, table.schema.field(place), filled)
    return table
