"""Which files of append tables are merged, by cases worked out by hand and by random commits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.compact.append.append_plan import AppendPolicy, Group
from lakelet.model.data_file import DataFile
from tests.unit.compact.append_tables import append_table
from tests.unit.lsm.bucket_files import data_file

LOOSE = AppendPolicy(
    target_bytes=1000,
    open_bytes=50,
    min_files=3,
    delete_ratio=0.2,
    rewrites_all=False,
    keeps_order=False,
    newest_schema=0,
)
ORDERED = replace(LOOSE, keeps_order=True)


def files(*sizes: int) -> list[DataFile]:
    """Files of these sizes, named by them and their place, of 100 rows each that follow each other."""
    return [
        replace(data_file(f"{size}.{place}", 0, size, first=place * 100, sequence=place * 100 + 99), row_count=100)
        for place, size in enumerate(sizes)
    ]


def sizes(groups: Sequence[Group]) -> list[list[int]]:
    return [[file.size for file in group] for group in groups]


@pytest.mark.parametrize(
    ("given_sizes", "expected"),
    [
        ([], []),
        ([10, 10], []),
        ([10, 30, 20], [[10, 20, 30]]),
        # 700 is not small any more, 699 is.
        ([700, 10, 20], []),
        ([699, 10, 20], [[10, 20, 699]]),
        # 600 + 650 + 660 and three openings make 2060: twice the target. What is left is too little.
        ([600, 650, 660, 690], [[600, 650, 660]]),
        ([600, 650, 660, 690, 691, 692], [[600, 650, 660], [690, 691, 692]]),
    ],
)
def test_small_files_are_packed_by_size(given_sizes: list[int], expected: list[list[int]]) -> None:
    assert sizes(LOOSE.pick(files(*given_sizes), {}, full=False)) == expected


def test_many_tiny_files_are_cut_by_the_cost_of_opening_them_unless_all_are_wanted() -> None:
    tiny = files(*[1] * 100)
    # 40 files of 51 are more than 2000.
    assert [len(group) for group in LOOSE.pick(tiny, {}, full=False)] == [40, 40, 20]
    assert [len(group) for group in LOOSE.pick(tiny, {}, full=True)] == [100]


def test_full_compaction_takes_two_files_and_never_one() -> None:
    assert sizes(LOOSE.pick(files(10, 20), {}, full=True)) == [[10, 20]]
    assert sizes(LOOSE.pick(files(10, 900), {}, full=True)) == []


def test_a_file_of_which_much_is_deleted_is_rewritten() -> None:
    (large,) = files(900)
    assert LOOSE.pick([large], {large.name: 20}, full=False) == []
    assert LOOSE.pick([large], {large.name: 21}, full=False) == [(large,)]
    assert LOOSE.pick([large], {large.name: None}, full=False) == [(large,)]
    assert LOOSE.pick([large], {large.name: 1}, full=True) == [(large,)]
    small, other = files(10, 20)
    assert LOOSE.pick([small, other], {small.name: 1}, full=False) == [(small,)]
    assert LOOSE.pick([small, other], {small.name: 1}, full=True) == [(small, other)]


def test_everything_can_be_asked_to_be_rewritten() -> None:
    thorough = replace(LOOSE, rewrites_all=True)
    assert sizes(thorough.pick(files(900, 10), {}, full=True)) == [[10, 900]]
    assert thorough.pick(files(900, 10), {}, full=False) == []


def test_files_of_a_newer_schema_or_from_elsewhere_stay() -> None:
    one, two, three = files(10, 20, 30)
    newer = replace(three, schema_id=1)
    assert LOOSE.pick([one, two, newer], {newer.name: None}, full=True) == [(one, two)]
    outside = replace(two, external_path="file:/x")
    assert LOOSE.pick([one, outside], {}, full=True) == []
    assert LOOSE.pick_inline([one, two, newer], {}) == []


@pytest.mark.parametrize(
    ("given_sizes", "full", "expected"),
    [
        ([30, 10, 20], False, [[30, 10, 20]]),
        # A large file stands between, and stays.
        ([10, 20, 800, 30, 40, 50], False, [[30, 40, 50]]),
        ([10, 20, 800, 30, 900, 50], True, [[10, 20]]),
        ([600, 650, 660, 10, 10], False, [[600, 650, 660]]),
        ([600, 650, 660, 10, 10], True, [[600, 650, 660, 10, 10]]),
        ([600, 650, 660, 100, 10, 10], True, [[600, 650, 660, 100], [10, 10]]),
    ],
)
def test_only_neighbours_are_put_together_where_rows_have_an_order(
    given_sizes: list[int], full: bool, expected: list[list[int]]
) -> None:
    shuffled = sorted(files(*given_sizes), key=lambda file: file.name)
    assert sizes(ORDERED.pick(shuffled, {}, full=full)) == expected


def test_files_of_writers_that_wrote_at_once_stay_together() -> None:
    a, b, c, d = files(10, 10, 10, 10)
    twin = replace(b, min_sequence=a.min_sequence + 1, max_sequence=a.max_sequence + 1)
    large = replace(twin, size=900)
    assert ORDERED.pick([a, twin, c], {}, full=False) == [(a, twin, c)]
    # The large one cannot go, and the small one must not leave it.
    assert ORDERED.pick([a, large, c, d], {}, full=True) == [(c, d)]
    assert ORDERED.pick_inline([a, large, c, d], {}) == []


def test_after_a_write_files_of_one_tier_are_merged() -> None:
    one, two, three, four = files(10, 10, 10, 10)
    assert LOOSE.pick_inline([one, two], {}) == []
    assert LOOSE.pick_inline([one, two, three], {}) == [(one, two, three)]
    higher = replace(four, row_count=300)
    assert LOOSE.pick_inline([higher, one, two], {}) == []
    assert LOOSE.pick_inline([higher, one, two, three], {}) == [(one, two, three)]
    # Deleted rows do not count: 100 rows are of tier 4, 80 of tier 3.
    assert LOOSE.pick_inline([one, two, three], {three.name: 20}) == [(three, one, two)]
    # A file of a higher tier stands between; with it, they are not enough for the tier above.
    assert ORDERED.pick_inline([one, replace(two, row_count=300), three, four], {}) == []
    assert ORDERED.pick_inline([replace(one, row_count=300), two, three, four], {}) == [(two, three, four)]


def test_a_write_never_rewrites_large_files() -> None:
    assert sizes(LOOSE.pick_inline(files(700, 700, 700, 699, 698), {})) == []
    assert sizes(LOOSE.pick_inline(files(700, 699, 10, 698), {})) == [[699, 10, 698]]


def test_files_without_rows_go_as_well() -> None:
    empty = [replace(file, row_count=0) for file in files(10, 10, 10)]
    assert LOOSE.pick_inline(empty, {}) == [tuple(empty)]


def test_options_become_a_policy() -> None:
    assert AppendPolicy.of(append_table().schema) == AppendPolicy(
        target_bytes=256 << 20,
        open_bytes=4 << 20,
        min_files=5,
        delete_ratio=0.2,
        rewrites_all=False,
        keeps_order=False,
        newest_schema=0,
    )
    options = {
        "bucket": "2",
        "bucket-key": "id",
        "target-file-size": "1 mb",
        "compaction.min.file-num": "1",
        "compaction.delete-ratio-threshold": "0.5",
        "compaction.force-rewrite-all-files": "true",
        "source.split.open-file-cost": "0 kb",
    }
    policy = AppendPolicy.of(append_table(options=options).schema)
    assert policy == AppendPolicy(1 << 20, 0, 2, 0.5, True, True, 0)


def simulated(policy: AppendPolicy, commits: Sequence[int]) -> tuple[list[DataFile], int]:
    """The files after commits of these row counts, a byte each, with what is merged after each, and all rows written."""
    live: list[DataFile] = []
    written = sequence = 0
    for number, rows in enumerate(commits):
        made = data_file(f"c{number}", 0, rows, first=sequence, sequence=sequence + rows - 1)
        live.append(replace(made, row_count=rows))
        sequence += rows
        written += rows
        for place, group in enumerate(policy.pick_inline(live, {})):
            gone = {file.name for file in group}
            merged = sum(file.row_count for file in group)
            written += merged
            low, high = min(file.min_sequence for file in group), max(file.max_sequence for file in group)
            if policy.keeps_order:
                # Nothing stands between the files of a group.
                assert high - low + 1 == merged
            live = [file for file in live if file.name not in gone]
            whole = data_file(f"m{number}-{place}", 0, merged, first=low, sequence=high)
            live.append(replace(whole, row_count=merged))
    return live, written


@pytest.mark.parametrize("keeps_order", [False, True])
@pytest.mark.parametrize(("commits", "min_files"), [(500, 5), (2000, 5), (2000, 2), (2000, 10)])
def test_equal_commits_are_rewritten_once_per_tier(commits: int, min_files: int, keeps_order: bool) -> None:
    policy = replace(LOOSE, target_bytes=1 << 40, min_files=min_files, keeps_order=keeps_order)
    live, written = simulated(policy, [100] * commits)
    tiers = math.log(commits, min_files) + 1
    assert sum(file.row_count for file in live) == 100 * commits
    assert written <= 100 * commits * (1 + tiers)
    assert len(live) <= (min_files - 1) * (tiers + 1)


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=150), st.integers(2, 6), st.booleans())
def test_any_commits_are_rewritten_at_most_once_per_tier(rows: list[int], min_files: int, keeps_order: bool) -> None:
    policy = replace(LOOSE, target_bytes=1 << 40, min_files=min_files, keeps_order=keeps_order)
    live, written = simulated(policy, rows)
    tiers = math.floor(math.log(sum(rows), min_files)) + 1
    assert sum(file.row_count for file in live) == sum(rows)
    assert written <= sum(rows) * (1 + tiers)
    if not keeps_order:
        assert len(live) <= (min_files - 1) * (tiers + 1)


@given(
    st.lists(st.integers(1, 1200), max_size=40),
    st.lists(st.integers(0, 100), min_size=40, max_size=40),
    st.booleans(),
    st.booleans(),
)
def test_groups_are_parts_of_the_files(given_sizes: list[int], gone: list[int], full: bool, keeps_order: bool) -> None:
    policy = ORDERED if keeps_order else LOOSE
    stand = files(*given_sizes)
    deleted: dict[str, int | None] = {file.name: count for file, count in zip(stand, gone, strict=False) if count > 60}
    groups = policy.pick(stand, deleted, full=full)
    taken = [file.name for group in groups for file in group]
    assert len(taken) == len(set(taken))
    assert set(taken) <= {file.name for file in stand}
    for group in groups:
        assert len(group) > 1 or group[0].name in deleted
        assert all(file.size < policy.small_bytes or file.name in deleted for file in group)
        if keeps_order:
            places = [stand.index(file) for file in group]
            assert places == list(range(places[0], places[-1] + 1))
    if full:
        assert all(file.name in taken for file in stand if file.name in deleted)
