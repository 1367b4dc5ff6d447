"""Rows of a batch that fit a table's columns as they are: checked and cast by columns, without a look at each value.

Arrow rows, and NDJSON parsed by Arrow, come here first. Whatever is not certain to give what single records would give is left to
them (`record_columns`): new fields, other types, integers that a DOUBLE may not hold, texts of times in other forms, every error.
"""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from lakelet.model.schema import TableSchema
from lakelet.model.types import MAX_LENGTH, Array, Atomic, DataType, Kind, Row
from lakelet.service.ingest.payload_growth import EXACT
from lakelet.service.ingest.payload_schema import payload_row
from lakelet.service.ingest.plain_lines import plain_lines
from lakelet.service.ingest.record import LONGEST_ID_BYTES
from lakelet.service.ingest.record_columns import RecordColumns
from lakelet.service.tables.served_table import exact_integers
from lakelet.service.tables.table_layout import ID, PAYLOAD, TIMESTAMP

_NAMES = (ID, TIMESTAMP, PAYLOAD)
_PLAIN: dict[Kind, pa.DataType] = {
    Kind.BIGINT: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.VARCHAR: pa.string(),
}
_NEWLINE, _OPEN, _CLOSE = b"\n{}"
_RFC3339 = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)$"
# The years 1 to 9999.
_LEAST_US, _MOST_US = -62_135_596_800_000_000, 253_402_300_799_999_999


def parsed_lines(body: bytes, schema: TableSchema) -> pa.Table | None:
    """NDJSON in the columns of a table; None where a line is not certain to fit them."""
    row = payload_row(schema)
    payload = None if row is None else _plain_type(row)
    if row is None or payload is None:
        return None
    plain = plain_lines(body, row, payload, exact_integers(schema))
    if plain is not None:
        return plain
    wanted = pa.schema([(ID, pa.string()), (TIMESTAMP, pa.string()), (PAYLOAD, payload)])
    try:
        found = pj.read_json(
            io.BytesIO(body),
            pj.ReadOptions(use_threads=False, block_size=len(body) + 1),
            pj.ParseOptions(explicit_schema=wanted, unexpected_field_behavior="error"),
        )
        found.validate(full=True)
        texts = found.column(TIMESTAMP)
        if (
            any(column.null_count for column in found.columns)
            or not pc.all(pc.match_substring_regex(texts, _RFC3339)).as_py()
        ):
            return None
        moments = texts.cast(pa.timestamp("us", "UTC"))
    except pa.ArrowException:
        return None
    # Arrow takes several objects on a line, and one on several lines, too.
    if found.num_rows != _count_lines(body):
        return None
    # An integer beyond 2^53 was rounded if it stands in a DOUBLE, and -0 is none there.
    if not all(_is_exact(chunk, doubles=True) for chunk in found.column(PAYLOAD).chunks):
        return None
    return found.set_column(1, TIMESTAMP, moments)


def _count_lines(body: bytes) -> int | None:
    """The lines that are not empty; None where one of them does not look like an object of its own. In JSON no brace opens right
    behind one that closes, but between two objects: if as many objects as lines were read, each line is one."""
    letters = np.frombuffer(body, np.uint8)
    ends = np.flatnonzero(letters == _NEWLINE)
    if len(ends) and ends[-1] == len(letters) - 1:
        ends, letters = ends[:-1], letters[:-1]
    is_plain = len(letters) > 0 and letters[0] == _OPEN and letters[-1] == _CLOSE
    if is_plain and (letters[ends - 1] == _CLOSE).all() and (letters[ends + 1] == _OPEN).all():
        return len(ends) + 1
    lines = [line for line in map(bytes.strip, body.split(b"\n")) if line]
    return len(lines) if all(line[0] == _OPEN and line[-1] == _CLOSE for line in lines) else None


