"""Batches to row groups."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakelet.sink.write.row_groups import row_groups


@given(st.lists(st.integers(0, 20), max_size=8), st.integers(1, 15))
def test_groups_are_full_but_the_last(sizes: list[int], rows: int) -> None:
    whole = list(range(sum(sizes)))
    batches, at = [], 0
    for size in sizes:
        batches.append(pa.record_batch({"x": pa.array(whole[at : at + size], pa.int64())}))
        at += size
    groups = [group.column("x").to_pylist() for group in row_groups(batches, rows)]
    assert groups == [whole[start : start + rows] for start in range(0, len(whole), rows)]
