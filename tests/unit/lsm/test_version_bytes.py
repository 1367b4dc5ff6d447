"""Version bytes: they compare as the merge compares sequence columns, whatever rows are encoded with them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.lsm.key_words import encode_versions
from lakelet.lsm.version_bytes import encode_version_bytes
from lakelet.model.types import Atomic
from tests.tiers.examples import examples
from tests.unit.lsm.key_model import TYPES, column_of, places, values


@st.composite
def versions(draw: st.DrawFn) -> tuple[list[Atomic], list[tuple[object, ...]]]:
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    return types, draw(st.lists(st.tuples(*(st.none() | values(one) for one in types)), min_size=1, max_size=12))


@given(versions(), st.booleans())
@settings(max_examples=examples(200), deadline=None)
def test_they_compare_like_the_words_of_a_merge(
    drawn: tuple[list[Atomic], list[tuple[object, ...]]], descending: bool
) -> None:
    types, rows = drawn
    columns = [column_of(data_type, [row[place] for row in rows]) for place, data_type in enumerate(types)]
    (words,) = encode_versions([columns], types, descending=descending)
    encoded = encode_version_bytes(columns, types, descending=descending)
    assert encoded.type == pa.large_binary()
    assert places(encoded.to_pylist()) == places([tuple(row) for row in np.asarray(words).tolist()])
    for row in range(len(rows)):
        alone = encode_version_bytes([column.slice(row, 1) for column in columns], types, descending=descending)
        assert alone.to_pylist() == encoded.slice(row, 1).to_pylist(), "the form does not depend on other rows"
