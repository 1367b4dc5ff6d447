"""Groups of rows: what an engine is shown of them, and how they are cut."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.lsm import ordered_rows
from lakelet.lsm.engine.key_groups import KeyGroups, key_groups
from lakelet.lsm.key_value_columns import VALUE_KIND

ROWS = pa.record_batch(
    {"k": [1, 2, 1, 3, 1], "v": ["a", None, None, "d", "e"], VALUE_KIND: pa.array([0, 2, 3, 0, 1], pa.int8())}
)
GROUPS = KeyGroups(ROWS, np.array([0, 2, 4, 1, 3]), np.array([0, 3, 4]))


def test_columns_come_in_the_order_of_the_groups() -> None:
    assert len(GROUPS) == 3
    assert GROUPS.ends.tolist() == [3, 4, 5]
    assert GROUPS.column("v").to_pylist() == ["a", None, "e", None, "d"]
    assert GROUPS.column("v") is GROUPS.column("v"), "a column is gathered once"
    assert GROUPS.newest("v").to_pylist() == ["e", None, "d"]
    assert GROUPS.valid("v").tolist() == [True, False, True, False, True]
    assert GROUPS.valid("k").all()


def test_kinds_are_told_by_row() -> None:
    assert GROUPS.kinds().tolist() == [0, 3, 1, 2, 0]
    retracts = GROUPS.retracts()
    assert retracts is not None
    assert retracts.tolist() == [False, True, True, False, False]
    plain = KeyGroups(ROWS.select(["k"]), GROUPS.order, GROUPS.starts)
    assert plain.kinds().tolist() == [0] * 5
    assert plain.retracts() is None


def test_a_place_below_zero_is_null() -> None:
    assert GROUPS.pick("v", np.array([-1, 0, 2])).to_pylist() == [None, "a", "e"]
    assert GROUPS.pick("v", np.array([4, 3, 0])).to_pylist() == ["d", None, "a"]


def test_the_last_flagged_place_of_each_key_is_found() -> None:
    assert GROUPS.last_places(np.array([True, True, False, False, True])).tolist() == [1, -1, 4]
    assert GROUPS.last_places(np.zeros(5, np.bool_)).tolist() == [-1, -1, -1]


@given(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=12), batch_rows=st.integers(1, 12), large=st.booleans())
def test_no_key_is_cut_in_two(sizes: list[int], batch_rows: int, large: bool) -> None:
    total = sum(sizes)
    keys = [key for key, size in enumerate(sizes) for _ in range(size)]
    table = pa.table({"k": keys[::-1], "v": [str(row) for row in range(total)]})
    order = np.arange(total)[::-1]
    starts = np.cumsum([0, *sizes[:-1]])
    with pytest.MonkeyPatch.context() as patched:
        if large:
            # As if a column in one piece ended at a few bytes.
            patched.setattr(ordered_rows, "_MOST_BYTES", 40)
        parts = list(key_groups(table, order, starts, batch_rows))
    assert [value for part in parts for value in part.column("v").to_pylist()] == [str(row) for row in order]
    assert [key for part in parts for key in part.newest("k").to_pylist()] == list(range(len(sizes)))
    for part in parts:
        assert len(part.order) <= batch_rows or len(part) == 1
