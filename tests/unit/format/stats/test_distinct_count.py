"""Counting different values: exactly while they are few, closely when they are many."""

import numpy as np
import pyarrow as pa
import pytest

from lakelet.format.stats.distinct_count import EXACT_VALUES, DistinctCount
from lakelet.ids import seeded_numbers
from lakelet.model.type_parser import parse_type


def counted(type_text: str, *arrays: pa.Array) -> DistinctCount:
    found = DistinctCount(parse_type(type_text))
    for array in arrays:
        found.update(array)
    return found


def test_few_values_are_counted_exactly() -> None:
    found = counted("STRING", pa.array(["a", None, "b"]), pa.array(["b", "c", ""]), pa.array([], pa.string()))
    assert found.count == 4
    assert counted("INT").count == 0
    assert counted("INT", pa.nulls(3, pa.int32())).count == 0
    most = np.arange(EXACT_VALUES)
    assert counted("BIGINT", pa.array(most), pa.array(most)).count == EXACT_VALUES


def test_zeros_are_one_value_and_so_are_nans() -> None:
    found = counted("DOUBLE", pa.array([0.0, -0.0, float("nan")]), pa.array([-0.0, float("nan"), 1.0]))
    assert found.count == 3
    assert counted("FLOAT", pa.array([0.0, -0.0], pa.float32())).count == 1


@pytest.mark.parametrize("values", [EXACT_VALUES + 1, 30_000, 60_000, 300_000])
def test_many_numbers_are_counted_closely(values: int) -> None:
    order = seeded_numbers(values).permutation(values)
    found = counted("BIGINT", *(pa.array(part) for part in np.array_split(np.concatenate([order, order]), 7)))
    assert found.count == pytest.approx(values, rel=0.03)


def test_many_texts_are_counted_closely() -> None:
    texts = pa.array([f"customer number {number}" for number in range(50_000)])
    found = counted("STRING", texts, texts.slice(100, 20_000))
    assert found.count == pytest.approx(50_000, rel=0.03)


def test_large_values_are_not_kept() -> None:
    large = pa.array([bytes([number]) * (1 << 20) for number in range(10)])
    found = counted("BYTES", large)
    assert found.count == 10
