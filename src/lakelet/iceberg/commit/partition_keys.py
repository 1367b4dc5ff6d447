"""Partition values as hashable keys, equal where they mean the same partition.

NULL equals NULL, NaN equals NaN, and -0.0 differs from 0.0, for they are different partitions. A UUID is its bytes, whichever
of the two a manifest's reader gives.
"""

from __future__ import annotations

import math
from typing import Any
from uuid import UUID

PartitionKey = tuple[Any, ...]

_NAN = ("NaN",)
_MINUS_ZERO = ("-0.0",)


def value_key(value: Any) -> Any:
    """One value as a key."""
    if isinstance(value, float):
        if math.isnan(value):
            return _NAN
        if value == 0 and math.copysign(1, value) < 0:
            return _MINUS_ZERO
    if isinstance(value, UUID):
        return value.bytes
    return value


def partition_key(values: Any) -> PartitionKey:
    """The values of a partition as a key; they come as a tuple or as a record of a manifest."""
    return tuple(value_key(value) for value in values)
