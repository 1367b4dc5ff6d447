"""`changes(start, end)` by snapshot ids, tags and times."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError, NotFoundError
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.unit.moving_clock import MovingClock

DAY = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(params=[[], ["id"]])
def table(request: pytest.FixtureRequest) -> Table:
    """Three snapshots, just before noon of three days."""
    clock = MovingClock()
    lake = Lake(MemoryStore(), clock=clock)
    lake.create_database("d")
    table = lake.create_table(
        "d.t", [("id", "BIGINT")], primary_key=request.param, options={"bucket": "1", "bucket-key": "id"}
    )
    for number in range(3):
        clock.now = int((DAY + timedelta(days=number, hours=11, minutes=59)).timestamp() * 1000)
        table.write([{"id": number}])
    table.tags.create("eod", version=2)
    return table


def ids(table: Table, *bounds: Any) -> list[int]:
    return sorted(row["id"] for row in table.changes(*bounds).to_pylist())


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (1, [1, 2]),
        ("1", [1, 2]),
        ("eod", [2]),
        (DAY, [0, 1, 2]),
        (DAY + timedelta(days=1), [1, 2]),
        ("2026-01-02", [1, 2]),
        ("2026-01-02T12:00:00Z", [2]),
        ("2026-01-02T11:58:59", [1, 2]),
        ("2026-01-02T17:30:00+05:30", [2]),
        (datetime(2026, 1, 2, 13), [2]),
        (datetime(2026, 1, 2, 9, tzinfo=timezone(timedelta(hours=-3, minutes=-30))), [2]),
        ("2030-01-01", []),
    ],
)
def test_changes_begin_after_a_version_however_it_is_named(table: Table, start: Any, expected: list[int]) -> None:
    assert ids(table, start) == expected


def test_changes_of_a_day(table: Table) -> None:
    assert ids(table, "2026-01-02", "2026-01-03") == [1]
    assert ids(table, "2026-01-01", "eod") == [0, 1]
    assert ids(table, 0, 2) == [0, 1]


@pytest.mark.parametrize("wrong", ["yesterday", None, 1.5, True])
def test_what_names_no_version_is_refused(table: Table, wrong: Any) -> None:
    with pytest.raises(InvalidError):
        table.changes(wrong)


def test_changes_that_are_expired_are_not_passed_over(table: Table) -> None:
    table.tags.delete("eod")
    table.expire_snapshots(retain_last=1, older_than=datetime(2026, 1, 3, tzinfo=UTC))
    with pytest.raises(NotFoundError, match="oldest snapshot"):
        table.changes("2026-01-01")
