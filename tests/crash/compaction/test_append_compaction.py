"""A crash at every storage call of the compaction of an append table: no row is lost or duplicated, and the next one finishes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.commit.committer import commit
from lakelet.commit.request import CommitRequest
from lakelet.errors import ConflictError
from lakelet.storage.store import ObjectStore
from lakelet.testing.instrumented_stores import CountingStore, SimulatedCrash, changes
from tests.crash.power_cut import CRASHES
from tests.crash.warehouse import TABLE, copied, fingerprint, lake_on, prepared, state
from tests.unit.compact.append_tables import compact, files_of, home_of, planned, rewritten

LAYOUTS = {
    "plain": {},
    "partitioned": {"partitioned_by": ["p"]},
    "buckets": {"options": {"bucket": "2", "bucket-key": "id"}},
}


def prepare(lake: Lake, layout: str) -> None:
    lake.create_database("d")
    arguments: dict[str, object] = {**LAYOUTS[layout]}
    arguments["options"] = {"write-only": "true", **LAYOUTS[layout].get("options", {})}  # type: ignore[dict-item]
    table = lake.create_table(TABLE, [("id", "BIGINT"), ("p", "STRING")], **arguments)  # type: ignore[arg-type]
    for number in range(2):
        table.write(pa.table({"id": [number, number + 10], "p": ["a", "b"]}))


def run(store: ObjectStore, ids: str) -> None:
    compact(lake_on(store, ids).table(TABLE), full=True)


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_a_crash_at_any_call_loses_nothing(layout: str) -> None:
    start = prepared(lambda lake: prepare(lake, layout))
    before, files_before = state(start), len(files_of(lake_on(start).table(TABLE)))
    done = copied(start)
    counting = CountingStore(done)
    run(counting, "run")
    files_after = len(files_of(lake_on(done).table(TABLE)))
    assert files_after < files_before
    seen: set[int] = set()
    counts: set[int] = set()
    for call in range(1, counting.changing_calls + 1):
        for crash, effective in CRASHES:
            store = copied(start)
            with pytest.raises(SimulatedCrash):
                run(crash(store, crash_at=call, after=effective, only=changes), "run")
            left = fingerprint(store)
            if left in seen:
                continue
            seen.add(left)
            assert state(store) == before, f"{layout}: crash at call {call}"
            counts.add(len(files_of(lake_on(store).table(TABLE))))
            run(store, "again")
            assert state(store) == before, f"{layout}: crash at call {call}, then repeated"
            assert len(files_of(lake_on(store).table(TABLE))) == files_after
    assert counts == {files_before, files_after}


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_files_that_somebody_else_replaced_are_not_brought_back(layout: str) -> None:
    start = prepared(lambda lake: prepare(lake, layout))
    table = lake_on(start).table(TABLE)
    tasks = planned(table, full=True)
    messages = rewritten(table, tasks)
    table.delete(where="id = 11")
    after_delete = state(start)
    with pytest.raises(ConflictError):
        commit(home_of(table), CommitRequest("compactor", messages, compacts=True))
    assert state(start) == after_delete
