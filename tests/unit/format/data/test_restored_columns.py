"""Columns come back in the table's types; what a file has too many digits of is cut off as in Java."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelet.format.data.restored_columns import restore_batch


@pytest.mark.parametrize("unit", ["us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_digits_of_a_time_are_cut_off_downwards(unit: str, zone: str | None) -> None:
    per_milli = {"us": 1_000, "ns": 1_000_000}[unit]
    numbers = [-2 * per_milli - 1, -2 * per_milli, -1, 0, 1, per_milli - 1, None, 5 * per_milli + 1]
    stored = pa.array(numbers, pa.int64()).cast(pa.timestamp(unit))
    target = pa.schema([("at", pa.timestamp("ms", zone))])
    for offset in (0, 3):
        batch = pa.RecordBatch.from_arrays([stored.slice(offset)], names=["at"])
        found = restore_batch(batch, target).column(0)
        assert found.type == target.field(0).type
        assert found.cast(pa.int64()).to_pylist() == [-3, -2, -1, 0, 0, 0, None, 5][offset:]


def test_fewer_digits_are_made_more() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([-1, None, 7], pa.timestamp("ms"))], names=["at"])
    found = restore_batch(batch, pa.schema([("at", pa.timestamp("us"))])).column(0)
    assert found.cast(pa.int64()).to_pylist() == [-1_000, None, 7_000]
