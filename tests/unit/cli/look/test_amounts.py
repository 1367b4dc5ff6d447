import pytest

from lakelet.cli.look.amounts import bar, shown_bytes, shown_count, shown_second


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KB"), (1536, "1.5 KB"), (5 << 20, "5.0 MB"), (3 << 50, "3072.0 TB")],
)
def test_bytes(count: int, text: str) -> None:
    assert shown_bytes(count) == text


def test_counts_and_times() -> None:
    assert [shown_count(number, "file") for number in (0, 1, 1000)] == ["0 files", "1 file", "1,000 files"]
    assert shown_second(1_767_225_600_123) == "2026-01-01 00:00:00Z"


@pytest.mark.parametrize(("part", "whole", "marks"), [(0, 10, 0), (1, 1000, 1), (5, 10, 10), (10, 10, 20), (1, 0, 0)])
def test_bars(part: int, whole: int, marks: int) -> None:
    assert bar(part, whole, 20) == "█" * marks
