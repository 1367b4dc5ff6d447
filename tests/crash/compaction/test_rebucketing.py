"""A crash at every storage call of rescaling and postponed buckets: no row is lost or duplicated, and a repeated call resumes."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from lakelet import InvalidError, Table
from lakelet.catalog.lake import Lake
from lakelet.commit.metadata.manifests import live_entries, snapshot_manifests
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.format.manifest.manifest_columns import columns_to_entries
from lakelet.storage.store import ObjectStore
from lakelet.testing.instrumented_stores import CountingStore, CrashStore, SimulatedCrash, changes
from tests.crash.power_cut import CRASHES
from tests.crash.warehouse import TABLE, Rows, check, copied, fingerprint, lake_on, prepared

COLUMNS = [("id", "BIGINT"), ("p", "STRING"), ("v", "STRING")]
KEYED = {"primary_key": ["id", "p"], "partitioned_by": ["p"]}


def rows(ids: range, v: str) -> pa.Table:
    return pa.table({"id": list(ids), "p": ["ab"[id_ % 2] for id_ in ids], "v": [v] * len(ids)})


def waiting(options: dict[str, str]) -> Callable[[Lake], None]:
    """A table with postponed buckets: some rows have one, others of the same keys wait."""

    def prepare(lake: Lake) -> None:
        lake.create_database("d")
        key = {**KEYED, "partitioned_by": []} if options else KEYED
        table = lake.create_table(TABLE, COLUMNS, options={"bucket": "-2", **options}, **key)
        table.write(rows(range(6), "old"))
        table.compact()
        table.write(rows(range(3, 9), "new"))
        if "merge-engine" not in options:
            table.write(rows(range(1, 2), "gone"), kinds=["-D"])

    return prepare


def fixed(options: dict[str, str], *, keyed: bool = True) -> Callable[[Lake], None]:
    """A table with two buckets."""

    def prepare(lake: Lake) -> None:
        lake.create_database("d")
        key = KEYED if keyed else {"partitioned_by": ["p"]}
        table = lake.create_table(TABLE, COLUMNS, options={"bucket": "2", **options}, **key)
        table.write(rows(range(6), "old"))
        table.write(rows(range(3, 9), "new"))

    return prepare


def numbers(store: ObjectStore) -> set[int]:
    """The numbers of buckets that files say there are."""
    table = lake_on(store).table(TABLE)
    snapshot = latest_snapshot(table.home)
    assert snapshot is not None
    entries = columns_to_entries(live_entries(table.home, snapshot_manifests(table.home, snapshot)))
    return {entry.total_buckets for entry in entries}


def compact(table: Table) -> None:
    table.compact(threads=1)


def rescale(table: Table) -> None:
    table.rescale(3, threads=1)


CASES: dict[str, tuple[Callable[[Lake], None], Callable[[Table], None], set[int]]] = {
    "postponed": (waiting({}), compact, {1}),
    "postponed, vectors": (waiting({"deletion-vectors.enabled": "true"}), compact, {1}),
    "postponed, first-row": (waiting({"merge-engine": "first-row"}), compact, {1}),
    "rescale": (fixed({}), rescale, {3}),
    "rescale, append": (fixed({"bucket-key": "id"}, keyed=False), rescale, {3}),
}


@pytest.mark.parametrize("case", list(CASES))
def test_a_crash_at_any_call_loses_nothing(case: str) -> None:
    prepare, run, wanted = CASES[case]
    start = prepared(prepare)
    before = check(start)
    done = copied(start)
    counting = CountingStore(done)
    run(lake_on(counting, "run").table(TABLE))
    after = check(done)
    assert numbers(done) == wanted
    assert (before == after) == case.startswith("rescale")
    seen: set[int] = set()
    found: list[Rows | None] = []
    for call in range(1, counting.changing_calls + 1):
        for crash, effective in CRASHES:
            store = copied(start)
            with pytest.raises(SimulatedCrash):
                run(lake_on(crash(store, crash_at=call, after=effective, only=changes), "run").table(TABLE))
            left = fingerprint(store)
            if left in seen:
                continue
            seen.add(left)
            now = check(store)
            assert now in (before, after), f"{case}: crash at call {call}"
            found.append(now)
            run(lake_on(store, "again").table(TABLE))
            assert check(store) == after, f"{case}: crash at call {call}, then repeated"
            assert numbers(store) == wanted
    assert before in found
    assert after in found


def written_for(table: Table) -> str:
    """The number of buckets that a write goes to, or that it is refused."""
    try:
        table.write(rows(range(20, 24), "after"))
    except InvalidError as error:
        return "refused" if "rescale or overwrite them first" in str(error) else str(error)
    return table.options["bucket"]


def test_a_writer_after_a_crash_is_refused_or_right() -> None:
    """Between the change of the option and the commit nobody may write, and everybody may read."""
    start = prepared(fixed({}))
    before = check(start)
    counting = CountingStore(copied(start))
    rescale(lake_on(counting, "run").table(TABLE))
    outcomes: set[str] = set()
    for call in range(1, counting.changing_calls + 1):
        store = copied(start)
        with pytest.raises(SimulatedCrash):
            rescale(lake_on(CrashStore(store, crash_at=call, only=changes), "run").table(TABLE))
        table = lake_on(store, "writer").table(TABLE)
        outcome = written_for(table)
        outcomes.add(outcome)
        written = check(store)
        assert (written == before) == (outcome == "refused")
        rescale(lake_on(store, "again").table(TABLE))
        assert check(store) == written
        assert numbers(store) == {3}
    assert outcomes == {"2", "3", "refused"}
