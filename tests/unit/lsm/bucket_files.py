"""Data files of a bucket with given level, size and age, for tests of policies."""

from __future__ import annotations

from lakelet.format.manifest.manifest_columns import EMPTY_ROW
from lakelet.lsm.levels import LevelRun, level_runs
from lakelet.model.data_file import DataFile, Stats

STATS = Stats(EMPTY_ROW, EMPTY_ROW, ())


def data_file(
    name: str, level: int, size: int, *, sequence: int = 0, first: int = 0, created_ms: int | None = None
) -> DataFile:
    return DataFile(
        name=name,
        size=size,
        row_count=1,
        min_key=EMPTY_ROW,
        max_key=EMPTY_ROW,
        key_stats=STATS,
        value_stats=STATS,
        min_sequence=first,
        max_sequence=sequence,
        schema_id=0,
        level=level,
        creation_ms=created_ms,
    )


def tree(*runs: tuple[int, int]) -> tuple[LevelRun, ...]:
    """Runs of one file each from pairs of level and size, newest first; files are named by their place."""
    count = len(runs)
    return level_runs(
        data_file(str(place), level, size, sequence=count - place) for place, (level, size) in enumerate(runs)
    )
