"""A stream of a table's changes in one process: where it begins, what it sees, and what happens to its position."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from lakelet import InvalidError, Lake, NotFoundError, Table
from lakelet.commit.versions.consumers import set_consumer, stored_progress
from lakelet.errors import ConflictError
from lakelet.storage.memory import MemoryStore
from lakelet.table.follow.change_source import ChangeSource
from lakelet.table.follow.change_stream import ChangeBatch, ChangeStream
from lakelet.table.follow.offset import StreamOffset
from lakelet.table.follow.settings import StreamSettings

COLUMNS = [("id", "BIGINT NOT NULL"), ("v", "STRING")]


@pytest.fixture
def lake() -> Lake:
    found = Lake(MemoryStore())
    found.create_database("d")
    return found


@pytest.fixture
def keyed(lake: Lake) -> Table:
    return lake.create_table("d.k", COLUMNS, primary_key=["id"], options={"bucket": "2"})


@pytest.fixture
def appended(lake: Lake) -> Table:
    return lake.create_table("d.a", COLUMNS)


def put(table: Table, *ids: int, v: str = "a") -> None:
    table.write([{"id": number, "v": v} for number in ids])


def polled(stream: ChangeStream) -> list[ChangeBatch]:
    """The batches that there are by now."""
    return list(iter(stream.poll, None))


def source(table: Table, **options: str) -> ChangeSource:
    """The source of a stream's positions, as the process has it that plans a query of Spark."""
    return ChangeSource(table.home, table.schema, StreamSettings.of({}, options, keyed=bool(table.schema.primary_keys)))


def shown(batches: Iterable[ChangeBatch]) -> list[list[tuple[Any, ...]]]:
    return [sorted(tuple(row.values()) for row in batch.to_arrow().to_pylist()) for batch in batches]


def test_rows_of_the_newest_version_come_first_and_then_changes(keyed: Table) -> None:
    put(keyed, 1, 2)
    stream = keyed.follow()
    put(keyed, 2, 3, v="b")
    keyed.delete([{"id": 1}])
    assert shown(polled(stream)) == [
        [("+I", 1, "a"), ("+I", 2, "a")],
        [("+I", 3, "b"), ("+U", 2, "b"), ("-D", 1, "a"), ("-U", 2, "a")],
    ]
    assert stream.poll() is None
    assert stream.behind == 0


def test_a_stream_ends_where_it_is_told_to(appended: Table) -> None:
    for number in range(4):
        put(appended, number)
    assert shown(appended.follow(1, 3)) == [[("+I", 1, "a"), ("+I", 2, "a")]]
    assert shown(appended.follow(0, 0)) == []
    with pytest.raises(InvalidError, match="the later one"):
        list(appended.follow(3, 1))


def test_an_empty_table_is_followed_from_its_first_snapshot(appended: Table) -> None:
    stream = appended.follow()
    assert stream.poll() is None
    put(appended, 1)
    assert shown(polled(stream)) == [[("+I", 1, "a")]]


def test_limits_cut_a_version_between_its_files(lake: Lake) -> None:
    table = lake.create_table("d.p", [*COLUMNS, ("p", "INT")], partitioned_by=["p"])
    table.write([{"id": number, "v": "a", "p": number % 3} for number in range(6)])
    table.write([{"id": 9, "v": "a", "p": 0}])
    whole = [[row[1] for row in rows] for rows in shown(polled(table.follow(0)))]
    for limit, expected in (("maxFilesPerTrigger", 4), ("maxRowsPerTrigger", 4), ("maxBytesPerTrigger", 4)):
        parts = shown(polled(table.follow(0, options={f"read.stream.{limit}": "1"})))
        assert len(parts) == expected
        assert sorted(row[1] for rows in parts for row in rows) == whole[0]


@pytest.mark.parametrize("name", ["k", "a"])
def test_a_stream_goes_on_from_any_position(lake: Lake, keyed: Table, appended: Table, name: str) -> None:
    table = lake.table(f"d.{name}")
    for number in range(4):
        put(table, number, number + 1)
    options = {"read.stream.maxFilesPerTrigger": "1"}
    batches = polled(table.follow(0, options=options))
    assert len(batches) >= 4
    every = shown(batches)
    for place, batch in enumerate(batches):
        assert shown(polled(table.follow(offset=batch.end, options=options))) == every[place + 1 :]


