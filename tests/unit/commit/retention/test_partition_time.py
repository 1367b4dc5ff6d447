"""The times that partitions stand for."""

from datetime import datetime

import pytest

from lakelet.commit.retention.partition_time import PartitionTime
from lakelet.errors import InvalidError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-02", datetime(2026, 1, 2)),
        ("2026-1-2", datetime(2026, 1, 2)),
        ("2026-01-02 03:04:05", datetime(2026, 1, 2, 3, 4, 5)),
        ("2026-1-2 3:4:5.25", datetime(2026, 1, 2, 3, 4, 5, 250_000)),
        ("2026-13-01", datetime(2027, 1, 1)),
        ("2026-02-30", datetime(2026, 3, 2)),
        ("2026-00-01", datetime(2025, 12, 1)),
        ("2026-01-01 25:00:00", datetime(2026, 1, 2, 1)),
        ("20260102", None),
        ("2026-01", None),
        ("2026-01-02T03:04:05", None),
        ("", None),
        ("99999999-01-01", None),
    ],
)
def test_the_first_column_without_a_pattern(text: str, expected: datetime | None) -> None:
    assert PartitionTime().of({"dt": text, "hour": "7"}) == expected


@pytest.mark.parametrize(
    ("formatter", "text", "expected"),
    [
        ("yyyyMMdd", "20260102", datetime(2026, 1, 2)),
        ("yyyyMMddHH", "2026010213", datetime(2026, 1, 2, 13)),
        ("uuuu/M/d", "2026/1/2", datetime(2026, 1, 2)),
        ("yy-MM-dd", "26-01-02", datetime(2026, 1, 2)),
        ("yyyy-MM-dd'T'HH:mm:ss.SSS", "2026-01-02T03:04:05.006", datetime(2026, 1, 2, 3, 4, 5, 6_000)),
        ("yyyy-MM-dd hh:mm a", "2026-01-02 12:30 AM", datetime(2026, 1, 2, 0, 30)),
        ("yyyy-MM-dd hh:mm a", "2026-01-02 01:30 pm", datetime(2026, 1, 2, 13, 30)),
        ("yyyy''MM''dd", "2026'01'02", datetime(2026, 1, 2)),
        # Java takes a day past the end of the month for its last one, and no month 13.
        ("yyyyMMdd", "20260230", datetime(2026, 2, 28)),
        ("yyyyMMdd", "20261301", None),
        ("yyyyMMdd", "20260132", None),
        ("yyyyMMdd", "2026-01-02", None),
        ("yyyyMM", "202601", None),
        ("yyyy.MM.dd", "2026x01x02", None),
    ],
)
def test_a_formatter(formatter: str, text: str, expected: datetime | None) -> None:
    assert PartitionTime(formatter=formatter).of({"dt": text}) == expected


def test_a_pattern_puts_columns_together() -> None:
    values = {"dt": "2026-01-02", "dt1": "08", "other": None}
    assert PartitionTime("$dt $dt1:00:00").of(values) == datetime(2026, 1, 2, 8)
    assert PartitionTime("$dt1$dt", "HHyyyy-MM-dd").of(values) == datetime(2026, 1, 2, 8)
    assert PartitionTime("$dt $other:00:00").of(values) is None
    assert PartitionTime("$nothing").of(values) is None
    assert PartitionTime("2026-01-03").of(values) == datetime(2026, 1, 3)


def test_a_null_is_no_time() -> None:
    assert PartitionTime().of({"dt": None}) is None


@pytest.mark.parametrize("formatter", ["yyyy-ww", "MMM", "yyyy-MM-dd yyyy", "yyyy-MM-dd'T", "QQ"])
def test_formatters_that_are_not_known_are_refused(formatter: str) -> None:
    with pytest.raises(InvalidError, match="timestamp-formatter"):
        PartitionTime(formatter=formatter)
