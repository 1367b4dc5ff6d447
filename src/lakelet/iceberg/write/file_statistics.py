"""Column statistics of a data file for manifests: sizes, counts, bounds by field id, from Parquet's statistics and counted NaN.

They are those that pyiceberg makes of the same file, as `write.metadata.metrics.*` asks for them, with these exceptions, most of
which keep readers from pruning a file that has matching rows:

- Members of structs have bounds; what is inside lists and maps has no counts, as with Iceberg's own writers: Parquet counts an
  empty list as a NULL.
- NaN is counted. Bounds never are NaN, a lower bound of zero is -0.0 and an upper one 0.0.
- Where Parquet has no bounds for some row group, as for long texts, the column has none.
- An upper bound that is cut never ends in half a surrogate pair.
- Uuids have bounds only where they have the same order with and without a sign: engines differ in which they take.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import MetricModeTypes, MetricsMode, match_metrics_mode
from pyiceberg.table import TableProperties
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from pyiceberg.utils.truncate import truncate_upper_bound_binary_string

from lakelet.errors import InvalidError
from lakelet.iceberg.schema.file_schema import LeafColumn

_TYPES = pa.types
_FORMATS: dict[type[PrimitiveType], str] = {
    BooleanType: "?",
    IntegerType: "<i",
    DateType: "<i",
    FloatType: "<f",
    DoubleType: "<d",
    **dict.fromkeys((LongType, TimeType, TimestampType, TimestamptzType, TimestampNanoType, TimestamptzNanoType), "<q"),
}
_SURROGATES = (0xD800, 0xE000)
_LAST = 0x10FFFF
_SIGN = 0x80


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """The statistics kept of one column: only its size, counts, or bounds truncated to `length`."""

    leaf: LeafColumn
    counts: bool
    bounds: bool
    length: int | None
    floats: bool
    pack: Callable[[Any], bytes] | None


@dataclass(slots=True)
class FileStatistics:
    """Everything by field id."""

    column_sizes: dict[int, int] = field(default_factory=dict)
    value_counts: dict[int, int] = field(default_factory=dict)
    null_value_counts: dict[int, int] = field(default_factory=dict)
    nan_value_counts: dict[int, int] = field(default_factory=dict)
    lower_bounds: dict[int, bytes] = field(default_factory=dict)
    upper_bounds: dict[int, bytes] = field(default_factory=dict)
    split_offsets: tuple[int, ...] = ()


def statistics_plan(leaves: Sequence[LeafColumn], properties: Mapping[str, str]) -> tuple[ColumnPlan, ...]:
    """The statistics that the table's properties ask for, column by column in the order of the file."""
    name = TableProperties.DEFAULT_WRITE_METRICS_MODE
    default = _mode(name, properties.get(name, TableProperties.DEFAULT_WRITE_METRICS_MODE_DEFAULT))
    found = []
    for leaf in leaves:
        own = f"{TableProperties.METRICS_MODE_COLUMN_CONF_PREFIX}.{'.'.join(leaf.path)}"
        mode = _mode(own, properties[own]) if properties.get(own) else default
        counts = mode.type != MetricModeTypes.NONE and not leaf.repeated
        bounds = mode.type in (MetricModeTypes.TRUNCATE, MetricModeTypes.FULL) and not leaf.repeated
        kind = type(leaf.type)
        pack = struct.Struct(_FORMATS[kind]).pack if kind in _FORMATS else None
        floats = kind in (FloatType, DoubleType)
        found.append(ColumnPlan(leaf, counts, bounds, mode.length, floats, pack))
    return tuple(found)


def _mode(name: str, text: str) -> MetricsMode:
    try:
        return match_metrics_mode(text)
    except ValueError as error:
        raise InvalidError(
            f"table property '{name}': expected none, counts, full or truncate(length), found {text!r}"
        ) from error


def file_statistics(metadata: pq.FileMetaData, plan: Sequence[ColumnPlan], nans: Mapping[int, int]) -> FileStatistics:
    """The statistics of a written file from its Parquet footer; `nans` are counted beforehand."""
    found = FileStatistics()
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    for position, column in enumerate(plan):
        chunks = [group.column(position) for group in groups]
        if position == 0:
            found.split_offsets = tuple(sorted(_offset(chunk) for chunk in chunks))
        _add_column(found, column, chunks, nans.get(column.leaf.field_id))
    return found


def _offset(chunk: Any) -> int:
    data, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset
    first = dictionary if chunk.has_dictionary_page and dictionary < data else data
    return int(first)


