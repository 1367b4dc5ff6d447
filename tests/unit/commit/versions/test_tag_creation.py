"""Automatic tags, made after writes: by the clock, by the watermark, by every batch write."""

import pytest

from lakelet.errors import InvalidError
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from lakelet.testing.instrumented_stores import CountingStore
from tests.unit.versioned_table import HOUR_MS, START_MS, SetClock, expire, ids, names, put, table_on

DAY_MS = 24 * HOUR_MS


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


def made(clock: SetClock, versions: int = 0, **options: str) -> Table:
    given = {"tag." + name.replace("_", "-"): value for name, value in options.items()}
    table = table_on(MemoryStore(), clock, 0, **{"sink.process-time-zone": "UTC"} | given)
    for number in range(1, versions + 1):
        put(table, number)
    return table


def pairs(table: Table) -> list[tuple[str, int]]:
    return [(tag.name, tag.snapshot_id) for tag in table.tags.list()]


def test_the_first_snapshot_of_each_period_is_tagged(clock: SetClock) -> None:
    table = made(clock, 2, automatic_creation="process-time", creation_period="hourly")
    # It is 08:00 on 2027-01-15.
    assert table.tags.create_due() == ["2027-01-15 07"]
    assert table.tags.create_due() == []
    for number, hours in ((3, 0), (4, 1), (5, 0), (6, 3)):
        clock.now += hours * HOUR_MS
        put(table, number)
    assert table.tags.create_due() == ["2027-01-15 08", "2027-01-15 11"]
    assert pairs(table) == [("2027-01-15 07", 1), ("2027-01-15 08", 4), ("2027-01-15 11", 6)]
    assert ids(table, tag="2027-01-15 08") == [1, 2, 3, 4]


def test_missed_periods_get_tags_one_after_another(clock: SetClock) -> None:
    table = made(clock, 1, automatic_creation="process-time", creation_period="hourly", automatic_completion="true")
    table.tags.create_due()
    clock.now += 4 * HOUR_MS
    for number in (2, 3, 4):
        put(table, number)
    table.tags.create_due()
    assert pairs(table) == [
        ("2027-01-15 07", 1),
        ("2027-01-15 08", 2),
        ("2027-01-15 09", 3),
        ("2027-01-15 10", 4),
    ]


def test_the_zone_of_the_clock_decides(clock: SetClock) -> None:
    table = made(clock, 1, automatic_creation="process-time", creation_period="hourly")
    table.set_options({"sink.process-time-zone": "Asia/Shanghai"})
    assert table.tags.create_due() == ["2027-01-15 15"]
    table.set_options({"sink.process-time-zone": "Mars"})
    clock.now += HOUR_MS
    put(table, 2)
    with pytest.raises(InvalidError, match="expected the name of a time zone"):
        table.tags.create_due()


def test_watermarks(clock: SetClock) -> None:
    table = made(clock, 1, automatic_creation="watermark")
    assert table.tags.create_due() == []
    put(table, 2, watermark=START_MS)
    put(table, 3, watermark=START_MS + DAY_MS)
    put(table, 4, watermark=START_MS + DAY_MS)
    assert table.tags.create_due() == ["2027-01-14", "2027-01-15"]
    assert pairs(table) == [("2027-01-14", 2), ("2027-01-15", 3)]


def test_only_so_many_automatic_tags_are_kept(clock: SetClock) -> None:
    table = made(clock, 1, automatic_creation="process-time", num_retained_max="2")
    table.tags.create("mine", 1)
    for number in (2, 3, 4):
        table.tags.create_due()
        clock.now += DAY_MS
        put(table, number)
    table.tags.create_due()
    assert names(table) == ["mine", "2027-01-16", "2027-01-17"]


def test_tags_past_their_time_are_deleted(clock: SetClock) -> None:
    table = made(clock, 1, default_time_retained="1 h")
    table.tags.create("short")
    clock.now += 2 * HOUR_MS
    assert table.tags.create_due() == []
    assert names(table) == []
    table.set_options({"tag.time-expire-enabled": "false"})
    table.tags.create("short")
    clock.now += 2 * HOUR_MS
    table.tags.create_due()
    assert names(table) == ["short"]


def test_a_batch_write_moves_the_tag_of_its_day(clock: SetClock) -> None:
    table = made(clock, 1, automatic_creation="batch", num_retained_max="2")
    assert table.tags.create_due() == ["batch-write-2027-01-15"]
    put(table, 2)
    table.tags.create_due()
    assert pairs(table) == [("batch-write-2027-01-15", 2)]
    for number in (3, 4):
        clock.now += DAY_MS
        put(table, number)
        table.tags.create_due()
    assert pairs(table) == [("batch-write-2027-01-16", 3), ("batch-write-2027-01-17", 4)]
    table.set_options({"tag.batch.customized-name": "last"})
    table.tags.create_due()
    assert pairs(table) == [("batch-write-2027-01-17", 4), ("last", 4)]


def test_snapshots_that_are_expired_are_passed_over(clock: SetClock) -> None:
    table = made(clock, 1, automatic_creation="process-time", creation_period="hourly")
    table.tags.create_due()
    for number in (2, 3, 4):
        clock.now += HOUR_MS
        put(table, number)
    expire(table, keep=1)
    assert table.tags.create_due() == ["2027-01-15 10"]
    assert pairs(table) == [("2027-01-15 07", 1), ("2027-01-15 10", 4)]


def test_a_name_like_an_automatic_one_is_refused_for_a_snapshot_that_has_one(clock: SetClock) -> None:
    table = made(clock, 1, automatic_creation="process-time")
    table.tags.create_due()
    with pytest.raises(InvalidError, match="snapshot 1 has such a tag: '2027-01-14'"):
        table.tags.create("2026-01-01", 1)
    table.tags.create("anything else", 1)


def test_that_nothing_is_due_takes_few_calls(clock: SetClock) -> None:
    table = made(clock, 30, automatic_creation="process-time")
    table.tags.create_due()
    for number in range(31, 61):
        put(table, number)
    counting = CountingStore(table.home.store)
    Table("d.t", type(table.home)(counting, table.home.paths, clock)).tags.create_due()
    assert counting.calls < 15


def test_writes_make_them_by_themselves(clock: SetClock) -> None:
    table = made(clock, automatic_creation="process-time", creation_period="hourly")
    table.reset_options(["write-only"])
    put(table, 1)
    clock.now += HOUR_MS
    put(table, 2)
    assert pairs(table) == [("2027-01-15 07", 1), ("2027-01-15 08", 2)]