def test_without_row_kinds_inserted_and_updated_rows_come(keyed: Table) -> None:
    put(keyed, 1, 2)
    put(keyed, 2, v="b")
    keyed.delete([{"id": 1}])
    assert shown(polled(keyed.follow(1, changelog=False))) == [[(2, "b")]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "an error"),
        ({"streaming-read-overwrite": "false"}, [[(7, "a")], [(9, "a")]]),
        ({"streaming-read-append-overwrite": "true"}, [[(7, "a")], [(5, "b")], [(9, "a")]]),
        ({"streaming-read-overwrite": "true"}, [[(7, "a")], [(5, "b")], [(9, "a")]]),
    ],
)
def test_an_overwrite_shows_what_the_options_say(appended: Table, options: Mapping[str, str], expected: Any) -> None:
    put(appended, 7)
    appended.write([{"id": 5, "v": "b"}], mode="overwrite")
    put(appended, 9)
    found = (
        [
            rows
            for start in (0, 1, 2)
            for rows in shown(appended.follow(start, start + 1, changelog=False, options=options))
            if rows
        ]
        if options
        else "an error"
    )
    if not options:
        with pytest.raises(InvalidError, match=r"snapshot 2 .* overwrites or deletes rows"):
            polled(appended.follow(0, changelog=False))
    assert found == expected


@pytest.mark.parametrize(
    ("options", "changelog", "expected"),
    [
        ({}, False, "an error"),
        ({"streaming-read-overwrite": "false"}, False, []),
        ({"streaming-read-overwrite": "true"}, False, [(8, "b")]),
        ({"streaming-read-append-overwrite": "true"}, False, [(8, "b")]),
        ({"streaming-read-append-overwrite": "true"}, True, [("+I", 8, "b")]),
        ({}, True, [("+I", 8, "b"), ("-D", 7, "a"), ("-D", 8, "a")]),
    ],
)
def test_marked_rows_show_as_deletes_or_not_at_all(
    lake: Lake, options: Mapping[str, str], changelog: bool, expected: Any
) -> None:
    table = lake.create_table(
        "d.marked", [("id", "BIGINT"), ("v", "STRING")], options={"deletion-vectors.enabled": "true"}
    )
    put(table, 6, 7, 8)
    table.delete(where="id = 7")
    lake.sql("UPDATE d.marked SET v = 'b' WHERE id = 8")
    if expected == "an error":
        with pytest.raises(InvalidError, match=r"snapshot 2 .* overwrites or deletes rows"):
            polled(table.follow(1, changelog=changelog))
        return
    assert (
        sorted(row for batch in shown(polled(table.follow(1, changelog=changelog, options=options))) for row in batch)
        == expected
    )


@pytest.mark.parametrize("changelog", [False, True])
@pytest.mark.parametrize("option", ["streaming-read-overwrite", "streaming-read-append-overwrite"])
def test_rescaling_adds_no_row(lake: Lake, option: str, changelog: bool) -> None:
    table = lake.create_table("d.b", COLUMNS, options={"bucket": "2", "bucket-key": "id"})
    put(table, 1, 2, 3)
    stream = table.follow(0, changelog=changelog, options={option: "true"})
    polled(stream)
    table.rescale(3)
    assert [rows for rows in shown(polled(stream)) if rows] == []
    table.write([{"id": 7, "v": "b"}], mode="overwrite")
    found = [row for rows in shown(polled(stream)) for row in rows]
    assert [row for row in found if row[0] != "-D"] == [("+I", 7, "b")] if changelog else [(7, "b")]


def test_compaction_alone_changes_nothing(keyed: Table) -> None:
    put(keyed, 1)
    put(keyed, 1, v="b")
    stream = keyed.follow(2)
    keyed.compact(full=True)
    assert [batch.units for batch in polled(stream)] == [()]


def test_rows_that_compaction_expires_are_deleted(lake: Lake) -> None:
    options = {
        "bucket": "1",
        "write-only": "true",
        "record-level.expire-time": "1 h",
        "record-level.time-field": "at",
    }
    table = lake.create_table("d.t", [("id", "BIGINT NOT NULL"), ("at", "BIGINT")], primary_key=["id"], options=options)
    now = table.home.clock.now_ms() // 1000
    table.write([{"id": 1, "at": now}, {"id": 2, "at": now - 7200}])
    stream = table.follow()
    assert shown(polled(stream)) == [[("+I", 1, now), ("+I", 2, now - 7200)]]
    table.compact(full=True)
    assert shown(polled(stream)) == [[("-D", 2, now - 7200)]]


