"""Values that Arrow would cut."""

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelet.model.python_values import is_kept

NOON = dt.datetime(2024, 1, 1, 12)
PRECISE = dt.datetime(2024, 1, 1, 12, 0, 0, 1)


@pytest.mark.parametrize(
    ("value", "arrow", "kept"),
    [
        (1, pa.int32(), True),
        (1.0, pa.int32(), True),
        (1.5, pa.int32(), False),
        (np.float32(1.5), pa.int64(), False),
        (float("nan"), pa.int64(), False),
        (None, pa.int32(), True),
        (0.1, pa.float32(), True),
        (dt.date(2024, 1, 1), pa.date32(), True),
        (dt.datetime(2024, 1, 1), pa.date32(), True),
        (NOON, pa.date32(), False),
        (1.5, pa.date32(), False),
        (NOON, pa.timestamp("ms"), True),
        (PRECISE, pa.timestamp("ms"), False),
        (PRECISE, pa.timestamp("us"), True),
        (1.5, pa.timestamp("us"), False),
        (dt.time(1, 2, 3, 4000), pa.time32("ms"), True),
        (dt.time(1, 2, 3, 4), pa.time32("ms"), False),
        ([1, 1.5], pa.list_(pa.int8()), False),
        ([1, None], pa.list_(pa.int8()), True),
        ({"a": PRECISE}, pa.struct([("a", pa.timestamp("ms"))]), False),
        ({"a": None}, pa.struct([("a", pa.int8())]), True),
        ([("k", 1.5)], pa.map_(pa.string(), pa.int8()), False),
        ({"k": 1.5}, pa.map_(pa.string(), pa.int8()), False),
        ([("k", 1)], pa.map_(pa.string(), pa.int8()), True),
    ],
)
def test_is_kept(value: Any, arrow: pa.DataType, kept: bool) -> None:
    assert is_kept(value, arrow) is kept
