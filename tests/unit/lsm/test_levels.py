"""Runs of a bucket: level 0 file by file, newest first, then one run per level."""

from lakelet.lsm.levels import LevelRun, highest_level, level_runs
from tests.unit.lsm.bucket_files import data_file


def names(runs: tuple[LevelRun, ...]) -> list[tuple[int, list[str]]]:
    return [(run.level, [file.name for file in run.files]) for run in runs]


def test_level_zero_comes_file_by_file_and_newest_first() -> None:
    files = [
        data_file("old", 0, 1, sequence=5),
        data_file("top", 5, 7, sequence=1),
        data_file("new", 0, 2, sequence=9),
        data_file("middle-b", 3, 3, sequence=3),
        data_file("middle-a", 3, 4, sequence=4),
    ]
    runs = level_runs(files)
    assert names(runs) == [(0, ["new"]), (0, ["old"]), (3, ["middle-b", "middle-a"]), (5, ["top"])]
    assert [run.size for run in runs] == [2, 1, 7, 7]
    assert highest_level(runs) == 5


def test_ties_of_sequence_numbers_go_by_first_sequence_then_age_then_name() -> None:
    files = [
        data_file("d", 0, 1, sequence=5, first=2, created_ms=8),
        data_file("c", 0, 1, sequence=5, first=2, created_ms=8),
        data_file("b", 0, 1, sequence=5, first=2, created_ms=9),
        data_file("a", 0, 1, sequence=5, first=3, created_ms=1),
        data_file("e", 0, 1, sequence=5, first=1, created_ms=99),
    ]
    assert [file.name for run in level_runs(files) for file in run.files] == ["e", "c", "d", "b", "a"]


def test_no_files_have_no_runs() -> None:
    assert level_runs([]) == ()
    assert highest_level(()) == -1
