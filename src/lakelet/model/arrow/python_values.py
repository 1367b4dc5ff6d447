"""Detect Python values that Arrow would convert to a type lossily, without an error.

Arrow makes 1.5 the integer 1 and 0.1 the nearest 32-bit number; a datetime loses its time or its zone, a dict the members that
a ROW does not have.

Rows given as dicts and values of a partition spec are checked before Arrow converts them. What Arrow refuses by itself
(text for a number, a number out of range) is left to it. Times are datetimes, never bare numbers, whose unit is unknown;
one with a zone is an instant, one without is not, and neither is accepted for the other.
"""

from __future__ import annotations

import ctypes
import datetime as dt
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

_FINEST_US = {"s": 1_000_000, "ms": 1000}


def is_kept(value: Any, arrow: pa.DataType) -> bool:
    """Whether the conversion to this Arrow type keeps the value unchanged, at every depth."""
    if value is None:
        return True
    types = pa.types
    if types.is_integer(arrow):
        return _is_whole(value)
    if types.is_floating(arrow):
        return not isinstance(value, (bool, np.bool_)) and (arrow.bit_width == 64 or _fits_single(value))
    if types.is_date(arrow):
        midnight = not isinstance(value, dt.datetime) or (value.time() == dt.time() and value.tzinfo is None)
        return midnight and not _is_number(value)
    if types.is_timestamp(arrow):
        zoned = getattr(value, "tzinfo", None) is not None
        return zoned == (arrow.tz is not None) and _is_fine(value, arrow.unit)
    if types.is_time(arrow):
        return getattr(value, "tzinfo", None) is None and _is_fine(value, arrow.unit)
    return _is_kept_inside(value, arrow)


def _is_kept_inside(value: Any, arrow: pa.DataType) -> bool:
    types = pa.types
    if types.is_struct(arrow) and isinstance(value, Iterable):
        members = value if isinstance(value, Mapping) else _members(value)
        known = {inner.name: inner.type for inner in arrow}
        return all(name in known and is_kept(member, known[name]) for name, member in members.items())
    if types.is_map(arrow) and isinstance(value, Iterable):
        pairs = value.items() if isinstance(value, Mapping) else value
        return all(is_kept(key, arrow.key_type) and is_kept(item, arrow.item_type) for key, item in pairs)
    if types.is_list(arrow) and isinstance(value, Iterable):
        return all(is_kept(item, arrow.value_type) for item in value)
    return True


def without_uuids(value: Any, arrow: pa.DataType) -> Any:
    """The value with uuids, at every depth, as the text or the bytes that a type holds of them."""
    types = pa.types
    if isinstance(value, UUID):
        return str(value) if types.is_string(arrow) else value.bytes if types.is_binary(arrow) else value
    if types.is_struct(arrow) and isinstance(value, Mapping):
        known = {inner.name: inner.type for inner in arrow}
        return {name: without_uuids(member, known.get(name, pa.null())) for name, member in value.items()}
    if types.is_map(arrow) and isinstance(value, Iterable):
        pairs = value.items() if isinstance(value, Mapping) else value
        return [(without_uuids(key, arrow.key_type), without_uuids(item, arrow.item_type)) for key, item in pairs]
    if types.is_list(arrow) and isinstance(value, (list, tuple)):
        return [without_uuids(item, arrow.value_type) for item in value]
    return value


def _members(pairs: Iterable[Any]) -> dict[Any, Any]:
    """A ROW given as pairs of name and value."""
    return {name: member for name, member in pairs}  # noqa: C416 - each pair is unpacked, so that others fail here.


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating, Decimal))


def _is_whole(value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_finite() and value == value.to_integral_value()
    if isinstance(value, (float, np.floating)):
        return float(value).is_integer()
    # Values that are merely convertible to a number, such as a uuid or a fraction, are not numbers. Arrow refuses text.
    return hasattr(value, "__index__") or not hasattr(value, "__int__")


def _fits_single(value: Any) -> bool:
    """Whether a number has 32 bits' precision at most; integers are left to Arrow, which counts their digits."""
    if not isinstance(value, (float, np.floating)):
        return True
    number = float(value)
    return number != number or ctypes.c_float(number).value == number  # noqa: PLR0124 - only NaN differs from itself.


def _is_fine(value: Any, unit: str) -> bool:
    """Whether a time has no digits beyond its unit."""
    below_us = getattr(value, "nanosecond", 0) if unit != "ns" else 0
    return not _is_number(value) and below_us == 0 and getattr(value, "microsecond", 0) % _FINEST_US.get(unit, 1) == 0
