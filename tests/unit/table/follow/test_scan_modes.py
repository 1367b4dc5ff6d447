"""Where a stream begins: the rows of a version, of a snapshot or of young files, and the changes that follow them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import pytest

from lakelet import InvalidError, Lake, NotFoundError, Table
from lakelet.storage.memory import MemoryStore
from tests.unit.moving_clock import MovingClock
from tests.unit.table.follow.test_follow import COLUMNS, polled, put, shown

KEPT = {"write-only": "true"}
"""Compaction is called by the tests alone."""


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture
def lake(clock: MovingClock) -> Lake:
    found = Lake(MemoryStore(), clock=clock)
    found.create_database("d")
    return found


@pytest.fixture
def keyed(lake: Lake) -> Table:
    return lake.create_table("d.k", COLUMNS, primary_key=["id"], options={"bucket": "2", **KEPT})


@pytest.fixture
def appended(lake: Lake) -> Table:
    return lake.create_table("d.a", COLUMNS, options=KEPT)


@pytest.fixture(params=["UTC", "America/Sao_Paulo"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def begun(table: Table, mode: str, **options: object) -> list[list[tuple[object, ...]]]:
    """The batches of a new stream of the mode."""
    given = {key.replace("_", "-").replace("--", "."): str(value) for key, value in options.items()}
    return shown(polled(table.follow(options={"scan.mode": mode, **given})))


def test_the_rows_of_the_newest_compacted_version(keyed: Table) -> None:
    put(keyed, 1, 2)
    put(keyed, 2, v="b")
    keyed.compact(full=True)
    put(keyed, 1, 3, v="c")
    assert begun(keyed, "compacted-full") == [
        [("+I", 1, "a"), ("+I", 2, "b")],
        [("+I", 3, "c"), ("+U", 1, "c"), ("-U", 1, "a")],
    ]
    keyed.compact(full=True)
    keyed.expire_snapshots(retain_last=1)
    assert begun(keyed, "compacted-full") == [[("+I", 1, "c"), ("+I", 2, "b"), ("+I", 3, "c")]]


def test_a_table_that_was_never_compacted_begins_with_its_newest_version(keyed: Table, appended: Table) -> None:
    for table in (keyed, appended):
        assert begun(table, "compacted-full") == []
        put(table, 1)
        put(table, 2)
        assert begun(table, "compacted-full") == [[("+I", 1, "a"), ("+I", 2, "a")]]


def test_a_compacted_version_that_has_expired_is_not_looked_for(appended: Table) -> None:
    for number in (1, 2):
        put(appended, number)
    appended.compact(full=True)
    for number in (3, 4):
        put(appended, number)
    appended.expire_snapshots(retain_last=1)
    assert begun(appended, "compacted-full") == [[("+I", number, "a") for number in (1, 2, 3, 4)]]


def test_rows_that_compaction_makes_visible(lake: Lake) -> None:
    options = {"bucket": "2", "deletion-vectors.enabled": "true", **KEPT}
    table = lake.create_table("d.dv", COLUMNS, primary_key=["id"], options=options)
    put(table, 1, 2)
    table.compact(full=True)
    put(table, 2, 3, v="b")
    stream = table.follow(options={"scan.mode": "compacted-full"})
    assert [rows for rows in shown(polled(stream)) if rows] == [[("+I", 1, "a"), ("+I", 2, "a")]]
    table.compact(full=True)
    assert [rows for rows in shown(polled(stream)) if rows] == [[("+I", 3, "b"), ("+U", 2, "b"), ("-U", 2, "a")]]


@pytest.mark.parametrize("limit", [{}, {"read.stream.maxFilesPerTrigger": "1"}])
def test_the_rows_of_a_snapshot_and_the_changes_after_it(keyed: Table, limit: Mapping[str, str]) -> None:
    put(keyed, 1, 2)
    put(keyed, 2, v="b")
    put(keyed, 3)
    keyed.delete([{"id": 1}])
    options = {"scan.mode": "from-snapshot-full", "scan.snapshot-id": "2", **limit}
    batches = polled(keyed.follow(options=options))
    first = sorted(row for rows in shown(batch for batch in batches if batch.is_initial) for row in rows)
    after = sorted(row for rows in shown(batch for batch in batches if not batch.is_initial) for row in rows)
    assert first == [("+I", 1, "a"), ("+I", 2, "b")]
    assert after == [("+I", 3, "a"), ("-D", 1, "a")]
    # From every batch on a stream goes on without the rows before it.
    for place, batch in enumerate(batches):
        rest = polled(keyed.follow(offset=batch.end, options=limit))
        assert shown(rest) == shown(batches[place + 1 :])


def test_a_snapshot_that_is_not_there(appended: Table) -> None:
    with pytest.raises(NotFoundError, match="snapshot 1 is not in"):
        begun(appended, "from-snapshot-full", scan__snapshot_id=1)
    for number in (1, 2, 3):
        put(appended, number)
    with pytest.raises(InvalidError, match="from 1 on"):
        begun(appended, "from-snapshot-full", scan__snapshot_id=0)
    with pytest.raises(NotFoundError, match="snapshots 1 to 3 exist"):
        begun(appended, "from-snapshot-full", scan__snapshot_id=4)
    appended.expire_snapshots(retain_last=2)
    with pytest.raises(NotFoundError, match="snapshots 2 to 3 exist"):
        begun(appended, "from-snapshot-full", scan__snapshot_id=1)
    # Its rows are there, also where the one before it, with which changes are compared, has expired.
    assert begun(appended, "from-snapshot-full", scan__snapshot_id=2) == [
        [("+I", 1, "a"), ("+I", 2, "a")],
        [("+I", 3, "a")],
    ]


@pytest.mark.parametrize("limit", [{}, {"read.stream.maxFilesPerTrigger": "1"}])
def test_the_rows_of_young_files(appended: Table, clock: MovingClock, zone: str, limit: Mapping[str, str]) -> None:
    put(appended, 1)
    put(appended, 2)
    clock.move(hours=1)
    since = clock.now
    put(appended, 3)
    put(appended, 4)
    appended.expire_snapshots(retain_last=1)
    options = {"scan.mode": "from-file-creation-time", "scan.file-creation-time-millis": str(since), **limit}
    stream = appended.follow(options=options)
    found = shown(polled(stream))
    assert sorted(row for rows in found for row in rows) == [("+I", 3, "a"), ("+I", 4, "a")]
    assert len(found) == (2 if limit else 1)
    first = appended.follow(options=options).poll()
    assert first is not None
    put(appended, 5)
    assert shown(polled(stream)) == [[("+I", 5, "a")]]
    # A position within these rows is one for a stream of any mode.
    rest = shown(polled(appended.follow(offset=first.end)))
    assert sorted(row for rows in rest for row in rows) == [("+I", n, "a") for n in ((4, 5) if limit else (5,))]


def test_no_file_is_young_enough(appended: Table, clock: MovingClock) -> None:
    put(appended, 1)
    clock.move(hours=1)
    stream = appended.follow(
        options={"scan.mode": "from-file-creation-time", "scan.file-creation-time-millis": str(clock.now)}
    )
    assert [rows for rows in shown(polled(stream)) if rows] == []
    put(appended, 2)
    assert shown(polled(stream)) == [[("+I", 2, "a")]]


def test_a_file_of_many_ages_is_as_young_as_its_compaction(appended: Table, clock: MovingClock) -> None:
    put(appended, 1)
    put(appended, 2)
    clock.move(hours=1)
    since = clock.now
    appended.compact(full=True)
    found = begun(appended, "from-file-creation-time", scan__file_creation_time_millis=since)
    assert found == [[("+I", 1, "a"), ("+I", 2, "a")]]


def test_as_far_back_as_snapshots_are_known(appended: Table, clock: MovingClock, zone: str) -> None:
    put(appended, 1)
    clock.move(hours=1)
    since = clock.now
    put(appended, 2)
    appended.write([{"id": 3, "v": "b"}], mode="overwrite")
    # A snapshot before the time exists: its changes are read, as from-timestamp reads them.
    changed = begun(appended, "from-timestamp", scan__timestamp_millis=since)
    assert sorted(row for rows in changed for row in rows) == [
        ("+I", 2, "a"),
        ("+I", 3, "b"),
        ("-D", 1, "a"),
        ("-D", 2, "a"),
    ]
    assert begun(appended, "from-creation-timestamp", scan__creation_time_millis=since) == changed
    put(appended, 4)
    appended.expire_snapshots(retain_last=1)
    # None does any more: what is visible of files that were created since then.
    assert begun(appended, "from-creation-timestamp", scan__creation_time_millis=since) == [
        [("+I", 3, "b"), ("+I", 4, "a")]
    ]


def test_an_empty_table_begins_with_its_first_snapshot(appended: Table, keyed: Table, clock: MovingClock) -> None:
    for table in (appended, keyed):
        options = {"scan.mode": "from-creation-timestamp", "scan.creation-time-millis": str(clock.now)}
        stream = table.follow(options=options)
        assert polled(stream) == []
        put(table, 1)
        assert shown(polled(stream)) == [[("+I", 1, "a")]]


def test_primary_keys_have_changes_by_time_and_no_files(keyed: Table, clock: MovingClock) -> None:
    """Files of a primary-key table hold superseded rows, but all of its changes are known until a snapshot expires."""
    early = clock.now
    put(keyed, 1)
    clock.move(hours=1)
    since = clock.now
    put(keyed, 1, v="b")
    for at, expected in ((early, [("+I", 1, "b")]), (since, [("+U", 1, "b"), ("-U", 1, "a")])):
        assert begun(keyed, "from-creation-timestamp", scan__creation_time_millis=at) == [expected]
    keyed.expire_snapshots(retain_last=1)
    with pytest.raises(NotFoundError, match="snapshot 2, the oldest, is later"):
        begun(keyed, "from-creation-timestamp", scan__creation_time_millis=since)
    with pytest.raises(InvalidError, match="superseded rows of a primary-key"):
        begun(keyed, "from-file-creation-time", scan__file_creation_time_millis=since)
