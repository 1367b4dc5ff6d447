"""Entries that continue earlier ones are those that all manifests together make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.types import LongType

from lakelet.iceberg.metadata import manifests as fields
from lakelet.iceberg.metadata.manifests import STATISTICS, Entries
from lakelet.iceberg.scan.column_statistics import Bounds
from lakelet.iceberg.scan.continued_entries import continued, new_places
from lakelet.iceberg.scan.live_entries import LiveEntries
from tests.tiers.examples import examples
from tests.unit.iceberg.scan.test_live_entries import entries

COUNTS = pa.list_(pa.struct([("key", pa.int32()), ("value", pa.int64())]))
LOWER = pa.list_(pa.struct([("key", pa.int32()), ("value", pa.binary())]))
OTHER_LOWER = pa.list_(pa.struct([("k", pa.int32()), ("v", pa.large_binary())]))
VALUES = st.none() | st.sampled_from(["x", "y"])
FLOATS = st.none() | st.sampled_from([0.0, -0.0, math.nan, 1.5])


@st.composite
def manifests(draw: st.DrawFn) -> Entries:
    count = draw(st.integers(0, 3))
    kind = draw(st.sampled_from([None, pa.string(), pa.float64()]))
    partitions = None
    if kind is not None:
        values = draw(st.lists(VALUES if kind == pa.string() else FLOATS, min_size=count, max_size=count))
        partitions = pa.array([{"a": one} for one in values], pa.struct([("a", kind)]))
    more: dict[str, pa.Array] = {}
    if draw(st.booleans()):
        more[f"f{fields.NULLS}"] = pa.array([[(1, one), (2, 7)] if one else None for one in range(count)], COUNTS)
    bounds = draw(st.sampled_from([None, LOWER, OTHER_LOWER]))
    if bounds is not None:
        low = [[(1, one.to_bytes(8, "little"))] for one in range(count)]
        more[f"f{fields.LOWER}"] = pa.array(low, bounds)
    spec_id = draw(st.integers(0, 1)) if kind is None else 2 if kind == pa.string() else 3
    return entries(f"m{draw(st.integers(0, 99))}", partitions, count, spec_id, **more)


def shown(live: LiveEntries) -> list[Any]:
    plain = [live.paths, live.formats, live.rows, live.sizes, live.contents, live.sequence_numbers, live.manifests]
    partitions = [repr(live.partitions[code]) for code in live.partition_codes.tolist()]
    statistics = [live.statistics(number, LongType()) for number in (1, 2, 3)] if live.pairs else []
    counts = [(one.value_counts.tolist(), one.null_counts.tolist(), one.nan_counts.tolist()) for one in statistics]
    bounds = [_bounds(one.lower) for one in statistics]
    return [[one.tolist() for one in plain], live.manifest_paths, partitions, counts, bounds]


def _bounds(found: Bounds | None) -> list[Any]:
    return [] if found is None else [found.known.tolist(), found.values[found.known].tolist()]


@given(before=st.lists(manifests(), min_size=1, max_size=4), new=st.lists(manifests(), max_size=3), data=st.data())
@settings(max_examples=examples(200))
def test_continued_entries_are_those_of_all_manifests(
    before: list[Entries], new: list[Entries], data: st.DataObject
) -> None:
    statistics, new_first = data.draw(st.booleans()), data.draw(st.booleans())

    def of(parts: Sequence[Entries]) -> LiveEntries:
        return LiveEntries.of(parts, statistics=statistics)

    earlier = of(before)
    earlier.once("all", lambda: len(earlier.partitions))
    made = continued(earlier, of(new), new_first=new_first)
    assert shown(made) == shown(of([*new, *before] if new_first else [*before, *new]))
    assert set(made.pairs) == (set(STATISTICS) if statistics else set())
    assert made.once("all", lambda: len(made.partitions)) == len(made.partitions)


@pytest.mark.parametrize(
    ("names", "before", "expected"),
    [
        ("cab", "ab", (range(1), True)),
        ("abc", "ab", (range(2, 3), False)),
        ("ab", "ab", (range(0), True)),
        ("acb", "ab", None),
        ("a", "ab", None),
        ("cb", "ab", None),
        ("ba", "ab", None),
        ("ab", "", None),
    ],
)
def test_only_what_was_appended_is_continued(names: str, before: str, expected: tuple[range, bool] | None) -> None:
    assert new_places(names, before) == expected