def _add_column(found: FileStatistics, column: ColumnPlan, chunks: Sequence[Any], nans: int | None) -> None:
    number = column.leaf.field_id
    found.column_sizes[number] = sum([chunk.total_compressed_size for chunk in chunks])
    if not column.counts:
        return
    found.value_counts[number] = sum([chunk.num_values for chunk in chunks])
    statistics = [chunk.statistics for chunk in chunks]
    # Not `None in …`: Parquet's statistics cannot be compared with None.
    if any(known is None or not known.has_null_count for known in statistics):
        return
    found.null_value_counts[number] = sum([known.null_count for known in statistics])
    if column.floats and nans is not None:
        found.nan_value_counts[number] = nans
    if not column.bounds:
        return
    bounded = [known for known in statistics if known.has_min_max]
    # Of nothing but NULL or NaN there are no bounds; where there are none of anything else, those of the rest say nothing.
    unknown = any(known.num_values for known in statistics if not known.has_min_max) and not column.floats
    if unknown or not bounded:
        return
    lower, upper = _bounds(column, bounded)
    if lower is not None:
        found.lower_bounds[number] = lower
    if upper is not None:
        found.upper_bounds[number] = upper


def _bounds(column: ColumnPlan, statistics: Sequence[Any]) -> tuple[bytes | None, bytes | None]:
    """The bounds in the form of manifests."""
    kind = column.leaf.type
    least, most = [known.min_raw for known in statistics], [known.max_raw for known in statistics]
    if isinstance(kind, DecimalType):
        return _decimal_bytes(min(map(_unscaled, least))), _decimal_bytes(max(map(_unscaled, most)))
    lower, upper = (least[0], most[0]) if len(least) == 1 else (min(least), max(most))
    if column.floats:
        lower, upper = (-0.0 if lower == 0 else lower), (0.0 if upper == 0 else upper)
    if column.pack is not None:
        return column.pack(lower), column.pack(upper)
    if isinstance(kind, StringType):
        return _text_bounds(lower, upper, column.length)
    if isinstance(kind, BinaryType):
        return lower[: column.length], truncate_upper_bound_binary_string(upper, column.length)
    if isinstance(kind, UUIDType) and not _same_signs(lower, upper):
        return None, None
    return lower, upper


def _unscaled(raw: int | bytes) -> int:
    return raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)


def _decimal_bytes(unscaled: int) -> bytes:
    bits = (unscaled if unscaled >= 0 else ~unscaled).bit_length()
    return unscaled.to_bytes(bits // 8 + 1, "big", signed=True)


def _text_bounds(lower: bytes, upper: bytes, length: int | None) -> tuple[bytes | None, bytes | None]:
    if length is None:
        return lower, upper
    # A code point has at least one byte.
    cut = lower if len(lower) <= length else lower.decode()[:length].encode()
    return cut, upper if len(upper) <= length else _cut_upper(upper.decode(), length)


def _cut_upper(text: str, length: int) -> bytes | None:
    """The least upper bound of a string in at most this many code points; None where there is none."""
    cut = text[:length]
    if cut == text:
        return text.encode()
    for at in range(len(cut) - 1, -1, -1):
        code = ord(cut[at]) + 1
        code = _SURROGATES[1] if code == _SURROGATES[0] else code
        if code <= _LAST:
            return (cut[:at] + chr(code)).encode()
    return None


def _same_signs(lower: bytes, upper: bytes) -> bool:
    if (lower[0] ^ upper[0]) & _SIGN:
        return False
    return lower[:8] != upper[:8] or not (lower[8] ^ upper[8]) & _SIGN


class NanCounts:
    """Counts NaN in the float columns of rows, at any depth, as they pass to a file."""

    def __init__(self, plan: Sequence[ColumnPlan]) -> None:
        self._columns = [column.leaf for column in plan if column.floats and column.counts]

    def of(self, rows: pa.Table | pa.RecordBatch) -> dict[int, int]:
        """By field id."""
        found = {}
        for leaf in self._columns:
            column = rows.column(leaf.place[0])
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            found[leaf.field_id] = sum(_nans(_inside(chunk, leaf.place[1:])) for chunk in chunks)
        return found


def _inside(array: pa.Array, place: tuple[int, ...]) -> pa.Array:
    """The leaf values of an array, without those below NULL."""
    for position in place:
        if _TYPES.is_struct(array.type):
            array = array.flatten()[position]
        elif _TYPES.is_map(array.type):
            # Copied, for keys and items of a sliced map are those of the whole.
            present = pa.concat_arrays([array.filter(array.is_valid())])
            array = present.items if position else present.keys
        else:
            array = array.flatten()
    return array


def _nans(array: pa.Array) -> int:
    if not len(array):
        return 0
    if not array.null_count:
        return int(np.count_nonzero(np.isnan(array.to_numpy(zero_copy_only=False))))
    return int(pc.sum(pc.is_nan(array)).as_py() or 0)
