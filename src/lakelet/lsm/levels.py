"""The sorted runs of a bucket as compaction sees them: by level, newest first.

    level 0      [f9] [f8] [f7]       every file is a run of its own, the greatest sequence number first
    level 3      [--- f4 ---][- f5 -] every level above is one run, its files do not overlap
    level 5      [-------- f1 --------]

A run is newer than all runs behind it, so a compaction takes the first runs and leaves the rest: its result is still newer
than what stands behind. Reading does not look at levels (`lsm.sections` goes by key ranges); they exist for this order
alone. Nothing is read or written here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakelet.model.data_file import DataFile


@dataclass(frozen=True, slots=True)
class LevelRun:
    """A sorted run and the level it stands on. The files of a level above 0 come in the order they were handed in."""

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
    # Two writers can end on one sequence number. Which file then counts as newer is arbitrary, but all clients say the same.
    return (-file.max_sequence, file.min_sequence, file.creation_ms or 0, file.name)
