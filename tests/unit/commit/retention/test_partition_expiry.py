"""Expiry of partitions by age."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError, NotFoundError
from lakelet.model.snapshot import CommitKind
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.unit.commit.named_files import named_files, stored_files
from tests.unit.moving_clock import START_MS, MovingClock

TODAY = datetime.fromtimestamp(START_MS / 1000)


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture
def lake(clock: MovingClock) -> Lake:
    made = Lake(MemoryStore(clock=clock), clock=clock)
    made.create_database("d")
    return made


def make(lake: Lake, days: list[object], kind: str = "STRING", **options: str) -> Table:
    table = lake.create_table(
        "d.t",
        [("id", "BIGINT"), ("dt", kind)],
        partitioned_by=["dt"],
        options={"partition.expiration-time": "7 d", "write-only": "true", **options},
    )
    types: Any = {"DATE": pa.date32(), "INT": pa.int32(), "TIMESTAMP(3)": pa.timestamp("ms")}.get(kind, pa.string())
    table.write(pa.table({"id": pa.array(range(len(days)), pa.int64()), "dt": pa.array(days, types)}))
    return table


def day(age: float, form: str = "%Y-%m-%d") -> str:
    return (TODAY - timedelta(days=age)).strftime(form)


def left(table: Table) -> list[object]:
    return sorted(table.scan().to_arrow().column("dt").to_pylist(), key=str)


def test_partitions_older_than_the_age_go(lake: Lake, clock: MovingClock) -> None:
    table = make(lake, [day(30), day(9), day(6), day(0), day(-3)])
    would = table.expire_partitions(dry_run=True)
    assert (would.snapshot, table.snapshots()[-1].id) == (None, 1)
    expired = table.expire_partitions()
    assert expired.partitions == would.partitions == ({"dt": day(30)}, {"dt": day(9)})
    assert expired.snapshot is not None
    assert (expired.snapshot.commit_kind, expired.snapshot.id) == (CommitKind.OVERWRITE, 2)
    assert left(table) == [day(6), day(0), day(-3)]
    assert left_at(table, 1) == 5
    clock.move(hours=1)
    table.expire_snapshots(1)
    assert stored_files(table.home) == named_files(table.home)
    assert table.expire_partitions().snapshot is None


def left_at(table: Table, version: int) -> int:
    return table.scan(version=version).count()


def test_an_age_given_with_the_call(lake: Lake) -> None:
    table = make(lake, [day(3), day(1)])
    assert table.expire_partitions(timedelta(days=2)).partitions == ({"dt": day(3)},)
    assert table.expire_partitions(datetime.fromtimestamp(START_MS / 1000).astimezone()).partitions == ({"dt": day(1)},)


def test_at_most_so_many_the_first_by_their_values(lake: Lake) -> None:
    table = make(lake, [day(age) for age in range(20, 30)], **{"partition.expiration-max-num": "4"})
    assert [part["dt"] for part in table.expire_partitions().partitions] == [day(age) for age in (29, 28, 27, 26)]
    assert [part["dt"] for part in table.expire_partitions(max_partitions=1).partitions] == [day(25)]


def test_several_commits_where_asked_for(lake: Lake) -> None:
    table = make(lake, [day(age) for age in range(20, 25)], **{"partition.expiration-batch-size": "2"})
    expired = table.expire_partitions()
    assert expired.snapshot is not None
    assert expired.snapshot.id == 1 + 3
    assert left(table) == []


@pytest.mark.parametrize(
    ("kind", "old", "new", "options"),
    [
        ("STRING", day(9, "%Y%m%d"), day(1, "%Y%m%d"), {"partition.timestamp-formatter": "yyyyMMdd"}),
        ("INT", int(day(9, "%Y%m%d")), int(day(1, "%Y%m%d")), {"partition.timestamp-formatter": "yyyyMMdd"}),
        ("STRING", day(9, "%m-%d"), day(1, "%m-%d"), {"partition.timestamp-pattern": f"{TODAY.year}-$dt"}),
        ("DATE", (TODAY - timedelta(days=9)).date(), (TODAY - timedelta(days=1)).date(), {}),
        ("TIMESTAMP(3)", TODAY - timedelta(days=9), TODAY - timedelta(days=1), {}),
    ],
)
def test_times_of_many_spellings(lake: Lake, kind: str, old: object, new: object, options: dict[str, str]) -> None:
    table = make(lake, [old, new], kind, **options)
    assert len(table.expire_partitions().partitions) == 1
    assert left(table) == [new]


def test_what_is_no_time_stays_and_is_told(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    table = make(lake, [None, "unknown", day(9)])
    with caplog.at_level(logging.WARNING):
        assert table.expire_partitions().partitions == ({"dt": day(9)},)
    assert "2 partitions are no time" in caplog.text
    assert left(table) == [None, "unknown"]


def test_by_the_newest_file(lake: Lake, clock: MovingClock) -> None:
    table = make(lake, ["a", "b", None], **{"partition.expiration-strategy": "update-time"})
    clock.move(days=5)
    table.write(pa.table({"id": [7], "dt": ["b"]}))
    clock.move(days=3)
    assert table.expire_partitions().partitions == ({"dt": None}, {"dt": "a"})
    assert left(table) == ["b", "b"]


def test_primary_key_tables(lake: Lake) -> None:
    table = lake.create_table(
        "d.t", [("id", "BIGINT"), ("dt", "STRING")], primary_key=["id", "dt"], partitioned_by=["dt"]
    )
    table.write(pa.table({"id": [1, 2], "dt": [day(9), day(1)]}))
    table.write(pa.table({"id": [1, 2], "dt": [day(9), day(1)]}))
    table.expire_partitions("7 d")
    assert left(table) == [day(1)]
    table.write(pa.table({"id": [1], "dt": [day(9)]}))
    assert left(table) == [day(9), day(1)]


def test_bad_input(lake: Lake) -> None:
    table = make(lake, [day(9)])
    for age in ("soon", 7, "2999-01-01"):
        with pytest.raises(InvalidError, match="older_than"):
            table.expire_partitions(age)  # type: ignore[arg-type]
    with pytest.raises(InvalidError, match="max_partitions"):
        table.expire_partitions(max_partitions=0)
    table.set_options({"partition.expiration-strategy": "by-mood"})
    with pytest.raises(InvalidError, match="by-mood"):
        table.expire_partitions()
    table.reset_options(["partition.expiration-time"])
    with pytest.raises(InvalidError, match=r"no partition\.expiration-time"):
        table.expire_partitions()
    flat = lake.create_table("d.flat", [("id", "BIGINT")])
    with pytest.raises(InvalidError, match="no partitions"):
        flat.expire_partitions("7 d")
    lake.drop_table("d.t")
    with pytest.raises(NotFoundError):
        table.expire_partitions("7 d")