def test_a_column_that_was_dropped_and_added_again_is_another_one(keyed: Table) -> None:
    put(keyed, 1)
    put(keyed, 2)
    stream = keyed.follow(1)
    keyed.drop_column("v")
    keyed.add_column("v", "STRING")
    put(keyed, 2, v="b")
    with pytest.raises(ConflictError, match="column 'v' was added, column 'v' was dropped since the stream began"):
        stream.poll()
    # The old values are not the new column's: two versions of a row without them are the same.
    again = keyed.follow(offset=stream.offset)
    assert shown(polled(again)) == [[("+I", 2, "b")]]


def test_names_that_differ_in_case_alone(lake: Lake) -> None:
    columns = [("id", "INT NOT NULL"), ("v", "INT"), ("V", "INT")]
    for name, key in (("d.low", ["id"]), ("d.Low", [])):
        table = lake.create_table(name, columns, primary_key=key, options={"bucket": "1"} if key else {})
        table.write([{"id": 1, "v": 1, "V": 2}])
        stream = table.follow()
        assert shown(polled(stream)) == [[("+I", 1, 1, 2)]]
        table.write([{"id": 1, "v": 1, "V": 3}], mode="append" if key else "overwrite")
        before, after = ("-U", "+U") if key else ("-D", "+I")
        assert shown(polled(stream)) == [sorted([(before, 1, 1, 2), (after, 1, 1, 3)])]


