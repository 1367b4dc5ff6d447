"""Collect the column statistics of a table from its rows, batch by batch.

NULLs, minimum and maximum come from the same collector as those of data files (NaN is the greatest value), different values
from `distinct_count`, lengths as Spark counts them: characters of text and bytes of binaries, on average (rounded up) and at
most; for types of a fixed size that size. Columns of nested types have their NULLs counted and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import InvalidError
from lakelet.format.metadata.statistics_json import has_bounds
from lakelet.format.rows.binary_row import COMPACT_DECIMAL, decode_row
from lakelet.format.stats.distinct_count import DistinctCount
from lakelet.format.stats.file_statistics import StatsCollector
from lakelet.model.table_statistics import ColumnStatistics
from lakelet.model.types import BINARIES, STRINGS, Atomic, DataType, Field, Kind

_SIZES = {
    Kind.BOOLEAN: 1,
    Kind.TINYINT: 1,
    Kind.SMALLINT: 2,
    Kind.INT: 4,
    Kind.BIGINT: 8,
    Kind.FLOAT: 4,
    Kind.DOUBLE: 8,
    Kind.DATE: 4,
    Kind.TIME: 4,
    Kind.TIMESTAMP: 8,
    Kind.TIMESTAMP_LTZ: 8,
}


class ColumnCollector:
    """Gathers the statistics of `fields` over batches that have exactly these columns."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = tuple(fields)
        self._bounds = [StatsCollector([field], "full" if has_bounds(field.type) else "counts") for field in fields]
        self._distinct = [DistinctCount(field.type) if isinstance(field.type, Atomic) else None for field in fields]
        self._lengths = [_Lengths() if _is_measured(field.type) else None for field in fields]
        self.row_count = 0

    def update(self, batch: pa.RecordBatch) -> None:
        """Takes in a batch."""
        self.row_count += batch.num_rows
        for index, column in enumerate(batch.columns):
            bounds, distinct, lengths = self._bounds[index], self._distinct[index], self._lengths[index]
            bounds.update(batch.select([index]))
            if distinct is not None:
                distinct.update(column)
            if lengths is not None:
                lengths.update(column)

    def finish(self) -> dict[str, ColumnStatistics]:
        """The statistics by column name."""
        found = {}
        for index, field in enumerate(self._fields):
            distinct, lengths = self._distinct[index], self._lengths[index]
            stats, _ = self._bounds[index].finish()
            nulls = stats.null_counts[0] if stats.null_counts else None
            size = _size(field.type)
            found[field.name] = ColumnStatistics(
                field.id,
                # An estimate may come out above what is possible.
                None if distinct is None else min(distinct.count, self.row_count - (nulls or 0)),
                _value(stats.min_values, field),
                _value(stats.max_values, field),
                nulls,
                size if lengths is None else lengths.average,
                size if lengths is None else lengths.maximum,
            )
        return found


def _value(bound: bytes, field: Field) -> object:
    try:
        return decode_row(bound, [field.type])[0]
    except InvalidError:
        # A day after the year 9999 is no value of Python's: it is unknown.
        return None


class _Lengths:
    """Average and maximum of lengths."""

    def __init__(self) -> None:
        self._total = 0
        self._values = 0
        self.maximum = 0

    def update(self, array: pa.Array) -> None:
        is_text = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
        lengths = pc.utf8_length(array) if is_text else pc.binary_length(array)
        self._values += len(lengths) - lengths.null_count
        self._total += pc.sum(lengths).as_py() or 0
        self.maximum = max(self.maximum, pc.max(lengths).as_py() or 0)

    @property
    def average(self) -> int:
        return -(-self._total // self._values) if self._values else 0


def _is_measured(data_type: DataType) -> bool:
    return isinstance(data_type, Atomic) and (data_type.kind in STRINGS or data_type.kind in BINARIES)


def _size(data_type: DataType) -> int | None:
    if not isinstance(data_type, Atomic):
        return None
    if data_type.kind is Kind.DECIMAL:
        return 8 if data_type.precision <= COMPACT_DECIMAL else 16
    return _SIZES.get(data_type.kind)
