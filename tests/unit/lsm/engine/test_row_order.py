"""The order in which rows are folded: by key, and the last of a key is the one that would win."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.errors import CorruptionError
from lakelet.lsm.engine.row_order import rows_by_key
from lakelet.lsm.winners import SortedRun, winners

Row = tuple[int, int, int, bool]
rows = st.tuples(st.integers(0, 5), st.integers(0, 9), st.integers(0, 2), st.booleans())


def run(rows: list[Row], *, versions: bool, absent: bool) -> SortedRun:
    return SortedRun(
        np.array([[row[0]] for row in rows], np.uint64).reshape(-1, 1),
        np.array([row[1] for row in rows], np.int64),
        np.array([[row[2]] for row in rows], np.uint64).reshape(-1, 1) if versions else None,
        np.array([row[3] for row in rows], np.bool_) if absent else None,
    )


@given(
    runs=st.lists(
        st.lists(rows, max_size=8).map(lambda rows: sorted(rows, key=lambda row: row[0])), min_size=1, max_size=5
    ),
    versions=st.booleans(),
    absent=st.booleans(),
    apart=st.booleans(),
)
def test_rows_ascend_by_key_and_by_what_decides(
    runs: list[list[Row]], versions: bool, absent: bool, apart: bool
) -> None:
    if apart:
        # Later runs hold older rows, so that the order of the runs says nothing.
        runs = [[(key, seq - 100 * place, *rest) for key, seq, *rest in run] for place, run in enumerate(runs)]  # type: ignore[misc]
    sorted_runs = [run(part, versions=versions, absent=absent) for part in runs]
    order, starts = rows_by_key(sorted_runs)
    flat = [row for part in runs for row in part]
    expected = sorted(
        (number for number, row in enumerate(flat) if not (absent and row[3])),
        key=lambda number: (flat[number][0], flat[number][2] if versions else 0, flat[number][1], number),
    )
    assert order.tolist() == expected
    keys = [flat[number][0] for number in expected]
    assert starts.tolist() == [place for place, key in enumerate(keys) if place == 0 or keys[place - 1] != key]
    lasts = order[np.append(starts[1:], len(order)) - 1] if len(order) else order
    assert lasts.tolist() == winners(sorted_runs, ordered=True).tolist()


def test_a_run_out_of_order_is_told() -> None:
    with pytest.raises(CorruptionError, match="sorted run 0"):
        rows_by_key([run([(2, 0, 0, False), (1, 1, 0, False)], versions=False, absent=False)])
