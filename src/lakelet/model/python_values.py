"""Python values that Arrow would cut to fit a type without a word: 1.5 becomes the integer 1, a datetime loses its time.

Rows handed over as dicts and values of a partition spec are looked at before Arrow takes them. What Arrow refuses by itself
(text for a number, a number out of range) is left to it, and a FLOAT is the nearest number to what was given.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

_FINEST_US = {"s": 1_000_000, "ms": 1000}


def is_kept(value: Any, arrow: pa.DataType) -> bool:
    """Whether an Arrow value of this type would be the value itself, at every depth."""
    if value is None:
        return True
    types = pa.types
    if types.is_integer(arrow):
        return not isinstance(value, (float, np.floating)) or float(value).is_integer()
    if types.is_date(arrow):
        whole = not isinstance(value, dt.datetime) or value.time() == dt.time()
        return whole and not isinstance(value, (float, np.floating))
    if types.is_timestamp(arrow) or types.is_time(arrow):
        finest = _FINEST_US.get(arrow.unit, 1)
        return not isinstance(value, (float, np.floating)) and getattr(value, "microsecond", 0) % finest == 0
    if types.is_struct(arrow) and isinstance(value, Mapping):
        return all(is_kept(value.get(inner.name), inner.type) for inner in arrow)
    if types.is_map(arrow) and isinstance(value, Iterable):
        pairs = value.items() if isinstance(value, Mapping) else value
        return all(is_kept(key, arrow.key_type) and is_kept(item, arrow.item_type) for key, item in pairs)
    if types.is_list(arrow) and isinstance(value, Iterable):
        return all(is_kept(item, arrow.value_type) for item in value)
    return True
