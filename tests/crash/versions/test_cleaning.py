"""A crash at every storage call of expiry and clean-up: what stays can be read, and a second run finishes the job."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.commit.metadata.version_ids import read_hint, snapshot_ids
from lakelet.errors import UnavailableError
from lakelet.storage.memory import MemoryStore
from lakelet.storage.store import ObjectStore
from lakelet.table import Table
from lakelet.testing.instrumented_stores import CountingStore, CrashStore, FailingStore, SimulatedCrash, changes
from tests.crash.warehouse import CountedIds, Rows, copied, fingerprint, rows_in
from tests.unit.commit.named_files import named_files, stored_files
from tests.unit.moving_clock import MovingClock

TABLE = "d.t"
KEPT = 1


@dataclass(frozen=True, slots=True)
class Job:
    """A clean-up, with what it starts from."""

    name: str
    prepare: Callable[[Table, MovingClock], None]
    run: Callable[[Table], object]


def rows(*values: tuple[int, str]) -> pa.Table:
    return pa.table({"id": [value[0] for value in values], "dt": [value[1] for value in values]})


def _history(table: Table, clock: MovingClock) -> None:
    table.write(rows((1, "2020-01-01"), (1, "2099-01-01")))
    table.write(rows((0, "2020-01-01")), commit_user="job", commit_identifier=1)
    table.delete(where="id = 1")
    table.write(rows((9, "2099-01-01")))
    clock.move(days=2)


def _tagged(table: Table, clock: MovingClock) -> None:
    _history(table, clock)
    table.tags.create("second", version=2)


def _orphaned(table: Table, clock: MovingClock) -> None:
    _tagged(table, clock)
    for name in ("dt=2020-01-01/bucket-0/data-lost.parquet", "dt=gone/bucket-0/data-lost.parquet", "manifest/lost"):
        table.home.store.put(f"d.db/t/{name}", b"lost")
    write = table.new_write()
    write.write(rows((77, "2099-01-01")))
    write.prepare_commit()
    clock.move(days=2)


def _longer_changelogs(table: Table, clock: MovingClock) -> None:
    table.set_options({"changelog.num-retained.min": "3"})
    _history(table, clock)


JOBS = (
    Job("expiry", _history, lambda table: table.expire_snapshots(KEPT)),
    Job("expiry beside tags", _tagged, lambda table: table.expire_snapshots(KEPT)),
    Job("changelogs", _longer_changelogs, lambda table: table.expire_snapshots(KEPT)),
    Job("orphans", _orphaned, lambda table: table.remove_orphan_files()),
    Job("partitions", _tagged, lambda table: table.expire_partitions("30 d")),
)


def opened(store: ObjectStore, moment: int) -> Table:
    """The table at a moment, with names that repeat, so that equal states are recognised."""
    return Lake(store, clock=MovingClock(moment), ids=CountedIds("run")).table(TABLE)


def prepared(job: Job, keyed: bool) -> tuple[MemoryStore, MovingClock]:
    clock = MovingClock()
    store = MemoryStore(clock=clock)
    lake = Lake(store, clock=clock)
    lake.create_database("d")
    table = lake.create_table(
        TABLE,
        [("id", "BIGINT"), ("dt", "STRING")],
        partitioned_by=["dt"],
        primary_key=["id", "dt"] if keyed else [],
        options={"bucket": "1"} if keyed else {},
    )
    job.prepare(table, clock)
    return store, clock


def history(table: Table) -> dict[str, Rows]:
    """The rows of all snapshots and tags."""
    found = {f"snapshot {snapshot.id}": table.scan(version=snapshot.id).to_arrow() for snapshot in table.snapshots()}
    found |= {f"tag {name}": table.scan(tag=name).to_arrow() for name in table.tag_names()}
    return {version: rows_in(values) for version, values in found.items()}


def finished(table: Table, job: Job, expected: dict[str, Rows]) -> None:
    """The job, run again, leaves what it leaves undisturbed."""
    job.run(table)
    assert history(table) == expected
    assert list(table.home.store.list(table.home.paths.expiring_folder)) == []
    if job.name not in ("changelogs", "partitions"):
        assert stored_files(table.home) == named_files(table.home)
    assert read_hint(table.home, table.home.paths.earliest_hint) == snapshot_ids(table.home)[0]


@pytest.mark.parametrize(
    ("job", "keyed"),
    [*((job, False) for job in JOBS), (JOBS[1], True)],
    ids=lambda value: value.name if isinstance(value, Job) else "keyed" if value else "append",
)
def test_a_crash_at_any_call(job: Job, keyed: bool) -> None:
    start, clock = prepared(job, keyed)
    moment = clock.now
    before = history(opened(start, moment))
    counting = CountingStore(copied_with_times(start, moment))
    job.run(opened(counting, moment))
    expected = history(opened(counting, moment))
    assert expected != before or job.name == "orphans"
    seen: set[int] = set()
    for call in range(1, counting.changing_calls + 1):
        for effective in (False, True):
            store = copied_with_times(start, moment)
            crashing = CrashStore(store, crash_at=call, after=effective, only=changes)
            with suppress(SimulatedCrash):
                job.run(opened(crashing, moment))
            left = fingerprint(store)
            if left in seen:
                continue
            seen.add(left)
            table = opened(store, moment)
            found = history(table)
            assert {**before, **expected} | found == {**before, **expected}, (call, crashing.struck)
            assert expected.keys() <= found.keys() or job.name == "partitions", (call, crashing.struck)
            finished(table, job, expected)
    assert len(seen) > 1


@pytest.mark.parametrize("job", JOBS[1:], ids=lambda job: job.name)
def test_an_error_at_any_call(job: Job) -> None:
    start, clock = prepared(job, keyed=False)
    moment = clock.now
    counting = CountingStore(copied_with_times(start, moment))
    job.run(opened(counting, moment))
    expected = history(opened(counting, moment))
    for call in range(2, counting.calls + 1, 5):
        store = copied_with_times(start, moment)
        failing = FailingStore(store, fail_at=call, after=bool(call % 2))
        with suppress(UnavailableError):
            job.run(opened(failing, moment))
        finished(opened(store, moment), job, expected)


def copied_with_times(start: ObjectStore, moment: int) -> ObjectStore:
    """A copy whose files are two days old at that moment."""
    target = MemoryStore(clock=MovingClock(moment - 2 * 24 * 3_600_000))
    return copied(start, target)
