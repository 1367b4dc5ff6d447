"""Changes of expired snapshots whose changelogs are kept longer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from lakelet import ConflictError, Lake, NotFoundError, Table
from lakelet.clock import shown_time
from lakelet.commit.metadata.version_ids import changelog_ids, snapshot_ids
from lakelet.commit.versions.consumers import min_next_snapshot
from lakelet.model.snapshot import Changelog
from lakelet.storage.memory import MemoryStore
from lakelet.table.follow.change_stream import ChangeStream
from tests.unit.moving_clock import MovingClock

COLUMNS = [("id", "BIGINT NOT NULL"), ("v", "STRING")]
LONG = {"changelog.num-retained.min": "5", "changelog.num-retained.max": "100", "changelog.time-retained": "30 d"}
PRODUCERS: dict[str, Mapping[str, str]] = {
    "append": {},
    "append in buckets": {"bucket": "2", "bucket-key": "id"},
    "input": {"changelog-producer": "input"},
    "lookup": {"changelog-producer": "lookup"},
    "full-compaction": {"changelog-producer": "full-compaction"},
    "vectors": {"changelog-producer": "lookup", "deletion-vectors.enabled": "true"},
}
Changes = list[tuple[Any, ...]]


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture
def lake(clock: MovingClock) -> Lake:
    lake = Lake(MemoryStore(clock=clock), clock=clock)
    lake.create_database("d")
    return lake


def make(lake: Lake, kind: str, **options: str) -> Table:
    key = [] if "append" in kind else ["id"]
    buckets = {"bucket": "2"} if key else {}
    named = {**buckets, **PRODUCERS.get(kind, {}), **LONG, **options}
    return lake.create_table("d.t", COLUMNS, primary_key=key, options=named)


def fill(table: Table, clock: MovingClock, steps: range = range(6)) -> None:
    for step in steps:
        table.write([{"id": number, "v": f"{step}"} for number in range(step, step + 3)])
        clock.move(minutes=10)


def changed(table: Table, start: int | str, end: int | None = None) -> Changes:
    return [tuple(row.values()) for row in table.changes(start, end).to_pylist()]


def followed(stream: ChangeStream) -> Changes:
    batches = iter(stream.poll, None)
    return [tuple(row.values()) for batch in batches for row in batch.to_arrow().to_pylist()]


@pytest.mark.parametrize("kind", PRODUCERS)
def test_changes_are_read_from_long_lived_changelogs(lake: Lake, clock: MovingClock, kind: str) -> None:
    table = make(lake, kind)
    fill(table, clock)
    last = table.snapshots()[-1].id
    times = {snapshot.id: snapshot.time_ms for snapshot in table.snapshots()}
    expected = {(start, end): changed(table, start, end) for end in range(last + 1) for start in range(end + 1)}
    stream = table.follow(2)
    table.expire_snapshots(1, older_than="1 min")
    assert snapshot_ids(table.home) == range(last, last + 1)
    assert changelog_ids(table.home) == set(range(1, last))
    for (start, end), rows in expected.items():
        assert changed(table, start, end) == rows, (start, end)
    for start in range(last):
        every = sorted(expected[start, last])
        for options in ({}, {"read.stream.maxFilesPerTrigger": "1"}):
            assert sorted(followed(table.follow(start, options=options))) == every, (start, options)
        since = {"scan.timestamp-millis": str(times[start] + 1)} if start else {"scan.snapshot-id": "1"}
        assert sorted(followed(table.follow(options=since))) == every, since
        assert changed(table, shown_time(times[start]) if start else 0) == expected[start, last]
    assert sorted(followed(stream)) == sorted(expected[2, last])
    assert table.remove_orphan_files("0 s", dry_run=True).count == 0
    text = "SELECT * FROM changes('d.t', 1, 4)"
    assert [tuple(row.values()) for row in lake.sql(text).to_arrow().to_pylist()] == expected[1, 4]


def test_the_first_changelog_is_read_although_the_one_before_has_expired(lake: Lake, clock: MovingClock) -> None:
    table = make(lake, "input", **{"changelog.time-retained": "25 min", "changelog.num-retained.min": "1"})
    fill(table, clock)
    expected = changed(table, 3)
    table.expire_snapshots(1, older_than="1 min")
    first = min(changelog_ids(table.home))
    assert first == 4
    assert changed(table, 3) == expected
    assert followed(table.follow(3)) == expected
    with pytest.raises(NotFoundError, match=r"snapshot 3 is not in .*snapshots 8 to 8 exist, and changelogs from 4 on"):
        table.changes(2)
    with pytest.raises(NotFoundError, match="snapshot 2 is not in"):
        table.follow(2)


def test_rows_of_an_expired_snapshot_are_gone(lake: Lake, clock: MovingClock) -> None:
    table = make(lake, "input")
    fill(table, clock)
    held = table.follow(options={"scan.mode": "from-snapshot-full", "scan.snapshot-id": "2"})
    table.expire_snapshots(1, older_than="1 min")
    with pytest.raises(NotFoundError, match="2"):
        table.scan(version=2).to_arrow()
    with pytest.raises(NotFoundError, match="up to snapshot 2, which has expired"):
        held.poll()


@pytest.mark.parametrize("kind", ["none", "input with hidden rows"])
def test_changes_that_comparisons_would_find_are_lost(lake: Lake, clock: MovingClock, kind: str) -> None:
    hidden = {"changelog-producer": "input", "deletion-vectors.enabled": "true"}
    table = make(lake, kind, **(hidden if kind != "none" else {}))
    fill(table, clock)
    last = table.snapshots()[-1].id
    table.expire_snapshots(1, older_than="1 min")
    for start in range(1, last - 1):
        with pytest.raises(NotFoundError, match="are in no changelog"):
            table.changes(start)
        with pytest.raises(NotFoundError, match="are in no changelog"):
            followed(table.follow(start))
    # Before the first snapshot there was nothing, whatever has expired since.
    assert {row[1:] for row in changed(table, 0)} == {
        tuple(row.values()) for row in table.scan().to_arrow().to_pylist()
    }


def test_overwrites_and_deletes_that_have_expired_are_refused(lake: Lake, clock: MovingClock) -> None:
    for kind in ("append", "lookup", "input"):
        table = make(lake, kind)
        fill(table, clock, range(1))
        start = table.snapshots()[-1].id
        table.write([{"id": 1, "v": "new"}], mode="overwrite")
        over = start + 1
        clock.move(minutes=10)
        fill(table, clock, range(1, 4))
        before = [changed(table, number) for number in range(start, table.snapshots()[-1].id)]
        assert ("-D", 0, "0") in before[0]
        table.expire_snapshots(1, older_than="1 min")
        with pytest.raises(NotFoundError, match=f"changes of snapshot {over}"):
            table.changes(start)
        options = {"streaming-read-overwrite": "false"}
        assert followed(table.follow(start, options=options)), "a stream that leaves them out goes on"
        assert changed(table, over) == before[1], "changes after it are known"
        lake.drop_table("d.t")


def test_a_consumer_of_changelogs_alone(lake: Lake, clock: MovingClock) -> None:
    table = make(lake, "lookup", **{"consumer.changelog-only": "true", "changelog.time-retained": "15 min"})
    fill(table, clock, range(2))
    named = {"consumer-id": "c", "scan.mode": "latest"}
    stream = table.follow(options=named)
    position = stream.offset["snapshot"]
    fill(table, clock, range(2, 8))
    expected = changed(table, position)
    table.expire_snapshots(1, older_than="1 min")
    assert snapshot_ids(table.home)[0] > position
    assert min(changelog_ids(table.home)) == position == min_next_snapshot(table.home)
    assert sorted(followed(table.follow(options=named))) == sorted(expected)


def test_a_stream_that_restarts_does_so_when_changelogs_have_expired(lake: Lake, clock: MovingClock) -> None:
    table = make(lake, "lookup", **{"changelog.time-retained": "25 min", "changelog.num-retained.min": "1"})
    fill(table, clock, range(2))
    options = {"on-expired": "restart"}
    stream = table.follow(options=options)
    followed(stream)
    fill(table, clock, range(2, 4))
    expected = changed(table, stream.offset["snapshot"])
    table.expire_snapshots(1, older_than="1 min")
    assert sorted(followed(stream)) == sorted(expected), "as long as there are changelogs"
    fill(table, clock, range(4, 9))
    table.expire_snapshots(1, older_than="1 min")
    state = {("+I", *row.values()) for row in table.scan().to_arrow().to_pylist()}
    assert set(followed(stream)) == state


def test_a_rollback_takes_changelogs_of_later_versions(lake: Lake, clock: MovingClock) -> None:
    table = make(lake, "input")
    fill(table, clock, range(3))
    table.tags.create("third")
    stream = table.follow(2)
    fill(table, clock, range(3, 6))
    followed(stream)
    expected = changed(table, 1, 3)
    table.expire_snapshots(1, older_than="1 min")
    table.rollback("third")
    assert changed(table, 1) == expected
    table.write([{"id": 9, "v": "other"}])
    with pytest.raises(ConflictError):
        stream.poll()


def test_an_expired_version_is_a_changelog_and_names_no_index() -> None:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    table = make(lake, "vectors")
    table.write([{"id": 1, "v": "a"}])
    table.write([{"id": 1, "v": "b"}])
    snapshot = replace(table.snapshots()[-1], index_manifest="index-manifest-1")
    left = Changelog.of(snapshot)
    assert left.index_manifest is None
    assert left.changelog_manifest_list == snapshot.changelog_manifest_list
