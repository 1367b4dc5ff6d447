"""year, month, day, hour: how many of them since 1970, counted downwards before it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.errors import InvalidError
from lakelet.iceberg.transforms.plain_array import integers, with_nulls_of

_HOUR = 3_600_000_000
_DAY = 24 * _HOUR
_TYPES = pa.types
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def microseconds(array: pa.Array) -> NDArray[np.int64]:
    """Timestamps or times of the day in microseconds, rounded down; arbitrary for NULL."""
    values, steps = integers(array), _PER_SECOND[array.type.unit]
    if steps <= 1_000_000:
        return values if steps == 1_000_000 else values * (1_000_000 // steps)
    return np.floor_divide(values, steps // 1_000_000)


def hour(array: pa.Array) -> pa.Array:
    """Hours since 1970-01-01 00:00 in UTC."""
    return _number(array, np.floor_divide(microseconds(array), _HOUR), "hour")


def day(array: pa.Array) -> pa.Array:
    """Days since 1970-01-01."""
    return _number(array, _days(array), "day")


def month(array: pa.Array) -> pa.Array:
    """Months since January 1970."""
    return _number(array, _days(array).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64), "month")


def year(array: pa.Array) -> pa.Array:
    """Years since 1970."""
    return _number(array, _days(array).astype("datetime64[D]").astype("datetime64[Y]").astype(np.int64), "year")


def _days(array: pa.Array) -> NDArray[np.int64]:
    if _TYPES.is_date64(array.type):
        array = array.cast(pa.date32())
    return integers(array) if _TYPES.is_date(array.type) else np.floor_divide(microseconds(array), _DAY)


def _number(array: pa.Array, values: NDArray[np.int64], name: str) -> pa.Array:
    limit = np.iinfo(np.int32)
    if len(values) and (values.min() < limit.min or values.max() > limit.max):
        # The value below a NULL is arbitrary.
        outside = (values < limit.min) | (values > limit.max)
        if array.null_count:
            outside &= array.is_valid().to_numpy(zero_copy_only=False)
        if outside.any():
            number = int(np.flatnonzero(outside)[0])
            raise InvalidError(
                f"row {number} is in {name} {int(values[number])} from 1970, more than partitions can tell"
            )
    return with_nulls_of(array, values.astype(np.int32), pa.int32())
