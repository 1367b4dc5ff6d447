"""Numbering of keys, against a dictionary, with good and colliding fingerprints."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.format.rows.binary_row_columns import encode_rows
from lakelet.model.type_parser import parse_type
from lakelet.sink.bucket.seen_keys import Fingerprints, SeenKeys, fingerprints
from lakelet.sink.bucket.sorted_tiers import ABSENT, SortedTiers

TYPES = [parse_type("STRING"), parse_type("INT")]
KEYS = st.lists(st.tuples(st.text("ab", max_size=20), st.integers(0, 3)), max_size=30)


def encoded(keys: list[tuple[str, int]]) -> pa.Array:
    texts, numbers = pa.array([text for text, _ in keys], pa.string()), pa.array([n for _, n in keys], pa.int32())
    return encode_rows([texts, numbers], TYPES)


def weak(keys: pa.Array) -> Fingerprints:
    return fingerprints(keys) % np.uint64(3)


@pytest.mark.parametrize("fingerprint", [None, weak])
@given(batches=st.lists(KEYS, max_size=6), asked=KEYS)
def test_keys_are_numbered_as_they_come(fingerprint, batches, asked) -> None:  # type: ignore[no-untyped-def]
    seen, model = SeenKeys(fingerprint), {}  # type: ignore[var-annotated]
    for batch in batches:
        expected = [model.setdefault(key, len(model)) for key in batch]
        assert seen.number(encoded(batch)).tolist() == expected
        assert len(seen) == len(model)
        assert seen.find(encoded(asked)).tolist() == [model.get(key, ABSENT) for key in asked]


def test_a_slice_of_keys_has_the_fingerprints_of_its_rows() -> None:
    keys = encoded([("a", 1), ("a much longer text", 2), ("b", 3), ("b", 4)])
    every = fingerprints(keys)
    assert len(set(every.tolist())) == 4
    assert fingerprints(keys.slice(1, 2)).tolist() == every[1:3].tolist()
    assert fingerprints(keys.slice(2, 2)).tolist() == every[2:].tolist()


def test_words_in_another_order_are_another_key() -> None:
    types = [parse_type("BIGINT"), parse_type("BIGINT")]
    one = encode_rows([pa.array([1, 2]), pa.array([2, 1])], types)
    prints = fingerprints(one)
    assert prints[0] != prints[1]


@given(st.lists(st.lists(st.integers(-50, 50), unique=True, max_size=20), max_size=8))
def test_tiers_find_what_was_added(batches: list[list[int]]) -> None:
    tiers, model = SortedTiers(), {}  # type: ignore[var-annotated]
    for batch in batches:
        new = sorted(set(batch) - set(model))
        numbers = list(range(len(model), len(model) + len(new)))
        model.update(zip(new, numbers, strict=True))
        tiers.add(np.array(new, np.int32), np.array(numbers, np.int32))
        asked = np.arange(-60, 60, dtype=np.int32)
        assert tiers.find(asked).tolist() == [model.get(key, ABSENT) for key in asked.tolist()]
