"""A crash at every storage call of an expiry that keeps changelogs: changes that are kept are read at any moment of it."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.commit.versions.told_versions import told_ids
from lakelet.errors import NotFoundError
from lakelet.storage.memory import MemoryStore
from lakelet.storage.store import ObjectStore
from lakelet.table import Table
from lakelet.testing.instrumented_stores import CountingStore, CrashStore, SimulatedCrash, changes
from tests.crash.warehouse import CountedIds, copied, fingerprint
from tests.unit.moving_clock import MovingClock

TABLE = "d.t"
LONG = {"changelog.num-retained.min": "3", "changelog.num-retained.max": "7"}


def opened(store: ObjectStore, moment: int) -> Table:
    return Lake(store, clock=MovingClock(moment), ids=CountedIds("run")).table(TABLE)


def prepared(kind: str) -> tuple[MemoryStore, MovingClock]:
    """A table with changelogs of earlier expiries, of which some expire next."""
    clock = MovingClock()
    store = MemoryStore(clock=clock)
    lake = Lake(store, clock=clock)
    lake.create_database("d")
    key = [] if kind == "append" else ["id"]
    options = {"bucket": "1", "changelog-producer": kind} if key else {}
    table = lake.create_table(TABLE, [("id", "BIGINT"), ("v", "BIGINT")], primary_key=key, options={**options, **LONG})
    for step in range(7):
        table.write(pa.table({"id": [step, step + 1], "v": [step, step]}))
        if step == 3:
            clock.move(days=2)
            table.expire_snapshots(2)
    clock.move(days=2)
    return store, clock


def told(table: Table) -> dict[int, pa.Table | None]:
    """The changes from each version that is told of to the newest."""
    ids = told_ids(table.home)
    found: dict[int, pa.Table | None] = {}
    for number in range(ids[0] - 1, ids[-1]):
        try:
            found[number] = table.changes(number)
        except NotFoundError:
            found[number] = None
    return found


@pytest.mark.parametrize("kind", ["append", "input", "lookup"])
def test_changes_are_read_after_a_crash_at_any_call(kind: str) -> None:
    start, clock = prepared(kind)
    moment = clock.now
    before = told(opened(start, moment))
    counting = CountingStore(copied(start, MemoryStore(clock=MovingClock(moment))))
    opened(counting, moment).expire_snapshots(1)
    kept = told(opened(counting, moment))
    assert None not in kept.values()
    assert len(kept) < len(before), "some changelogs expire"
    seen: set[int] = set()
    for call in range(1, counting.changing_calls + 1):
        for effective in (False, True):
            store = copied(start, MemoryStore(clock=MovingClock(moment)))
            crashing = CrashStore(store, crash_at=call, after=effective, only=changes)
            with suppress(SimulatedCrash):
                opened(crashing, moment).expire_snapshots(1)
            left = fingerprint(store)
            if left in seen:
                continue
            seen.add(left)
            found = told(opened(store, moment))
            for number, rows in kept.items():
                assert found[number] == rows == before[number], (crashing.struck, number)
            for number, rows in found.items():
                assert rows in (None, before[number]), (crashing.struck, number)
            again = opened(store, moment)
            again.expire_snapshots(1)
            assert told(again) == kept, crashing.struck
            assert again.remove_orphan_files("0 s", dry_run=True).count == 0
    assert len(seen) > 5