def test_a_branch_is_followed_on_its_own(keyed: Table) -> None:
    put(keyed, 1)
    keyed.branches.create("b", version=1)
    branch = keyed.on_branch("b")
    main, other = keyed.follow(), branch.follow()
    put(branch, 2)
    put(keyed, 3)
    assert [rows[-1] for rows in shown(polled(main))] == [("+I", 1, "a"), ("+I", 3, "a")]
    assert [rows[-1] for rows in shown(polled(other))] == [("+I", 1, "a"), ("+I", 2, "a")]
    with pytest.raises(ConflictError, match="snapshot 2, which is another one now"):
        keyed.follow(offset=other.offset).poll()


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_a_time_without_a_zone_is_in_utc(appended: Table, monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        put(appended, 1)
        put(appended, 2)
        at = datetime.fromtimestamp(appended.snapshots()[1].time_ms / 1000, UTC).isoformat(timespec="milliseconds")
        for text in (at, at.removesuffix("+00:00")):
            assert shown(polled(appended.follow(options={"scan.timestamp": text})))[-1][-1] == ("+I", 2, "a")
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_rollback_behind_the_position_is_an_error(keyed: Table) -> None:
    for number in range(3):
        put(keyed, number)
    stream, behind = keyed.follow(2), keyed.follow(0, options={"read.stream.maxFilesPerTrigger": "1"})
    assert behind.poll() is not None
    polled(stream)
    keyed.rollback(1)
    with pytest.raises(ConflictError, match="snapshot 3, which is gone, since the table was rolled back"):
        stream.poll()
    put(keyed, 8)
    put(keyed, 9)
    with pytest.raises(ConflictError, match="snapshot 3, which is another one now"):
        stream.poll()
    # The position of the other stream is still one of the table's.
    assert sorted(row[1] for rows in shown(polled(behind)) for row in rows) == [8, 9]


def test_a_table_created_again_is_another_one(lake: Lake, appended: Table) -> None:
    put(appended, 1)
    stream = appended.follow()
    polled(stream)
    lake.drop_table("d.a")
    with pytest.raises(NotFoundError):
        stream.poll()
    put(lake.create_table("d.a", COLUMNS), 1)
    with pytest.raises(ConflictError, match="dropped and created again"):
        stream.poll()


def test_an_expired_position_is_an_error_or_begins_anew(keyed: Table) -> None:
    put(keyed, 1)
    stream, anew = keyed.follow(), keyed.follow(options={"on-expired": "restart"})
    polled(stream), polled(anew)
    for number in (2, 3, 4):
        put(keyed, number)
    keyed.expire_snapshots(retain_last=1)
    with pytest.raises(NotFoundError, match="snapshot 1, which has expired; snapshots 4 to 4 exist"):
        stream.poll()
    assert shown(polled(anew)) == [[("+I", number, "a") for number in (1, 2, 3, 4)]]
    put(keyed, 5)
    assert shown(polled(anew)) == [[("+I", 5, "a")]]
    with pytest.raises(NotFoundError, match="4 is the oldest that exists"):
        keyed.follow(0)


def test_a_position_in_a_version_whose_predecessor_has_expired(keyed: Table) -> None:
    """Half of the buckets of snapshot 2 were compared with snapshot 1, which has expired."""
    put(keyed, 1)
    options = {"read.stream.maxFilesPerTrigger": "1"}
    stream, anew = keyed.follow(1, options=options), keyed.follow(1, options={**options, "on-expired": "restart"})
    keyed.write([{"id": number, "v": "b"} for number in range(9)])
    for one in (stream, anew):
        one.poll()
        assert (one.offset["snapshot"], one.offset["index"]) == (2, 1)
    keyed.expire_snapshots(retain_last=1)
    with pytest.raises(NotFoundError, match="snapshot 1, which the stream reads next, has expired"):
        stream.poll()
    with pytest.raises(NotFoundError, match="snapshot 1"):
        anew.poll()
    full = keyed.follow(offset=anew.offset, options={"on-expired": "restart"})
    assert shown(polled(full)) == [[("+I", number, "b") for number in range(9)]]


def test_the_first_snapshots_of_an_empty_table_expire_before_they_are_read(appended: Table) -> None:
    stream, anew = appended.follow(), appended.follow(options={"on-expired": "restart"})
    for number in (1, 2):
        put(appended, number)
    appended.expire_snapshots(retain_last=1)
    with pytest.raises(NotFoundError, match="snapshot 1, which the stream reads next, has expired"):
        stream.poll()
    assert shown(polled(anew)) == [[("+I", 1, "a"), ("+I", 2, "a")]]


@pytest.mark.parametrize("limit", [{}, {"read.stream.maxFilesPerTrigger": "1"}])
@pytest.mark.parametrize("kept", [1, 2, 3])
def test_a_batch_that_was_fixed_before_its_beginning_expired(keyed: Table, limit: Mapping[str, str], kept: int) -> None:
    """Spark repeats an unfinished batch from its logged start to its logged end, however long it was stopped."""
    put(keyed, 0)
    stream = keyed.follow(options={"on-expired": "restart"})
    polled(stream)
    start = stream.offset
    keyed.write([{"id": number, "v": "b"} for number in range(1, 9)])
    put(keyed, 9)
    end = keyed.follow(offset=start, options=limit).poll()
    assert end is not None
    put(keyed, 10)
    keyed.expire_snapshots(retain_last=kept)
    with pytest.raises(NotFoundError, match="has expired"):
        source(keyed).units(StreamOffset.decode(start), StreamOffset.decode(end.end))
    again = source(keyed, **{"on-expired": "restart"})
    units = again.units(StreamOffset.decode(start), StreamOffset.decode(end.end))
    first = replace(end, units=units).to_arrow().to_pylist()
    rest = polled(keyed.follow(offset=end.end, options={"on-expired": "restart"}))
    found = first + [row for batch in rest for row in batch.to_arrow().to_pylist()]
    assert sorted(row["id"] for row in found) == list(range(11))


def test_a_consumer_whose_snapshots_have_expired_begins_anew_if_it_may(keyed: Table) -> None:
    put(keyed, 1)
    named = {"consumer-id": "c"}
    polled(keyed.follow(options=named))
    for number in (2, 3):
        put(keyed, number)
    progress = stored_progress(keyed.home, "c")
    assert progress is not None
    keyed.consumers.delete("c")
    keyed.expire_snapshots(retain_last=1)
    set_consumer(keyed.home, "c", progress.next, base=progress.base, offset=progress.offset)
    with pytest.raises(NotFoundError, match="snapshot 1, which has expired"):
        keyed.follow(options=named)
    found = polled(keyed.follow(options={**named, "on-expired": "restart"}))
    assert shown(found) == [[("+I", number, "a") for number in (1, 2, 3)]]


def test_a_consumer_holds_its_snapshots_and_resumes(keyed: Table) -> None:
    put(keyed, 1)
    named = {"consumer-id": "c"}
    stream = keyed.follow(options=named)
    polled(stream)
    for number in (2, 3):
        put(keyed, number)
    keyed.expire_snapshots(retain_last=1)
    assert [snapshot.id for snapshot in keyed.snapshots()] == [1, 2, 3]
    again = keyed.follow(options=named)
    assert shown(polled(again)) == [[("+I", 2, "a"), ("+I", 3, "a")]]
    keyed.expire_snapshots(retain_last=1)
    assert [snapshot.id for snapshot in keyed.snapshots()] == [3]
    assert len(polled(keyed.follow(options={**named, "consumer.ignore-progress": "true"}))) == 1
    again.release()
    assert keyed.consumers.list() == []


def test_of_two_streams_with_one_consumer_the_last_to_store_wins(keyed: Table) -> None:
    """As in Paimon. The snapshots of the other are not held, so that it may stop; it never loses a row in silence."""
    named = {"consumer-id": "c"}
    put(keyed, 1)
    slow, fast = keyed.follow(options=named), keyed.follow(options=named)
    for stream in (slow, fast):
        polled(stream)
    put(keyed, 2)
    assert slow.poll() is not None
    put(keyed, 3)
    polled(fast)
    assert [consumer.next_snapshot for consumer in keyed.consumers.list()] == [4]
    # The slow one stores its older position, from which a new stream would read again what the fast one has read.
    batch = slow.poll()
    assert batch is not None
    assert shown([batch]) == [[("+I", 3, "a")]]
    assert [consumer.next_snapshot for consumer in keyed.consumers.list()] == [3]
    put(keyed, 4)
    polled(fast)
    keyed.expire_snapshots(retain_last=1)
    with pytest.raises(NotFoundError, match="snapshot 3, which has expired"):
        slow.poll()
    # Nor does the error of one take the other's place.
    put(keyed, 5)
    assert shown(polled(fast)) == [[("+I", 5, "a")]]
    assert polled(keyed.follow(options=named)) == []


def test_a_consumer_set_by_hand_reads_the_snapshot_it_names(keyed: Table) -> None:
    for number in (1, 2, 3):
        put(keyed, number)
    keyed.consumers.set("c", 3)
    assert shown(polled(keyed.follow(options={"consumer-id": "c"}))) == [[("+I", 3, "a")]]


def test_added_columns_stop_a_stream_or_are_left_out(appended: Table) -> None:
    put(appended, 1)
    stream, merging = appended.follow(), appended.follow(options={"merge-schema": "true"})
    appended.add_column("note", "STRING")
    put(appended, 2)
    polled(merging)
    with pytest.raises(ConflictError, match="column 'note' was added since the stream began"):
        polled(stream)
    appended.rename_column("v", "w")
    put_renamed = [{"id": 3, "w": "c", "note": "n"}]
    appended.write(put_renamed)
    with pytest.raises(ConflictError, match="column 'v' was renamed to 'w'"):
        merging.poll()
    assert appended.follow(offset=merging.offset).poll().to_arrow().column_names == ["_row_kind", "id", "w", "note"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scan.mode": "from-snapshot"}, "needs one option 'scan.snapshot-id'"),
        ({"scan.mode": "latest", "scan.snapshot-id": "1"}, "does not take the option 'scan.snapshot-id'"),
        ({"scan.snapshot-id": "1", "scan.timestamp-millis": "1"}, "begins at one point"),
        ({"scan.mode": "nonsense"}, "scan.mode"),
        ({"read.stream.minRowsPerTrigger": "3"}, "go together"),
        ({"read.stream.maxRowsPerTrigger": "0"}, "maxRowsPerTrigger"),
        ({"no.such": "1"}, "unknown option 'no.such' of a stream"),
        ({"scan.file-creation-time-millis": "1"}, "superseded rows of a primary-key"),
        ({"incremental-between": "1"}, "two versions"),
    ],
)
def test_wrong_options_are_refused(keyed: Table, options: Mapping[str, str], message: str) -> None:
    put(keyed, 1)
    with pytest.raises(InvalidError, match=message):
        keyed.follow(options=options)
