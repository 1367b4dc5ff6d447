"""Which data files are merged."""

from __future__ import annotations

from lakelet.iceberg.maintenance.file_groups import Candidate, file_groups


def file(name: str, size: int, partition: object = 1, *, deletes: bool = False, old: bool = False) -> Candidate:
    return Candidate(name, partition, size, deletes, old)


def names(files: list[Candidate], target: int = 100, fewest: int = 3) -> list[list[str]]:
    return [[one.path for one in group] for group in file_groups(files, target_bytes=target, min_input_files=fewest)]


def test_a_few_small_ones_wait() -> None:
    assert names([file("a", 10), file("b", 10)]) == []


def test_enough_small_ones_of_a_partition_go_together() -> None:
    assert names([file("a", 10), file("b", 10), file("c", 10), file("d", 10, 2)]) == [["a", "b", "c"]]


def test_groups_end_at_the_target() -> None:
    assert names([file(name, 40) for name in "abcdefg"], fewest=2) == [["a", "b"], ["c", "d"], ["e", "f"]]


def test_files_of_the_right_size_stay() -> None:
    assert names([file(name, 90) for name in "abc"], fewest=1) == []


def test_large_ones_are_split() -> None:
    assert names([file("a", 500)]) == [["a"]]


def test_deletes_and_old_specs_always_go() -> None:
    assert names([file("a", 100, deletes=True)]) == [["a"]]
    assert names([file("a", 100, old=True), file("b", 1, 2)]) == [["a"]]


def test_one_file_alone_is_left() -> None:
    assert names([file("a", 10)], fewest=1) == []
