"""Maintenance that runs automatically after a write."""

from __future__ import annotations

import logging
import threading

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.upkeep import upkeep
from lakelet.errors import UnavailableError
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from lakelet.testing.instrumented_stores import CountingStore, FailingStore
from tests.unit.commit.named_files import named_files, stored_files
from tests.unit.moving_clock import MovingClock


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture
def store(clock: MovingClock) -> MemoryStore:
    return MemoryStore(clock=clock)


def make(store: MemoryStore, clock: MovingClock, **options: str) -> Table:
    """A write-only table, so that only the test calls for upkeep; the option is taken off where upkeep looks at it."""
    lake = Lake(store, clock=clock)
    lake.create_database("d")
    return lake.create_table(
        "d.t", [("id", "BIGINT"), ("dt", "STRING")], partitioned_by=["dt"], options={**options, "write-only": "true"}
    )


def write(table: Table, clock: MovingClock, commits: int, day: str = "2027-01-01") -> None:
    for number in range(commits):
        table.write(pa.table({"id": [number], "dt": [day]}))
        clock.move(minutes=10)


def run(table: Table) -> None:
    table.set_options({"write-only": "false"})
    schema, latest = latest_schema(table.home), latest_snapshot(table.home)
    assert latest is not None
    upkeep(table.home, schema, latest)
    table.set_options({"write-only": "true"})


def ids(table: Table) -> list[int]:
    return [snapshot.id for snapshot in table.snapshots()]


def test_snapshots_expire_by_the_options(store: MemoryStore, clock: MovingClock) -> None:
    table = make(store, clock, **{"snapshot.num-retained.min": "3", "snapshot.time-retained": "25 min"})
    write(table, clock, 10)
    run(table)
    assert ids(table) == [8, 9, 10]
    assert stored_files(table.home) == named_files(table.home)


def test_at_most_so_many_after_one_write(store: MemoryStore, clock: MovingClock) -> None:
    table = make(store, clock, **{"snapshot.num-retained.min": "1", "snapshot.expire.limit": "2"})
    write(table, clock, 12)
    run(table)
    assert ids(table)[0] == 3
    run(table)
    assert ids(table)[0] == 5


def test_nothing_is_done_for_write_only_tables(store: MemoryStore, clock: MovingClock) -> None:
    table = make(store, clock, **{"snapshot.num-retained.min": "1"})
    write(table, clock, 12)
    schema, latest = latest_schema(table.home), latest_snapshot(table.home)
    assert latest is not None
    upkeep(table.home, schema, latest)
    assert len(ids(table)) == 12


@pytest.mark.parametrize("commits", [2, 20])
def test_most_writes_cost_next_to_nothing(store: MemoryStore, clock: MovingClock, commits: int) -> None:
    table = make(store, clock, **{"snapshot.time-retained": "1 d"})
    write(table, clock, commits)
    table.set_options({"write-only": "false"})
    counting = CountingStore(store)
    table = Lake(counting, clock=clock).table("d.t")
    schema, latest = latest_schema(table.home), latest_snapshot(table.home)
    assert latest is not None
    counting.reset()
    upkeep(table.home, schema, latest)
    assert counting.calls <= 4
    assert not {"put", "delete", "list"} & set(counting.counts())


def test_partitions_expire_once_per_interval(store: MemoryStore, clock: MovingClock) -> None:
    table = make(store, clock, **{"partition.expiration-time": "7 d"})
    write(table, clock, 1, "2020-01-01")
    run(table)
    assert table.scan().count() == 0
    clock.now = 1_800_000_000_000 // 3_600_000 * 3_600_000 + 3_600_000
    write(table, clock, 2, "2020-01-01")
    run(table)
    assert table.scan().count() == 2, "the interval began with an earlier write"
    clock.move(hours=1)
    write(table, clock, 1, "2020-01-01")
    run(table)
    assert table.scan().count() == 0


def test_consumers_that_nobody_renews_hold_nothing(store: MemoryStore, clock: MovingClock) -> None:
    table = make(store, clock, **{"snapshot.num-retained.min": "1", "consumer.expiration-time": "5 h"})
    table.consumers.set("reader", 1)
    write(table, clock, 12)
    run(table)
    assert len(ids(table)) == 12
    clock.move(hours=4)
    run(table)
    assert len(ids(table)) == 1


def test_trouble_is_told_and_never_raised(
    store: MemoryStore, clock: MovingClock, caplog: pytest.LogCaptureFixture
) -> None:
    table = make(store, clock, **{"snapshot.num-retained.min": "1"})
    write(table, clock, 12)
    table.set_options({"write-only": "false"})
    schema, latest = latest_schema(table.home), latest_snapshot(table.home)
    assert latest is not None
    failing = FailingStore(store, fail_at=2, times=1_000)
    with caplog.at_level(logging.WARNING):
        upkeep(Lake(failing, clock=clock).table("d.t").home, schema, latest)
    assert failing.failed
    assert "snapshot 12 of" in caplog.text
    assert table.scan().count() == 12


def test_only_an_expiry_that_stopped_long_ago_is_finished(store: MemoryStore, clock: MovingClock) -> None:
    table = make(store, clock, **{"snapshot.num-retained.min": "1"})
    write(table, clock, 12)
    failing = FailingStore(store, fail_at=2, only=lambda call, path: call == "delete")
    with pytest.raises(UnavailableError):
        Lake(failing, clock=clock).table("d.t").expire_snapshots(6)
    run(table)
    assert len(list(store.list(table.home.paths.expiring_folder))) == 1
    write(table, clock, 2)
    clock.move(hours=2)
    run(table)
    assert list(store.list(table.home.paths.expiring_folder)) == []
    assert stored_files(table.home) == named_files(table.home)


def test_in_the_background(store: MemoryStore, clock: MovingClock) -> None:
    options = {"snapshot.num-retained.min": "1", "snapshot.expire.execution-mode": "async"}
    table = make(store, clock, **options)
    write(table, clock, 12)
    run(table)
    for thread in threading.enumerate():
        if thread.name == "lakelet-upkeep":
            thread.join()
    assert ids(table)[-1] == 12
    assert len(ids(table)) < 12
