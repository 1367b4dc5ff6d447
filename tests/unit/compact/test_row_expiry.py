"""Record-level expiry: which rows are expired, and when they are removed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lakelet import InvalidError, Table
from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.compact.row_expiry import RowExpiry
from tests.unit.compact.keyed_tables import entries, keyed_table
from tests.unit.moving_clock import START_MS, MovingClock

START = START_MS // 1000
HOUR = 3600
_EPOCH = dt.datetime(1970, 1, 1)
TIMES: dict[str, tuple[str, Callable[[int], Any]]] = {
    "int": ("INT", lambda seconds: seconds),
    "seconds": ("BIGINT", lambda seconds: seconds),
    "milliseconds": ("BIGINT", lambda seconds: seconds * 1000),
    "timestamp-3": ("TIMESTAMP(3)", lambda seconds: _EPOCH + dt.timedelta(seconds=seconds)),
    "timestamp-9": ("TIMESTAMP(9)", lambda seconds: _EPOCH + dt.timedelta(seconds=seconds)),
    "zoned": (
        "TIMESTAMP(6) WITH LOCAL TIME ZONE",
        lambda seconds: (_EPOCH + dt.timedelta(seconds=seconds)).replace(tzinfo=dt.UTC),
    ),
}
TIMED = {"bucket": "1", "record-level.expire-time": "1 h", "record-level.time-field": "at"}


def timed_table(clock: MovingClock, at: str = "BIGINT", **options: str) -> Table:
    columns = [("id", "BIGINT"), ("at", at), ("v", "STRING")]
    return keyed_table({**TIMED, **options}, columns=columns, key=["id"], partitions=[], clock=clock)


def write(table: Table, *rows: tuple[int, Any, str]) -> None:
    lines = [dict(zip(("id", "at", "v"), row, strict=True)) for row in rows]
    table.write(pa.Table.from_pylist(lines, schema=table.scan().arrow_schema))


def found(table: Table) -> dict[int, str]:
    return {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}


@pytest.mark.parametrize("kind", list(TIMES))
def test_rows_go_when_they_are_compacted(kind: str) -> None:
    at, time = TIMES[kind]
    clock = MovingClock()
    table = timed_table(clock, at)
    ages = {1: 0, 2: HOUR - 60, 3: HOUR + 60, 4: 9 * HOUR, 5: 20 * 365 * 24 * HOUR}
    write(table, *((id_, time(START - age), "x") for id_, age in ages.items()), (6, None, "x"))
    assert set(found(table)) == {1, 2, 3, 4, 5, 6}
    made = table.compact(full=True)
    assert made is not None
    assert set(found(table)) == {1, 2, 6}
    assert made.total_record_count == 3
    assert {row["_row_kind"] for row in table.changes(1).to_pylist()} == {"-D"}
    # Nothing else is due, until another row has become too old.
    assert table.compact(full=True) is None
    clock.move(minutes=30)
    assert table.compact(full=True) is not None
    assert set(found(table)) == {1, 6}


def test_the_exact_second() -> None:
    table = timed_table(MovingClock())
    expiry = RowExpiry.of(table.schema, START * 1000)
    assert expiry is not None
    times = pa.array([START - HOUR - 1, START - HOUR, None, (START - HOUR - 1) * 1000, (START - HOUR) * 1000 + 999])
    batch = pa.record_batch({"at": times, "n": pa.array(range(5))})
    assert expiry.kept(batch).column("n").to_pylist() == [1, 2, 4]
    assert expiry.kept(batch.slice(1, 1)) == batch.slice(1, 1)


@pytest.mark.parametrize("options", [{"deletion-vectors.enabled": "true"}, {"merge-engine": "first-row"}])
def test_tables_whose_writes_compact(options: dict[str, str]) -> None:
    table = timed_table(MovingClock(), **options)
    write(table, (1, START, "x"), (2, START - 2 * HOUR, "x"))
    write(table, (3, START, "x"), (4, START - 2 * HOUR, "x"))
    assert set(found(table)) == {1, 3}


def test_only_the_newest_row_of_a_key_counts() -> None:
    """A newer row whose time is older takes the key away, and no older row comes back instead."""
    table = timed_table(MovingClock(), **{"write-only": "true"})
    write(table, (1, START, "young"), (2, START - 2 * HOUR, "old"))
    table.compact()
    write(table, (1, START - 2 * HOUR, "old"), (2, START, "young"))
    table.compact(full=True)
    assert found(table) == {2: "young"}


def test_rows_stay_while_older_ones_are_below() -> None:
    """A merge that leaves out the oldest run drops nothing: the row below would come to light."""
    clock = MovingClock()
    table = timed_table(clock, **{"num-sorted-run.compaction-trigger": "3", "write-only": "true"})
    write(table, *((id_, START, "below" * 20) for id_ in range(2000)))
    table.compact(full=True)
    below = {entry.file.name for entry in entries(table)}
    clock.move(hours=2)
    write(table, (1, START, "above"))
    for number in range(3):
        write(table, (5000 + number, clock.now // 1000, "above"))
    made = table.compact()
    assert made is not None
    assert below <= {entry.file.name for entry in entries(table)}
    assert found(table)[1] == "above"
    table.compact(full=True)
    assert set(found(table)) == {5000, 5001, 5002}


def test_files_that_are_told_old_by_their_statistics() -> None:
    table = timed_table(MovingClock(), "INT", **{"write-only": "true"})
    write(table, (1, START, "x"))
    write(table, (2, None, "x"))
    write(table, (3, START - 2 * HOUR, "x"))
    table.change_type("at", "BIGINT")
    table.add_column("more", "INT", first=True)
    schema_of = SchemaVersions(table.home)
    expiry = RowExpiry.of(table.schema, START_MS)
    assert expiry is not None
    told = [expiry.may_hold_expired(entry.file, schema_of) for entry in entries(table)]
    assert told == [False, False, True]
    table.set_options({"metadata.stats-mode": "none"})
    table.write(pa.table({"id": [4], "at": [START - 2 * HOUR], "v": ["x"], "more": pa.array([1], pa.int32())}))
    assert not expiry.may_hold_expired(entries(table)[-1].file, schema_of)


def test_seconds_and_milliseconds_in_one_file() -> None:
    """The least number is a time of next year in seconds, the greatest one of last year in milliseconds."""
    table = timed_table(MovingClock())
    write(table, (1, START + 9000 * HOUR, "x"), (2, (START - 9000 * HOUR) * 1000, "x"))
    table.compact(full=True)
    assert set(found(table)) == {1}


def test_a_renamed_column_goes_on_telling() -> None:
    table = timed_table(MovingClock())
    table.rename_column("at", "made")
    assert table.options["record-level.time-field"] == "made"
    table.write(pa.table({"id": [1, 2], "made": [START, START - 2 * HOUR], "v": ["x", "x"]}))
    table.compact(full=True)
    assert set(found(table)) == {1}
    with pytest.raises(InvalidError, match="'made' is not a column"):
        table.drop_column("made")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"record-level.expire-time": "1 h"}, "needs 'record-level.time-field'"),
        ({"record-level.expire-time": "1 h", "record-level.time-field": "nope"}, "'nope' is not a column"),
        ({"record-level.time-field": "v"}, "expected INT, BIGINT or TIMESTAMP"),
    ],
)
def test_options_that_tell_no_time(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        keyed_table({"bucket": "1", **options})
    table = keyed_table({"bucket": "1"})
    with pytest.raises(InvalidError, match=message):
        table.set_options(options)
