"""The sorted runs of a bucket for compaction: by level, newest first.

    level 0      [f9] [f8] [f7]       every file is a run of its own, the greatest sequence number first
    level 3      [--- f4 ---][- f5 -] every level above is one run, its files do not overlap
    level 5      [-------- f1 --------]

A run is newer than all runs after it, so a compaction takes the first runs and leaves the rest: its result is still newer
than the rest. Reads do not use levels (`lsm.sections` goes by key ranges); they exist for this order alone. Nothing is read or
written here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakelet.model.data_file import DataFile


@dataclass(frozen=True, slots=True)
class LevelRun:
    """A sorted run and its level. The files of a level above 0 keep the order in which they were given."""

    level: int
    files: tuple[DataFile, ...]

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(file.size for file in self.files)


def level_runs(files: Iterable[DataFile]) -> tuple[LevelRun, ...]:
    """The runs of one bucket's live files, newest first."""
    by_level: dict[int, list[DataFile]] = {}
    for file in files:
        by_level.setdefault(file.level, []).append(file)
    fresh = sorted(by_level.pop(0, []), key=_newest_first)
    return (
        *(LevelRun(0, (file,)) for file in fresh),
        *(LevelRun(level, tuple(by_level[level])) for level in sorted(by_level)),
    )


def highest_level(runs: Sequence[LevelRun]) -> int:
    """The highest level that has files, or -1 where none has."""
    return runs[-1].level if runs else -1


def _newest_first(file: DataFile) -> tuple[int, int, int, str]:
    # Two writers can end on one sequence number. Which file is then the newer one is arbitrary, but all clients agree on it.
    return (-file.max_sequence, file.min_sequence, file.creation_ms or 0, file.name)
