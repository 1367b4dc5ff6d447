"""Column ranges of data files from manifest statistics, for many files at once.

Three things bound a column: the statistics of the values, in the columns of the schema version that the file was written under;
in primary-key tables the statistics of the key; and the least and the greatest key, which bound the first key column, and the
next one where the first is the same in both. Some writers leave the one, some the other empty.

What is proved of a file whose schema was different holds only for columns whose type has not changed since.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.format.manifest.manifest_columns import KEY_STATS_COLUMN
from lakelet.format.rows.binary_row_columns import decode_bounds
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.schema import TableSchema
from lakelet.model.types import FLOATS, Atomic, DataType, Field, Kind
from lakelet.predicate.pruning import ColumnRange

_ARITY_BYTES = 4
_NO_COLUMNS = "\x01"


def value_ranges(
    entries: pa.Table,
    schema: TableSchema,
    stored: TableSchema,
    stats_columns: tuple[str, ...] | None,
    wanted: set[str] | None,
) -> dict[str, ColumnRange]:
    """The column ranges from value statistics, for entries of one schema version and one set of columns."""
    covered = _covered(stored, stats_columns)
    stats = entries.column("_VALUE_STATS").combine_chunks()
    counts = entries.column("_ROW_COUNT").combine_chunks()
    lows, highs = stats.field("_MIN_VALUES"), stats.field("_MAX_VALUES")
    usable = covered is not None and _has_arity(lows, len(covered)) and _has_arity(highs, len(covered))
    covered = covered or []
    types = [column.type for column in covered]
    low_values, high_values = (decode_bounds(lows, types), decode_bounds(highs, types)) if usable else ([], [])
    places = {column.id: index for index, column in enumerate(covered)}
    stored_ids = {column.id for column in stored.fields}
    ranges: dict[str, ColumnRange] = {}
    for column in schema.fields:
        if wanted is not None and column.name not in wanted:
            continue
        if column.id not in stored_ids:
            # Files older than the column hold NULL in all their rows.
            ranges[column.name] = ColumnRange(None, None, counts, counts)
        elif usable and column.id in places and _same_type(covered[places[column.id]].type, column.type):
            index = places[column.id]
            nulls = list_element(stats.field("_NULL_COUNTS"), index)
            low = _lower_bound(low_values[index], covered[index].type)
            ranges[column.name] = ColumnRange(low, upper_bound(high_values[index], column.type), nulls, counts)
    return ranges


def key_ranges(entries: pa.Table, schema: TableSchema) -> dict[str, ColumnRange]:
    """The column ranges of the trimmed primary key, whose types never change, from key bounds and key statistics."""
    fields = schema.trimmed_key_fields
    types = [field.type for field in fields]
    counts = entries.column("_ROW_COUNT").combine_chunks()
    least = decode_bounds(of_arity(entries.column("_MIN_KEY"), len(types)), types)
    greatest = decode_bounds(of_arity(entries.column("_MAX_KEY"), len(types)), types)
    lows: list[pa.Array] = []
    highs: list[pa.Array] = []
    alike = pa.repeat(pa.scalar(True), entries.num_rows)
    for low, high in zip(least, greatest, strict=True):
        lows.append(pc.if_else(alike, low, pa.scalar(None, low.type)))
        highs.append(pc.if_else(alike, high, pa.scalar(None, high.type)))
        # Zeros of both signs are equal numbers but different keys, so that the next column is not sorted across them.
        same = pa.scalar(False) if pa.types.is_floating(low.type) else pc.fill_null(pc.equal(low, high), False)
        alike = pc.and_(alike, same)
    if KEY_STATS_COLUMN in entries.column_names:
        stats = entries.column(KEY_STATS_COLUMN).combine_chunks()
        stated = [
            decode_bounds(of_arity(stats.field(name), len(types)), types) for name in ("_MIN_VALUES", "_MAX_VALUES")
        ]
        lows = [
            pc.coalesce(low, _lower_bound(bound, data_type))
            for low, bound, data_type in zip(lows, stated[0], types, strict=True)
        ]
        highs = [pc.coalesce(high, bound) for high, bound in zip(highs, stated[1], strict=True)]
    nulls = pa.repeat(pa.scalar(0, pa.int64()), entries.num_rows)
    return {
        field.name: ColumnRange(low, upper_bound(high, field.type), nulls, counts)
        for field, low, high in zip(fields, lows, highs, strict=True)
    }


def overlaid(first: dict[str, ColumnRange], second: dict[str, ColumnRange]) -> dict[str, ColumnRange]:
    """Merge two sets of ranges; where both bound a column, the first takes precedence."""
    found = {**second, **first}
    for name in first.keys() & second.keys():
        one, other = first[name], second[name]
        low, high = _coalesced(one.min, other.min), _coalesced(one.max, other.max)
        found[name] = ColumnRange(low, high, one.null_counts, one.row_counts, one.exact)
    return found


def stats_groups(entries: pa.Table) -> list[tuple[npt.NDArray[np.int64], int, tuple[str, ...] | None]]:
    """Group rows by schema version and the columns their statistics cover."""
    schema_ids = entries.column("_SCHEMA_ID").to_numpy()
    lists = entries.column("_VALUE_STATS_COLS").combine_chunks()
    names = pc.fill_null(pc.binary_join(lists, "\x00"), _NO_COLUMNS).dictionary_encode()
    codes = names.indices.to_numpy().astype(np.int64) + schema_ids * (len(names.dictionary) + 1)
    groups = []
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        text = names[int(rows[0])].as_py()
        columns = None if text == _NO_COLUMNS else tuple(text.split("\x00")) if text else ()
        groups.append((rows, int(schema_ids[rows[0]]), columns))
    return groups


def upper_bound(maxima: pa.Array, data_type: DataType) -> pa.Array:
    """Maxima that bound the values, whichever program wrote them. Some writers leave NaN, the greatest value, out of their
    statistics, so a float's maximum bounds nothing: NaN replaces every known one."""
    if not (isinstance(data_type, Atomic) and data_type.kind in FLOATS):
        return maxima
    return pc.if_else(maxima.is_valid(), pa.scalar(float("nan"), maxima.type), maxima)


