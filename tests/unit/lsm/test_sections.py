"""Sections: every overlap inside one, none across, as few runs as possible."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.format.manifest.manifest_columns import EMPTY_ROW
from lakelet.format.rows.binary_row import encode_row
from lakelet.lsm.key_words import Words, encode_keys
from lakelet.lsm.sections import Section, needs_merge, sections
from lakelet.model.data_file import DataFile, Stats
from lakelet.model.type_parser import parse_type
from lakelet.model.types import DataType

STATS = Stats(EMPTY_ROW, EMPTY_ROW, ())
BIGINT = (parse_type("BIGINT NOT NULL"),)
PAIR = (parse_type("STRING NOT NULL"), parse_type("INT NOT NULL"))


def file(
    low: tuple[object, ...],
    high: tuple[object, ...],
    types: tuple[object, ...] = BIGINT,
    *,
    sequence: int = 0,
    deletes: int | None = 0,
    level: int = 0,
) -> DataFile:
    return DataFile(
        name=f"{low}-{high}",
        size=1,
        row_count=1,
        min_key=encode_row(low, types),  # type: ignore[arg-type]
        max_key=encode_row(high, types),  # type: ignore[arg-type]
        key_stats=STATS,
        value_stats=STATS,
        min_sequence=0,
        max_sequence=sequence,
        schema_id=0,
        level=level,
        delete_row_count=deletes,
    )


def test_no_files_have_no_sections() -> None:
    assert sections([], BIGINT) == ()


def test_the_picture_in_the_module() -> None:
    ranges = [(0, 8), (4, 12), (10, 14), (20, 26), (30, 36)]
    files = [file((low,), (high,), sequence=place) for place, (low, high) in enumerate(ranges)]
    assert sections(files, BIGINT) == (Section(((1,), (0, 2))), Section(((3,),)), Section(((4,),)))


def test_ranges_that_share_one_key_overlap() -> None:
    files = [file((5,), (9,)), file((1,), (5,)), file((10,), (11,))]
    assert [set(section.places) for section in sections(files, BIGINT)] == [{0, 1}, {2}]


def test_runs_come_oldest_first() -> None:
    files = [file((0,), (9,), sequence=7), file((0,), (9,), sequence=3), file((0,), (9,), sequence=5)]
    assert sections(files, BIGINT) == (Section(((1,), (2,), (0,))),)


def test_keys_of_several_columns_compare_as_keys() -> None:
    files = [
        file(("b", 1), ("b", 3), PAIR),
        file(("a", 500), ("b", 0), PAIR),
        file(("b", -5), ("b", -1), PAIR),
        file(("bb", -9), ("c", 0), PAIR),
    ]
    assert [set(section.places) for section in sections(files, PAIR)] == [{1, 2}, {0}, {3}]


def test_what_needs_a_merge() -> None:
    files = [file((0,), (1,)), file((1,), (2,)), file((5,), (6,), deletes=1), file((8,), (9,), deletes=None)]
    found = sections(files, BIGINT)
    assert [needs_merge(files, section) for section in found] == [True, True, True]
    alone = [file((0,), (1,)), file((3,), (4,), level=5)]
    found = sections(alone, BIGINT)
    assert [needs_merge(alone, section) for section in found] == [False, False]
    assert [needs_merge(alone, section, counts_deletes=False) for section in found] == [True, False]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6), st.integers(0, 5)), max_size=25))
def test_overlaps_stay_together_and_runs_are_as_few_as_can_be(drawn: list[tuple[int, int, int]]) -> None:
    files = [file((low,), (low + length,), sequence=sequence) for low, length, sequence in drawn]
    spans = [(low, low + length) for low, length, _ in drawn]
    found = sections(files, BIGINT)
    assert sorted(place for section in found for place in section.places) == list(range(len(files)))
    reach = -1
    for section in found:
        assert min(spans[place][0] for place in section.places) > reach
        reach = max(spans[place][1] for place in section.places)
        covered = sorted(spans[place] for place in section.places)
        end = covered[0][1]
        for low, high in covered[1:]:
            assert low <= end
            end = max(end, high)
        deepest = max(sum(low <= key <= high for low, high in covered) for key in range(40))
        assert len(section.runs) == deepest
        for run in section.runs:
            ends = [spans[place] for place in run]
            assert all(one[1] < other[0] for one, other in pairwise(ends))
        newest = [max(files[place].max_sequence for place in run) for run in section.runs]
        assert newest == sorted(newest)


def test_ten_thousand_files_are_compared_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(parts: Sequence[Sequence[pa.Array]], types: Sequence[DataType]) -> list[Words]:
        calls.append(sum(len(part[0]) for part in parts))
        return encode_keys(parts, types)

    monkeypatch.setattr("lakelet.lsm.sections.encode_keys", counted)
    files = [file((place * 7 % 9973,), (place * 7 % 9973 + 20,), sequence=place) for place in range(10_000)]
    found = sections(files, BIGINT)
    assert sum(len(section.places) for section in found) == 10_000
    # Both ends of every file are made comparable once, together.
    assert calls == [20_000]
