"""Codes order like keys, also those that come after the coder was made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.lsm.key_words import encode_keys
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.type_parser import parse_type
from lakelet.model.types import DataType
from lakelet.read.lookup.key_bounds import KeyBounds, WantedKeys
from lakelet.read.lookup.key_codes import CUT_BYTES, KeyCoder, SingleKey
from tests.tiers.examples import examples

TEXT = st.text(st.sampled_from("\0ab\x7fé"), max_size=5) | st.sampled_from(["x" * CUT_BYTES, "x" * (CUT_BYTES + 1)])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "BIGINT": st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2),
    "SMALLINT": st.integers(-2, 2),
    "STRING": TEXT,
    "BYTES": TEXT.map(str.encode),
    "BOOLEAN": st.booleans(),
    "DOUBLE": st.sampled_from([float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1.5, -1.5]),
    "DECIMAL(30, 0)": st.decimals(-(10**29), 10**29, places=0) | st.decimals(-2, 2, places=0),
    "DECIMAL(9, 0)": st.decimals(-(10**8), 10**8, places=0) | st.decimals(-2, 2, places=0),
    "TIMESTAMP(6)": st.datetimes(),
    "DATE": st.dates(),
}


@st.composite
def keys(draw: st.DrawFn) -> tuple[list[DataType], list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    texts = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    one = st.tuples(*(VALUES[text] for text in texts))
    return [parse_type(text) for text in texts], *(draw(st.lists(one, min_size=1, max_size=12)) for _ in range(2))


def columns_of(rows: list[tuple[Any, ...]], types: list[DataType]) -> list[pa.Array]:
    return [
        pa.array([row[place] for row in rows], to_arrow(data_type), from_pandas=False)
        for place, data_type in enumerate(types)
    ]


@settings(max_examples=examples(300), deadline=None)
@given(keys())
def test_codes_never_contradict_the_order_of_keys(
    drawn: tuple[list[DataType], list[tuple[Any, ...]], list[tuple[Any, ...]]],
) -> None:
    types, held, asked = drawn
    columns, others = columns_of(held, types), columns_of(asked, types)
    coder = KeyCoder.of(columns, types)
    codes, asked_codes = coder.encode(columns), coder.encode(others)
    words, asked_words = (part.tolist() for part in encode_keys([columns, others], types))
    for mine, code in zip(words, codes.tolist(), strict=True):
        for other, other_code in zip([*words, *asked_words], [*codes.tolist(), *asked_codes.tolist()], strict=True):
            if mine < other:
                assert code <= other_code
            elif mine > other:
                assert code >= other_code
            else:
                assert code == other_code


@settings(max_examples=examples(300), deadline=None)
@given(keys(), st.integers(1, 3))
def test_a_single_key_has_the_code_and_the_candidates_that_it_has_among_many(
    drawn: tuple[list[DataType], list[tuple[Any, ...]], list[tuple[Any, ...]]], bounded: int
) -> None:
    types, held, asked = drawn
    columns, others = columns_of(held, types), columns_of(asked, types)
    # A coder may know fewer columns than a key has, as ranges of row groups do.
    known = min(bounded, len(types))
    coder = KeyCoder.of(columns[:known], types[:known])
    codes = coder.encode(others).tolist()
    ranges = KeyBounds.of(columns[:known], columns[:known], types[:known], np.arange(len(held)) % 3 > 0)
    for place in range(len(asked)):
        one = [column.slice(place, 1) for column in others]
        key = SingleKey(one, types)
        assert key.code(coder) == codes[place]
        assert ranges.holding(key) == [number for number, _ in ranges.candidates(WantedKeys(one, types))]


@settings(max_examples=examples(300), deadline=None)
@given(keys())
def test_a_key_inside_a_range_is_always_a_candidate(
    drawn: tuple[list[DataType], list[tuple[Any, ...]], list[tuple[Any, ...]]],
) -> None:
    types, ends, asked = drawn
    columns, others = columns_of(ends, types), columns_of(asked, types)
    words, asked_words = (part.tolist() for part in encode_keys([columns, others], types))
    order = sorted(range(len(ends)), key=lambda place: words[place])
    lows = [column.take(pa.array(order)) for column in columns]
    highs = [column.take(pa.array([*order[1:], order[-1]])) for column in columns]
    known = np.arange(len(ends)) % 3 != 2
    found = dict(KeyBounds.of(lows, highs, types, known).candidates(WantedKeys(others, types)))
    for number, place in enumerate(order):
        top = order[min(number + 1, len(order) - 1)]
        inside = {at for at, key in enumerate(asked_words) if words[place] <= key <= words[top]}
        candidates = set(found.get(number, np.empty(0)).tolist())
        assert inside <= candidates
        if not known[number]:
            assert candidates == set(range(len(asked)))


def test_most_ranges_are_ruled_out() -> None:
    types = [parse_type("STRING"), parse_type("INT")]
    lows = columns_of([("a", 1), ("b", 5), ("b", 20)], types)
    highs = columns_of([("b", 4), ("b", 9), ("c", 0)], types)
    bounds = KeyBounds.of(lows, highs, types, np.ones(3, np.bool_))
    asked = columns_of([("b", 7), ("bb", 1), ("a", 0), ("b", 4)], types)
    assert {n: sorted(at.tolist()) for n, at in bounds.candidates(WantedKeys(asked, types))} == {0: [3], 1: [0], 2: [1]}


@pytest.mark.parametrize("slices", [(0, 4), (1, 2)])
def test_text_of_one_length_is_not_copied(slices: tuple[int, int]) -> None:
    column = pa.array(["aa", "ab", "ba", "bb"]).slice(*slices)
    coder = KeyCoder.of([column], [parse_type("STRING")])
    codes = coder.encode([column])
    assert codes.tolist() == [text.encode() for text in column.to_pylist()]
    assert codes.ctypes.data == column.buffers()[2].address + 2 * slices[0]