def _covered(stored: TableSchema, names: tuple[str, ...] | None) -> list[Field] | None:
    """The columns that statistics cover; None where they name one that the schema of their file lacks."""
    if names is None:
        return list(stored.fields)
    known = {field.name: field for field in stored.fields}
    return [known[name] for name in names] if all(name in known for name in names) else None


def _lower_bound(minima: pa.Array, stored: DataType) -> pa.Array:
    """Minima that bound the values, whichever program wrote them. Of ORC files Java takes NaN for the minimum of a column with
    one, and pads CHAR with spaces, so that a value is less than its minimum; what such a minimum begins with still bounds."""
    if isinstance(stored, Atomic) and stored.kind in FLOATS:
        return pc.if_else(pc.is_nan(minima), pa.scalar(None, minima.type), minima)
    if isinstance(stored, Atomic) and stored.kind is Kind.CHAR:
        # Characters below the space would make a longer value less than a shorter, padded one.
        return pc.utf8_rtrim(pc.replace_substring_regex(minima, r"(?s)[\x00-\x1f].*", ""), " ")
    return minima


def _same_type(stored: DataType, wanted: DataType) -> bool:
    return bool(to_arrow(stored) == to_arrow(wanted))


def _coalesced(first: pa.Array | None, second: pa.Array | None) -> pa.Array | None:
    if first is None or second is None:
        return second if first is None else first
    return pc.coalesce(first, second)


def of_arity(rows: pa.Array | pa.ChunkedArray, arity: int) -> pa.Array:
    """The rows, NULL in place of those with another number of columns: other writers leave them empty."""
    if isinstance(rows, pa.ChunkedArray):
        rows = pa.concat_arrays(rows.chunks or [pa.array([], rows.type)])
    fits = pc.equal(pc.binary_slice(rows, 0, _ARITY_BYTES), arity.to_bytes(_ARITY_BYTES, "big"))
    return pc.if_else(fits, rows, pa.scalar(None, rows.type))


def _has_arity(rows: pa.Array, arity: int) -> bool:
    """Whether all rows have that many columns; files of other writers may carry empty statistics."""
    prefixes: Sequence[bytes] = pc.binary_slice(rows, 0, _ARITY_BYTES).unique().to_pylist()
    return bool(prefixes == [arity.to_bytes(_ARITY_BYTES, "big")])


def list_element(lists: pa.Array, index: int) -> pa.Array:
    """The element at `index` of every list, NULL where a list is NULL or shorter."""
    long_enough = pc.fill_null(pc.greater(pc.list_value_length(lists), index), False)
    if pc.all(long_enough).as_py():
        return pc.list_element(lists, index)
    picked = [value[index] if value is not None and len(value) > index else None for value in lists.to_pylist()]
    return pa.array(picked, pa.int64())
