"""Universal compaction, by cases worked out by hand and by random sequences of flushes."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.errors import InvalidError
from lakelet.lsm.levels import LevelRun, level_runs
from lakelet.lsm.universal import CompactUnit, OffPeak, UniversalPolicy, drops_deletes
from lakelet.model.data_file import DataFile
from lakelet.options import TableOptions
from tests.unit.lsm.bucket_files import data_file, tree

HOUR_MS = 3_600_000
POLICY = UniversalPolicy(trigger=3, stop_trigger=6, size_ratio=1, max_amplification=25, num_levels=4)
# Never a full compaction because of size amplification.
BY_RATIO = replace(POLICY, max_amplification=10**9)


def picked(unit: CompactUnit | None) -> tuple[int, int] | None:
    """How many files a unit takes and the level they go to. Checks that they are the first ones."""
    if unit is None:
        return None
    assert [file.name for file in unit.files] == [str(place) for place in range(len(unit.files))]
    return len(unit.files), unit.output_level


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([], None),
        ([(0, 1)], None),
        ([(0, 1), (0, 1)], None),
        # 1 + 1 + 1 of 25 percent of 10: 300 > 250.
        ([(0, 1), (0, 1), (0, 1), (3, 10)], (4, 3)),
        # 200 is not above 250, and 1 + 1 is smaller than 10.
        ([(0, 1), (0, 1), (3, 10)], (2, 2)),
    ],
)
def test_size_amplification_merges_everything(runs: list[tuple[int, int]], expected: tuple[int, int] | None) -> None:
    assert picked(POLICY.pick(tree(*runs), now_ms=0)) == expected


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        # Alike sizes in front go to the level below the next run.
        ([(0, 1), (0, 1), (0, 1), (3, 100)], (3, 2)),
        ([(0, 1), (0, 1), (2, 100), (3, 1000)], (2, 1)),
        # That level would be 0, so that the unit takes the next run with its level, and level 0 with it.
        ([(0, 1), (0, 1), (1, 100), (3, 1000)], (3, 1)),
        ([(0, 1), (0, 1), (0, 50), (0, 9), (2, 100), (3, 1000)], (5, 2)),
        # The second file is too large: the first stays alone, and there are no more runs than the trigger.
        ([(0, 1), (0, 5), (3, 100)], None),
        # One run more than the trigger: two of them go, and level 0 goes with them.
        ([(0, 1), (0, 5), (0, 50), (3, 1000)], (4, 3)),
        ([(0, 1), (0, 5), (2, 50), (3, 1000)], (2, 1)),
        # 1 + 1 percent is not below 1; the sum of 2.02 is below 3.
        ([(0, 100), (0, 101), (2, 204), (3, 9999)], (2, 1)),
        ([(0, 100), (0, 101), (2, 203), (3, 9999)], (3, 2)),
        ([(0, 100), (1, 100), (2, 400), (3, 9999)], (2, 1)),
        ([(0, 100), (1, 100), (3, 400)], (2, 2)),
        # Every run joins: the top level.
        ([(0, 8), (0, 8), (1, 16), (2, 32)], (4, 3)),
    ],
)
def test_size_ratio_and_run_count(runs: list[tuple[int, int]], expected: tuple[int, int] | None) -> None:
    assert picked(BY_RATIO.pick(tree(*runs), now_ms=0)) == expected


def test_levels_are_never_fewer_than_those_with_files() -> None:
    assert BY_RATIO.levels(()) == 4
    deep = tree((0, 1), (0, 1), (7, 1))
    assert BY_RATIO.levels(deep) == 8
    assert picked(BY_RATIO.pick(deep, now_ms=0)) == (3, 7)
    assert picked(BY_RATIO.pick_full(deep)) == (3, 7)


def test_one_file_on_its_level_already_is_no_work() -> None:
    always = replace(BY_RATIO, trigger=1, num_levels=2)
    assert always.pick(tree((1, 5)), now_ms=0) is None
    assert picked(always.pick(tree((0, 5)), now_ms=0)) is None
    assert picked(always.pick(tree((0, 5), (1, 9)), now_ms=0)) == (2, 1)


def test_interval_since_the_last_full_compaction() -> None:
    hourly = replace(POLICY, interval_ms=HOUR_MS)
    runs = tree((0, 1), (3, 1000))
    assert picked(hourly.pick(runs, now_ms=5 * HOUR_MS)) == (2, 3)
    assert hourly.pick(runs, now_ms=5 * HOUR_MS, last_full_ms=4 * HOUR_MS) is None
    assert picked(hourly.pick(runs, now_ms=5 * HOUR_MS + 1, last_full_ms=4 * HOUR_MS)) == (2, 3)
    assert hourly.pick(tree((0, 1)), now_ms=5 * HOUR_MS) is None


def test_the_top_level_tells_when_the_last_full_compaction_was() -> None:
    top = [data_file("a", 3, 1, created_ms=7), data_file("b", 3, 1, created_ms=9)]
    assert POLICY.last_full_ms(level_runs(top)) == 9
    assert POLICY.last_full_ms(level_runs([replace(file, level=2) for file in top])) is None
    assert POLICY.last_full_ms(()) is None


def test_small_buckets_and_much_new_data_are_compacted_in_full() -> None:
    small = replace(POLICY, total_threshold=1002)
    assert picked(small.pick(tree((0, 1), (3, 1000)), now_ms=0)) == (2, 3)
    assert small.pick(tree((0, 1), (3, 1001)), now_ms=0) is None
    fresh = replace(POLICY, incremental_threshold=100)
    assert picked(fresh.pick(tree((0, 50), (2, 51), (3, 10**6)), now_ms=0)) == (3, 3)
    assert fresh.pick(tree((0, 50), (3, 10**6)), now_ms=0) is None
    assert fresh.pick(tree((0, 50), (2, 50)), now_ms=0) is None


def test_level_zero_can_be_forced_up() -> None:
    runs = tree((0, 1), (3, 1000))
    assert BY_RATIO.pick(runs, now_ms=0) is None
    assert picked(BY_RATIO.pick(runs, now_ms=0, force_level0=True)) == (1, 2)
    forced = replace(BY_RATIO, force_level0=True)
    assert picked(forced.pick(runs, now_ms=0)) == (1, 2)
    assert picked(forced.pick(tree((0, 1), (1, 1000), (3, 9999)), now_ms=0)) == (2, 1)
    assert picked(forced.pick(tree((0, 1), (1, 1000)), now_ms=0)) == (2, 3)
    assert picked(forced.pick(tree((0, 1)), now_ms=0)) == (1, 3)
    assert forced.pick(tree((2, 1), (3, 1000)), now_ms=0) is None


def test_quiet_hours_let_larger_runs_join() -> None:
    night = replace(BY_RATIO, off_peak=OffPeak(22, 6, 99), zone=UTC)
    runs = tree((0, 10), (2, 19), (3, 1000))
    assert picked(night.pick(runs, now_ms=23 * HOUR_MS)) == (2, 2)
    assert picked(night.pick(runs, now_ms=5 * HOUR_MS)) == (2, 2)
    assert night.pick(runs, now_ms=6 * HOUR_MS) is None
    assert night.pick(runs, now_ms=21 * HOUR_MS) is None
    east = replace(night, zone=timezone(timedelta(hours=2)))
    assert picked(east.pick(runs, now_ms=21 * HOUR_MS)) == (2, 2)
    assert [hour for hour in range(24) if OffPeak(2, 4, 1).ratio_at(hour)] == [2, 3]


def test_full_compaction_takes_all_runs_once() -> None:
    assert POLICY.pick_full(()) is None
    assert picked(POLICY.pick_full(tree((0, 1)))) == (1, 3)
    assert picked(POLICY.pick_full(tree((0, 1), (3, 10)))) == (2, 3)
    assert POLICY.pick_full(tree((3, 10))) is None


def test_files_of_the_top_level_are_rewritten_where_they_have_to_be() -> None:
    runs = level_runs([data_file("a", 3, 1), data_file("b", 3, 1)])
    assert POLICY.pick_full(runs, must_rewrite={"b"}) == CompactUnit(3, runs[0].files[1:], rewrites_each=True)
    everything = replace(POLICY, force_rewrite=True).pick_full(runs)
    assert everything == CompactUnit(3, runs[0].files, rewrites_each=True)


def test_deletes_go_only_where_nothing_older_is_left() -> None:
    runs = tree((0, 1), (0, 1), (2, 100), (3, 1000))
    partial, full = BY_RATIO.pick(runs, now_ms=0), BY_RATIO.pick_full(runs)
    assert partial is not None
    assert full is not None
    assert not drops_deletes(partial, runs)
    assert drops_deletes(full, runs)
    assert not drops_deletes(CompactUnit(0, full.files), tree((0, 1)))


def test_options_become_a_policy() -> None:
    assert UniversalPolicy.of(TableOptions()) == UniversalPolicy()
    options = {
        "num-sorted-run.compaction-trigger": "7",
        "num-sorted-run.stop-trigger": "4",
        "compaction.size-ratio": "2",
        "compaction.max-size-amplification-percent": "50",
        "compaction.optimization-interval": "90 s",
        "compaction.total-size-threshold": "1 mb",
        "compaction.incremental-size-threshold": "2 mb",
        "full-compaction.delta-commits": "3",
        "compaction.offpeak.start.hour": "1",
        "compaction.offpeak.end.hour": "4",
        "compaction.offpeak-ratio": "20",
        "compaction.force-up-level-0": "true",
        "compaction.force-rewrite-all-files": "true",
    }
    policy = UniversalPolicy.of(TableOptions(options))
    assert policy == UniversalPolicy(
        trigger=7,
        stop_trigger=7,
        size_ratio=2,
        max_amplification=50,
        num_levels=8,
        interval_ms=90_000,
        total_threshold=1 << 20,
        incremental_threshold=2 << 20,
        full_delta_commits=3,
        off_peak=OffPeak(1, 4, 20),
        force_level0=True,
        force_rewrite=True,
    )
    assert [commit for commit in range(1, 10) if policy.full_due(commit)] == [3, 6, 9]
    assert not POLICY.full_due(3)
    assert UniversalPolicy.of(TableOptions({"num-levels": "3"})).levels(()) == 3
    assert UniversalPolicy.of(TableOptions({"compaction.offpeak.start.hour": "1"})).off_peak is None
    with pytest.raises(InvalidError, match="'num-levels': expected a whole number, at least 2, found '1'"):
        UniversalPolicy.of(TableOptions({"num-levels": "1"}))


def test_writers_wait_beyond_the_stop_trigger() -> None:
    assert not POLICY.must_wait(tree(*[(0, 1)] * 6))
    assert POLICY.must_wait(tree(*[(0, 1)] * 7))


def merged(runs: tuple[LevelRun, ...], unit: CompactUnit, name: str) -> tuple[LevelRun, ...]:
    """The bucket after a unit has been merged into one file."""
    gone = set(unit.files)
    kept = [file for run in runs for file in run.files if file not in gone]
    size = sum(file.size for file in unit.files)
    newest = max(file.max_sequence for file in unit.files)
    oldest = min(file.min_sequence for file in unit.files)
    return level_runs([*kept, data_file(name, unit.output_level, size, sequence=newest, first=oldest)])


def files_of(runs: tuple[LevelRun, ...]) -> list[DataFile]:
    return [file for run in runs for file in run.files]


@given(
    flushes=st.lists(st.lists(st.integers(1, 1000), min_size=1, max_size=3), min_size=1, max_size=60),
    trigger=st.integers(1, 7),
    more=st.integers(0, 4),
    ratio=st.integers(0, 100),
    amplification=st.integers(0, 400),
    levels=st.integers(2, 9),
    force=st.booleans(),
)
def test_any_flushes_keep_few_runs_in_order_of_age(
    flushes: list[list[int]], trigger: int, more: int, ratio: int, amplification: int, levels: int, force: bool
) -> None:
    policy = UniversalPolicy(trigger, trigger + more, ratio, amplification, levels, force_level0=force)
    runs: tuple[LevelRun, ...] = ()
    sequence = 0
    for number, sizes in enumerate(flushes):
        files = files_of(runs)
        for size in sizes:
            sequence += 1
            files.append(data_file(f"flush-{sequence}", 0, size, sequence=sequence, first=sequence))
        runs = level_runs(files)
        unit = policy.pick(runs, now_ms=0)
        while unit is not None:
            # A unit is the first runs, whole, and goes to a level below all that stays and above level 0.
            assert list(unit.files) == files_of(runs)[: len(unit.files)]
            rest = files_of(runs)[len(unit.files) :]
            assert unit.output_level > 0
            assert all(file.level > unit.output_level for file in rest)
            assert all(file.level <= unit.output_level for file in unit.files)
            runs = merged(runs, unit, f"merge-{number}")
            # One unit can leave too many runs where a commit made several; the next one goes on.
            unit = policy.pick(runs, now_ms=0) if policy.must_wait(runs) else None
        assert len(runs) <= policy.stop_trigger
        if force:
            assert all(run.level > 0 for run in runs)
        # Nothing is lost, and every run is newer than the one behind it.
        assert sum(run.size for run in runs) == sum(sum(sizes) for sizes in flushes[: number + 1])
        spans = [(file.min_sequence, file.max_sequence) for file in files_of(runs)]
        assert sorted(spans, reverse=True) == spans
        assert [low for low, _ in spans] == [high + 1 for _, high in spans[1:]] + [1]
        assert all(run.level < policy.levels(runs) for run in runs)


@pytest.mark.parametrize(("trigger", "commits", "factor"), [(5, 100, 1), (5, 2000, 2), (10, 2000, 1), (10, 8000, 1)])
def test_a_row_is_written_about_log_of_the_commits_times(trigger: int, commits: int, factor: int) -> None:
    policy = UniversalPolicy(trigger=trigger, num_levels=trigger + 1)
    runs: tuple[LevelRun, ...] = ()
    written = 0
    for number in range(1, commits + 1):
        runs = level_runs([*files_of(runs), data_file(f"flush-{number}", 0, 100, sequence=number, first=number)])
        written += 100
        unit = policy.pick(runs, now_ms=0)
        if unit is not None:
            written += sum(file.size for file in unit.files)
            runs = merged(runs, unit, f"merge-{number}")
    amplification = written / (100 * commits)
    assert 1.5 < amplification <= factor * math.log2(commits)


def test_picks_are_those_of_java_paimon() -> None:
    """Each line: Java's unit, its full one, trigger, ratio, amplification, levels, thresholds, force level 0, then the runs.

    A unit is its number of files and its level; '-' is none, and no threshold.
    """
    lines = (Path(__file__).parent / "paimon-1.4.2-picks.txt").read_text(encoding="utf-8").splitlines()
    found = []
    for line in lines:
        _, _, trigger, ratio, amplification, levels, total, incremental, force, *sizes = line.split()
        policy = UniversalPolicy(
            trigger=int(trigger),
            size_ratio=int(ratio),
            max_amplification=int(amplification),
            num_levels=int(levels),
            total_threshold=None if total == "-" else int(total),
            incremental_threshold=None if incremental == "-" else int(incremental),
            force_level0=force == "1",
        )
        runs = tree(*((int(level), int(size)) for level, size in (run.split(":") for run in sizes)))
        units = [picked(unit) for unit in (policy.pick(runs, now_ms=0), policy.pick_full(runs))]
        found.append(["-" if unit is None else f"{unit[0]},{unit[1]}" for unit in units])
    assert len(found) == 400
    assert found == [line.split()[:2] for line in lines]
