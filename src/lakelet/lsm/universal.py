"""Universal compaction: which runs of a bucket are merged, and onto which level. A pure policy, runs in and a unit out.

Runs come newest first (`lsm.levels`), and a unit is always a prefix of the runs. The rules are tried in this
order, with Paimon's options, and the first that applies decides:

    early full          an interval has passed, the bucket is small, or much of it is new  all runs
    size amplification  runs >= trigger, and all but the oldest outweigh it by a percentage  all runs
    size ratio          runs >= trigger, and the next run is not larger than the first ones  up to the first larger run
    run count           runs > trigger                                              the fewest that leave `trigger` runs
    force level 0       requested, and level 0 has files                            level 0, and what the ratio adds

A unit goes onto the level below its next older run, so that levels keep the order of age:

    L0 L0 L0 | L3 L5    three runs picked: output level 2
    L0 L0 | L0 L3 L5    two runs picked: the level would be 0, which holds flushed files only, so that the unit grows over the
    L0 L0   L0 L3 | L5  rest of level 0 and the next run, and takes that one's level: 3

Merging of runs of alike sizes makes every row move about log(size) times. Sizes in bytes and the time are all that is looked
at; nothing is read or written here, and keys are never compared.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from lakelet.lsm.levels import LevelRun, highest_level
from lakelet.model.data_file import DataFile
from lakelet.options import (
    CHANGELOG_PRODUCER,
    COMPACTION_FORCE_REWRITE_ALL_FILES,
    COMPACTION_FORCE_UP_LEVEL_0,
    COMPACTION_INCREMENTAL_SIZE_THRESHOLD,
    COMPACTION_MAX_SIZE_AMPLIFICATION_PERCENT,
    COMPACTION_OFFPEAK_END_HOUR,
    COMPACTION_OFFPEAK_RATIO,
    COMPACTION_OFFPEAK_START_HOUR,
    COMPACTION_OPTIMIZATION_INTERVAL,
    COMPACTION_SIZE_RATIO,
    COMPACTION_TOTAL_SIZE_THRESHOLD,
    FULL_COMPACTION_DELTA_COMMITS,
    NUM_LEVELS,
    NUM_SORTED_RUN_COMPACTION_TRIGGER,
    NUM_SORTED_RUN_STOP_TRIGGER,
    TableOptions,
)

_MORE_RUNS_UNTIL_STOP = 3


@dataclass(frozen=True, slots=True)
class CompactUnit:
    """Files that are merged together, and the level that their rows go to.

    With `rewrites_each` they are on that level already, alone in the bucket, and each of them is rewritten by itself.
    """

    output_level: int
    files: tuple[DataFile, ...]
    rewrites_each: bool = False


@dataclass(frozen=True, slots=True)
class OffPeak:
    """Hours of the day in which larger runs may join: from `start` up to before `end`, over midnight if `start` is later."""

    start: int
    end: int
    ratio: int

    def ratio_at(self, hour: int) -> int:
        """The addition to the size ratio in an hour of the day."""
        if self.start <= self.end:
            is_quiet = self.start <= hour < self.end
        else:
            is_quiet = hour < self.end or self.start <= hour
        return self.ratio if is_quiet else 0


@dataclass(frozen=True, slots=True)
class UniversalPolicy:
    """When runs are merged. Sizes in bytes, ratios in percent; None means that there is no such rule.

    `zone` tells the hour of the day; None means the zone of this machine, as in Java.
    """

    trigger: int = 5
    stop_trigger: int = 8
    size_ratio: int = 1
    max_amplification: int = 200
    num_levels: int = 6
    interval_ms: int | None = None
    total_threshold: int | None = None
    incremental_threshold: int | None = None
    full_delta_commits: int | None = None
    off_peak: OffPeak | None = None
    force_level0: bool = False
    force_rewrite: bool = False
    zone: tzinfo | None = None

    @classmethod
    def of(cls, options: TableOptions) -> UniversalPolicy:
        """The policy of a table's options."""
        trigger = options.get(NUM_SORTED_RUN_COMPACTION_TRIGGER)
        stop = options.get(NUM_SORTED_RUN_STOP_TRIGGER)
        interval = options.get(COMPACTION_OPTIMIZATION_INTERVAL)
        return cls(
            trigger=trigger,
            stop_trigger=max(trigger, trigger + _MORE_RUNS_UNTIL_STOP if stop is None else stop),
            size_ratio=options.get(COMPACTION_SIZE_RATIO),
            max_amplification=options.get(COMPACTION_MAX_SIZE_AMPLIFICATION_PERCENT),
            num_levels=options.get(NUM_LEVELS) or trigger + 1,
            interval_ms=None if interval is None else round(interval.total_seconds() * 1000),
            total_threshold=options.get(COMPACTION_TOTAL_SIZE_THRESHOLD),
            incremental_threshold=options.get(COMPACTION_INCREMENTAL_SIZE_THRESHOLD),
            full_delta_commits=_full_delta_commits(options),
            off_peak=_off_peak(options),
            force_level0=options.get(COMPACTION_FORCE_UP_LEVEL_0),
            force_rewrite=options.get(COMPACTION_FORCE_REWRITE_ALL_FILES),
        )

    @property
    def looks_always(self) -> bool:
        """Whether it may pick runs of a bucket with few runs."""
        sizes = (self.interval_ms, self.total_threshold, self.incremental_threshold)
        return self.force_level0 or sizes != (None, None, None)

    def levels(self, runs: Sequence[LevelRun]) -> int:
        """The number of levels of the tree: as configured, and no fewer than there are files on."""
        return max(self.num_levels, highest_level(runs) + 1)

    def last_full_ms(self, runs: Sequence[LevelRun]) -> int | None:
        """The time of the last full compaction, by the newest file of the top level; None if that is empty."""
        if not runs or runs[-1].level != self.levels(runs) - 1:
            return None
        return max((file.creation_ms or 0 for file in runs[-1].files), default=None)

    def full_due(self, commit: int) -> bool:
        """Whether a full compaction is due after the commit of this number."""
        return self.full_delta_commits is not None and commit % max(self.full_delta_commits, 1) == 0

    def must_wait(self, runs: Sequence[LevelRun]) -> bool:
        """Whether there are too many runs, so that a writer has to wait for compaction."""
        return len(runs) > self.stop_trigger

    def pick(
        self,
        runs: Sequence[LevelRun],
        *,
        now_ms: int,
        last_full_ms: int | None = None,
        force_level0: bool = False,
    ) -> CompactUnit | None:
        """The unit to merge now, or None if no rule applies.

        `last_full_ms` is when all runs were last merged, None means never; it counts where an interval is set.
        `force_level0` asks for a unit that leaves no file on level 0, for tables that hide level 0 from readers.
        """
        count = self._count(runs, now_ms, last_full_ms)
        if count == 0 and (force_level0 or self.force_level0):
            fresh = sum(run.level == 0 for run in runs)
            count = self._grow(runs, fresh, now_ms) if fresh else 0
        unit = self._unit(runs, count) if count else None
        if unit is None or (len(unit.files) == 1 and unit.files[0].level == unit.output_level):
            return None
        return unit

    def pick_full(self, runs: Sequence[LevelRun], *, must_rewrite: Collection[str] = ()) -> CompactUnit | None:
        """All runs onto the top level. Where all files are there already, only those that have to be rewritten.

        `must_rewrite` are names of files with rows that are deleted or have expired.
        """
        top = self.levels(runs) - 1
        if not runs:
            return None
        if len(runs) > 1 or runs[0].level != top:
            return CompactUnit(top, _files(runs))
        files = tuple(file for file in runs[0].files if self.force_rewrite or file.name in must_rewrite)
        return CompactUnit(top, files, rewrites_each=True) if files else None

    def _count(self, runs: Sequence[LevelRun], now_ms: int, last_full_ms: int | None) -> int:
        """The number of first runs that the rules pick; 0 if none applies."""
        if len(runs) > 1 and self._is_early_full(runs, now_ms, last_full_ms):
            return len(runs)
        if len(runs) < self.trigger:
            return 0
        if sum(run.size for run in runs[:-1]) * 100 > self.max_amplification * runs[-1].size:
            return len(runs)
        count = self._grow(runs, 1, now_ms)
        if count > 1:
            return count
        if len(runs) > self.trigger:
            return self._grow(runs, len(runs) - self.trigger + 1, now_ms)
        return 0

    def _is_early_full(self, runs: Sequence[LevelRun], now_ms: int, last_full_ms: int | None) -> bool:
        if self.interval_ms is not None and (last_full_ms is None or now_ms - last_full_ms > self.interval_ms):
            return True
        if self.total_threshold is not None and sum(run.size for run in runs) < self.total_threshold:
            return True
        if self.incremental_threshold is None:
            return False
        top = self.levels(runs) - 1
        return sum(run.size for run in runs if run.level != top) > self.incremental_threshold

    def _grow(self, runs: Sequence[LevelRun], count: int, now_ms: int) -> int:
        """The first `count` runs, and those behind them that are not larger than all before together, by the ratio."""
        percent = 100.0 + self.size_ratio + self._quiet_ratio(now_ms)
        size = sum(run.size for run in runs[:count])
        for run in runs[count:]:
            if size * percent / 100.0 < run.size:
                break
            size += run.size
            count += 1
        return count

    def _quiet_ratio(self, now_ms: int) -> int:
        if self.off_peak is None:
            return 0
        return self.off_peak.ratio_at(datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(self.zone).hour)

    def _unit(self, runs: Sequence[LevelRun], count: int) -> CompactUnit:
        """The first `count` runs and the level they go to; more runs where that level would be 0."""
        if count < len(runs) and runs[count].level <= 1:
            while count < len(runs) and runs[count].level == 0:
                count += 1
            count = min(count + 1, len(runs))
            level = runs[count - 1].level
        elif count < len(runs):
            level = runs[count].level - 1
        if count == len(runs):
            level = self.levels(runs) - 1
        return CompactUnit(level, _files(runs[:count]))


def drops_deletes(unit: CompactUnit, runs: Sequence[LevelRun]) -> bool:
    """Whether no row is older than those of the unit, so that its deletes have nothing left to delete."""
    return unit.output_level >= max(highest_level(runs), 1)


def _files(runs: Sequence[LevelRun]) -> tuple[DataFile, ...]:
    return tuple(file for run in runs for file in run.files)


def _full_delta_commits(options: TableOptions) -> int | None:
    """Where full compaction makes the changelog, it follows every write unless told."""
    told = options.get(FULL_COMPACTION_DELTA_COMMITS)
    return 1 if told is None and options.get(CHANGELOG_PRODUCER) == "full-compaction" else told


def _off_peak(options: TableOptions) -> OffPeak | None:
    start, end = options.get(COMPACTION_OFFPEAK_START_HOUR), options.get(COMPACTION_OFFPEAK_END_HOUR)
    if -1 in (start, end) or start == end:
        return None
    return OffPeak(start, end, options.get(COMPACTION_OFFPEAK_RATIO))
