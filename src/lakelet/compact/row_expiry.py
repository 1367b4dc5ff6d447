"""Record-level expiry: rows that are older than `record-level.expire-time`, by their `record-level.time-field`.

    INT                 seconds since 1970
    BIGINT              seconds, or milliseconds from 10^12 on (as seconds that would be after the year 33000)
    TIMESTAMP           with or without time zone, in UTC
    NULL                never expires

Rows expire when they are compacted, and are visible until then. The newest row of a key decides: if it has expired, the key is
dropped. That is correct only where no older row is left below, which would become visible, so that rows are dropped where
deletes are. (Java Paimon drops them before the merge and on every level.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.format.rows.binary_row_columns import decode_bounds
from lakelet.model.data_file import DataFile
from lakelet.model.schema import TableSchema, check_row_time
from lakelet.model.types import INTEGERS, Atomic, DataType, Field
from lakelet.options import RECORD_LEVEL_EXPIRE_TIME, RECORD_LEVEL_TIME_FIELD, TableOptions

_MILLIS_FROM = 1_000_000_000_000
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class RowExpiry:
    """Expires the rows whose time in `column` is before `oldest_s`, in seconds."""

    column: Field
    oldest_s: int

    @staticmethod
    def of(schema: TableSchema, now_ms: int) -> RowExpiry | None:
        """The expiry of a table's options at a time; None where its rows do not expire."""
        options = TableOptions(schema.options)
        age = options.get(RECORD_LEVEL_EXPIRE_TIME)
        if age is None or not schema.primary_keys:
            return None
        check_row_time(schema)
        name = options.get(RECORD_LEVEL_TIME_FIELD)
        return RowExpiry(schema.field(str(name)), now_ms // 1000 - int(age.total_seconds()))

    def kept(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that have not expired."""
        gone = self._expired(batch.column(self.column.name))
        return batch.filter(pa.array(~gone)) if gone.any() else batch

    def may_hold_expired(self, file: DataFile, schema_of: Callable[[int], TableSchema]) -> bool:
        """Whether the statistics of a file say that a row of it has expired."""
        told = file.value_stats_columns
        fields = [field for field in schema_of(file.schema_id).fields if told is None or field.name in told]
        places = [place for place, field in enumerate(fields) if field.id == self.column.id]
        if not places or not _comparable(fields[places[0]].type, self.column.type):
            return False
        bounds = pa.array([file.value_stats.min_values, file.value_stats.max_values], pa.binary())
        times = decode_bounds(bounds, [field.type for field in fields])[places[0]]
        # Where a column has both seconds and milliseconds, the least number is not the earliest time.
        return bool(self._expired(times).any())

    def _expired(self, times: pa.Array) -> NDArray[np.bool_]:
        seconds = _seconds(times)
        known = times.is_valid().to_numpy(zero_copy_only=False)
        expired: NDArray[np.bool_] = known & (seconds < self.oldest_s)
        return expired


def _seconds(times: pa.Array) -> NDArray[np.int64]:
    """Times of any supported type, in seconds; those of NULLs are undefined."""
    numbers: NDArray[np.int64] = times.cast(pa.int64()).fill_null(0).to_numpy()
    if pa.types.is_timestamp(times.type):
        return numbers // _PER_SECOND[times.type.unit]
    return np.where(numbers >= _MILLIS_FROM, numbers // 1000, numbers)


def _comparable(stored: DataType, now: DataType) -> bool:
    """Whether a bound of a file's column, in the type it had, bounds the column as it is now."""
    if not isinstance(stored, Atomic) or not isinstance(now, Atomic):
        return False
    return (stored.kind in INTEGERS and now.kind in INTEGERS) or stored.kind is now.kind
