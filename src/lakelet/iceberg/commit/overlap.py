"""Decide from metadata whether the rows of a file have transform(column) = value: none, all, or perhaps some.

Used for files whose partition spec is not the value's. What is known of such a file:

    its partition values       of the same column, by the same or another transform
    its bounds and counts      of the column, by which a transform that keeps the order has bounds too

Where it is unknown, the result is SOME.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any

from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import (
    BinaryType,
    DateType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    UUIDType,
)

from lakelet.iceberg.commit.partition_keys import value_key

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_DAY_MICROS = 86_400_000_000


class Fit(Enum):
    """How many rows of a file have a value."""

    NONE = "none"
    SOME = "some"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Reach:
    """The values that transform(column) may have in a file. `only` is the one that all rows have, as a key in a tuple."""

    only: tuple[Any] | None = None
    low: Any = None
    high: Any = None
    nulls: Fit = Fit.SOME
    nans: Fit = Fit.SOME

    def fit(self, value: Any) -> Fit:
        """How many rows have this value."""
        if self.only is not None:
            return Fit.ALL if value_key(value) == self.only[0] else Fit.NONE
        if value is None:
            return self.nulls
        if self.nulls is Fit.ALL:
            return Fit.NONE
        if isinstance(value, float) and math.isnan(value):
            return self.nans
        if self.nans is Fit.ALL:
            return Fit.NONE
        asked = value_key(value) if not isinstance(value, float) else value
        if (self.low is not None and asked < self.low) or (self.high is not None and asked > self.high):
            return Fit.NONE
        whole = self.low is not None and self.low == self.high == asked
        if whole and self.nulls is Fit.NONE and (self.nans is Fit.NONE or not isinstance(value, float)):
            return Fit.ALL
        return Fit.SOME


def reach_of(
    source_id: int, transform: Transform[Any, Any], kind: PrimitiveType, file: DataFile, spec: PartitionSpec
) -> Reach:
    """The reach of transform(column) in a file of that spec."""
    low, high = _bound(kind, file.lower_bounds, source_id), _bound(kind, file.upper_bounds, source_id)
    nulls = _share(file.null_value_counts, source_id, file.record_count)
    nans = _share(file.nan_value_counts, source_id, file.record_count)
    for place, field in enumerate(spec.fields):
        if field.source_id != source_id or isinstance(field.transform, VoidTransform):
            continue
        value = file.partition[place]
        if field.transform == transform or value is None:
            # A transform gives NULL for NULL alone.
            return Reach(only=(value_key(value),))
        nulls = Fit.NONE
        told = _derived(field.transform, value, transform, kind)
        if told is not None:
            return Reach(only=(value_key(told),))
        narrow = _range(field.transform, value, kind)
        if narrow is not None:
            low = narrow[0] if low is None else max(low, narrow[0])
            high = narrow[1] if high is None else min(high, narrow[1])
    return _transformed(transform, kind, low, high, nulls, nans)


def _transformed(
    transform: Transform[Any, Any], kind: PrimitiveType, low: Any, high: Any, nulls: Fit, nans: Fit
) -> Reach:
    if isinstance(transform, IdentityTransform):
        return Reach(None, _ordered(low), _ordered(high), nulls, nans)
    # Only an identity has NaN for a result.
    move = transform.transform(kind)
    if not transform.preserves_order:
        if low is None or low != high:
            return Reach(nulls=nulls, nans=Fit.NONE)
        low = high = move(low)
        return Reach(None, low, high, nulls, Fit.NONE)
    return Reach(
        None,
        None if low is None else _ordered(move(low)),
        None if high is None else _ordered(move(high)),
        nulls,
        Fit.NONE,
    )


def _ordered(value: Any) -> Any:
    return value if isinstance(value, float) else value_key(value)


def _bound(kind: PrimitiveType, bounds: dict[int, bytes] | None, source_id: int) -> Any:
    found = (bounds or {}).get(source_id)
    if found is None or isinstance(kind, UUIDType):
        # Engines differ in whether uuids are in order with or without a sign.
        return None
    try:
        value: Any = from_bytes(kind, found)
    except (struct.error, ValueError):
        return None
    return None if isinstance(value, float) and math.isnan(value) else value


def _share(counts: dict[int, int] | None, source_id: int, rows: int) -> Fit:
    found = (counts or {}).get(source_id)
    if found is None:
        return Fit.SOME
    return Fit.NONE if found == 0 else Fit.ALL if found == rows else Fit.SOME


def _derived(known: Transform[Any, Any], value: Any, asked: Transform[Any, Any], kind: PrimitiveType) -> Any:
    """The result of one transform implied by another's `value`; None where that is not a single value."""
    if isinstance(known, IdentityTransform):
        return asked.transform(kind)(value)
    if isinstance(known, BucketTransform) and isinstance(asked, BucketTransform):
        return value % asked.num_buckets if known.num_buckets % asked.num_buckets == 0 else None
    if (
        isinstance(known, TruncateTransform)
        and isinstance(asked, TruncateTransform)
        and isinstance(kind, (StringType, BinaryType))
        and asked.width <= known.width
    ):
        return value[: asked.width]
    return None


def _range(known: Transform[Any, Any], value: Any, kind: PrimitiveType) -> tuple[Any, Any] | None:
    """The lowest and the highest value of a column for which a transform gives `value`."""
    if isinstance(known, TruncateTransform) and isinstance(kind, (IntegerType, LongType)):
        return value, value + known.width - 1
    unit = _per_day(kind)
    if unit is None:
        return None
    if isinstance(known, HourTransform):
        return value * (unit // 24), (value + 1) * (unit // 24) - 1
    days = _days(known, value)
    return None if days is None else (days[0] * unit, days[1] * unit - 1)


def _days(known: Transform[Any, Any], value: int) -> tuple[int, int] | None:
    """The first day of a period, and the first after it."""
    try:
        if isinstance(known, DayTransform):
            return value, value + 1
        if isinstance(known, MonthTransform):
            return _first_of_month(value), _first_of_month(value + 1)
        if isinstance(known, YearTransform):
            return _first_of_month(value * 12), _first_of_month((value + 1) * 12)
    except (ValueError, OverflowError):
        # Before year 1 or after 9999.
        return None
    return None


def _first_of_month(months: int) -> int:
    return date(1970 + months // 12, months % 12 + 1, 1).toordinal() - _EPOCH_DAY


def _per_day(kind: PrimitiveType) -> int | None:
    if isinstance(kind, DateType):
        return 1
    if isinstance(kind, (TimestampType, TimestamptzType)):
        return _DAY_MICROS
    if isinstance(kind, (TimestampNanoType, TimestamptzNanoType)):
        return _DAY_MICROS * 1000
    return None