def fitting_rows(rows: pa.Table, columns: RecordColumns) -> pa.Table | None:
    """Rows with id, timestamp and payload in the columns of a table; None where they are not certain to fit."""
    schema, row = columns.schema, payload_row(columns.schema)
    payload = None if row is None else _plain_type(row)
    if payload is None or columns.is_flat or not rows.num_rows or sorted(rows.column_names) != sorted(_NAMES):
        return None
    ids, moments, given = (rows.column(name).combine_chunks() for name in _NAMES)
    if not _are_ids(ids) or not pa.types.is_timestamp(moments.type) or moments.type.tz is None:
        return None
    if given.null_count or moments.null_count or not pa.types.is_struct(given.type):
        return None
    arrays = _fields(given, payload, exact_integers(schema))
    try:
        numbers = moments.cast(pa.timestamp("us", moments.type.tz)).cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    bounds = pc.min_max(numbers).as_py()
    if arrays is None or bounds["min"] < _LEAST_US or bounds["max"] > _MOST_US:
        return None
    fields = [payload.field(place) for place in range(payload.num_fields)]
    struct = pa.StructArray.from_arrays(arrays, fields=fields)
    return columns.table(ids.cast(pa.string()), numbers, {PAYLOAD: struct}, rows.num_rows)


def _are_ids(ids: pa.Array) -> bool:
    if not (pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type)) or ids.null_count:
        return False
    sizes = pc.min_max(pc.binary_length(ids)).as_py()
    return bool(sizes["min"] > 0 and sizes["max"] <= LONGEST_ID_BYTES)


def _fields(given: pa.StructArray, payload: pa.StructType, exact: frozenset[str]) -> list[pa.Array] | None:
    """The payload's fields in the order of the table, NULL where the rows have none; None where one does not fit."""
    names = [given.type.field(place).name for place in range(given.type.num_fields)]
    known = [payload.field(place).name for place in range(payload.num_fields)]
    if len(set(names)) != len(names) or not set(names) <= set(known):
        return None
    flat = dict(zip(names, given.flatten(), strict=True))
    arrays: list[pa.Array] = []
    for place, name in enumerate(known):
        wanted = payload.field(place).type
        found = flat.get(name)
        if found is None or pa.types.is_null(found.type):
            arrays.append(pa.nulls(len(given), wanted))
            continue
        if pa.types.is_large_string(found.type):
            found = found.cast(pa.string())
        if not _same(found.type, wanted) or not (name in exact or _is_exact(found, doubles=False)):
            return None
        arrays.append(found.cast(wanted))
    return arrays


def _same(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether two types are the same but for the names of elements and NOT NULL."""
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = [[kind.field(place) for place in range(kind.num_fields)] for kind in (one, other)]
        return [field.name for field in fields[0]] == [field.name for field in fields[1]] and all(
            _same(a.type, b.type) for a, b in zip(*fields, strict=True)
        )
    if pa.types.is_list(one) and pa.types.is_list(other):
        return _same(one.value_type, other.value_type)
    return bool(one == other)


def _is_exact(array: pa.Array, *, doubles: bool) -> bool:
    """Whether all integers inside of an array are at most 2^53; with `doubles` whether all floating-point numbers are less, since
    2^53 may have been the next integer, and none is a zero with a sign."""
    if pa.types.is_struct(array.type):
        return all(_is_exact(child, doubles=doubles) for child in array.flatten())
    if pa.types.is_list(array.type):
        return _is_exact(array.flatten(), doubles=doubles)
    if not (pa.types.is_floating(array.type) if doubles else pa.types.is_integer(array.type)):
        return True
    if doubles:
        values = array.drop_null().to_numpy(zero_copy_only=False)
        return bool((np.abs(values) < EXACT).all() and not np.signbit(values[values == 0]).any())
    bounds, most = pc.min_max(array).as_py(), EXACT
    return bounds["min"] is None or (bounds["min"] >= -most and bounds["max"] <= most)


def _plain_type(row: Row) -> pa.StructType | None:
    """The Arrow type of a payload all of whose values JSON has as they are; None for others."""
    fields: list[tuple[str, pa.DataType]] = []
    for field in row.fields:
        made = _plain(field.type)
        if made is None:
            return None
        fields.append((field.name, made))
    return pa.struct(fields)


def _plain(data_type: DataType) -> pa.DataType | None:
    match data_type:
        case Atomic(kind=Kind.VARCHAR, precision=length) if length != MAX_LENGTH:
            return None
        case Atomic(kind=kind):
            return _PLAIN.get(kind)
        case Array(element):
            inner = _plain(element)
            return None if inner is None else pa.list_(inner)
        case Row():
            return _plain_type(data_type)
    return None
