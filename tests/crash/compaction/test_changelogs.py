"""A crash at every storage call of a write that compaction tells of: the changelog is complete, now or with the next write."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.storage.store import ObjectStore
from lakelet.testing.instrumented_stores import CountingStore, CrashStore, SimulatedCrash, changes
from tests.crash.keyed_operations import keyed
from tests.crash.operations import USER
from tests.crash.warehouse import TABLE, check, copied, lake_on, prepared
from tests.property.lookup_ways import WAYS, compact_by

KINDS = ["+I", "-D", "+I", "+I"]
OPTIONS = {
    "input": {"changelog-producer": "input"},
    "lookup": {"changelog-producer": "lookup"},
    "vectors": {"changelog-producer": "lookup", "deletion-vectors.enabled": "true"},
    "partial": {"changelog-producer": "lookup", "merge-engine": "partial-update", "ignore-delete": "true"},
    "full": {"changelog-producer": "full-compaction"},
}


def filled(lake: Lake, options: dict[str, str]) -> None:
    columns = [("id", "BIGINT"), ("p", "STRING"), ("v", "BIGINT")]
    lake.create_database("d")
    table = lake.create_table(TABLE, columns, primary_key=["id", "p"], options={"bucket": "1", **options})
    table.write(keyed((1, "a", 1), (2, "a", 1), (3, "b", 1), (4, "b", 1)))


def write(lake: Lake) -> object:
    rows = keyed((1, "a", 2), (2, "a", 2), (5, "a", 2), (5, "a", 3))
    return lake.table(TABLE).write(rows, kinds=KINDS, commit_user=USER, commit_identifier=7)


def replayed(lake: Lake) -> dict[object, object]:
    """The rows that the changes from the first version on lead to; nothing is added twice, and what goes was there."""
    state: dict[object, object] = {}
    is_strict = lake.table(TABLE).options["changelog-producer"] != "input"
    for snapshot in sorted(lake.table(TABLE).snapshots(), key=lambda one: one.id):
        for row in lake.table(TABLE).changes(snapshot.id - 1, snapshot.id).to_pylist():
            kind, key = row.pop("_row_kind"), (row["id"], row["p"])
            if kind in ("+I", "+U"):
                assert not (is_strict and key in state)
                state[key] = row
            else:
                gone = state.pop(key, None)
                assert gone == row or not is_strict
    return state


@pytest.mark.parametrize(("name", "way"), [*((name, WAYS[0]) for name in OPTIONS), ("vectors", "lookup files")])
def test_a_changelog_is_complete_whenever_its_writer_crashed(
    monkeypatch: pytest.MonkeyPatch, name: str, way: str
) -> None:
    compact_by(monkeypatch, way)
    start = prepared(lambda lake: filled(lake, OPTIONS[name]))
    calls = _calls(start)
    for call in range(1, calls + 1):
        for effective in (False, True):
            store = copied(start)
            with pytest.raises(SimulatedCrash):
                write(lake_on(CrashStore(store, crash_at=call, after=effective, only=changes), "run"))
            where = f"crash {'after' if effective else 'before'} change {call} of {calls}"
            check(store)
            lake = lake_on(store, "again")
            write(lake)
            lake.table(TABLE).write(keyed((4, "b", 9)))
            check(store)
            rows = lake.table(TABLE).scan().to_arrow().to_pylist()
            assert replayed(lake) == {(row["id"], row["p"]): row for row in rows}, where


def _calls(start: ObjectStore) -> int:
    counting = CountingStore(copied(start))
    write(lake_on(counting, "run"))
    assert isinstance(lake_on(counting).table(TABLE).scan().to_arrow(), pa.Table)
    return counting.changing_calls
