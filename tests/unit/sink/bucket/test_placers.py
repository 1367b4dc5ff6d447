"""Placers: the bucket of each row of a batch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.errors import InternalError
from lakelet.sink.bucket.extractors import Extracted
from lakelet.sink.bucket.placers import rows_by_place


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([-2, 0, 1, 70_000])), max_size=30))
def test_every_row_is_in_its_place_in_order(rows: list[tuple[int, int]]) -> None:
    names = [b"a", b"b", b"c"]
    codes = np.array([code for code, _ in rows], np.int64)
    found = rows_by_place(Extracted(names, codes, np.array([bucket for _, bucket in rows], np.int32)))
    expected: dict[tuple[bytes, int], list[int]] = {}
    for number, (code, bucket) in enumerate(rows):
        expected.setdefault((names[code], bucket), []).append(number)
    assert {place: list(range(len(rows))) if own is None else own.tolist() for place, own in found} == expected
    assert len(found) == len(expected)


def test_rows_of_one_place_are_not_listed() -> None:
    ((place, rows),) = rows_by_place(Extracted([b"a", b"b"], np.array([1, 1]), np.array([4, 4], np.int32)))
    assert (place, rows) == ((b"b", 4), None)


def test_rows_without_buckets_are_refused() -> None:
    with pytest.raises(InternalError):
        rows_by_place(Extracted([b"a"], np.zeros(1, np.int64), None))
