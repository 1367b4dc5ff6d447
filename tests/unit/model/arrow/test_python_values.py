"""Values that Arrow would cut."""

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from lakelet.model.arrow.python_values import is_kept

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
        (Decimal("1.5"), pa.int64(), False),
        (Decimal("2"), pa.int64(), True),
        (0.1, pa.float32(), False),
        (0.5, pa.float32(), True),
        (1e300, pa.float32(), False),
        (float("nan"), pa.float32(), True),
        (float("inf"), pa.float32(), True),
        (np.float32(0.1), pa.float32(), True),
        (0.1, pa.float64(), True),
        (True, pa.float64(), False),
        ([0.5, 0.1], pa.list_(pa.float32()), False),
        (5, pa.date32(), False),
        (5, pa.timestamp("us"), False),
        (5, pa.time32("ms"), False),
        (NOON, pa.timestamp("us", "UTC"), False),
        (NOON.replace(tzinfo=dt.UTC), pa.timestamp("us", "UTC"), True),
        (NOON.replace(tzinfo=dt.UTC), pa.timestamp("us"), False),
        (dt.datetime(2024, 1, 1, tzinfo=dt.UTC), pa.date32(), False),
        (dt.time(1, tzinfo=dt.UTC), pa.time32("ms"), False),
        (pd.Timestamp("2024-01-01T00:00:00.000000001"), pa.timestamp("us"), False),
        (pd.Timestamp("2024-01-01T00:00:00.000000001"), pa.timestamp("ns"), True),
        ({"a": 1, "z": 2}, pa.struct([("a", pa.int8())]), False),
        ([("a", 1), ("z", 2)], pa.struct([("a", pa.int8())]), False),
        ([("a", 1)], pa.struct([("a", pa.int8())]), True),
        ([{"a": 1, "z": 2}], pa.list_(pa.struct([("a", pa.int8())])), False),
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
