"""A crash or an error at every storage call of compactions, on demand and after a write, alone and against a rival.

Nothing is lost or doubled. Where level 0 is hidden a write may be cut off before its rows show: whoever repeats it makes them
show, and so does the next compaction.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import LakeletError
from lakelet.storage.decorated import DecoratedStore
from lakelet.storage.store import ObjectStore
from lakelet.table import Table
from lakelet.testing.instrumented_stores import FailingStore
from tests.crash.commit.test_crash import counted, crash_everywhere
from tests.crash.keyed_operations import keyed
from tests.crash.operations import USER, Action, Operation
from tests.crash.warehouse import TABLE, CountedIds, copied, lake_on, prepared, state
from tests.unit.hooked_store import HookedStore

_AT_ONCE = {"num-sorted-run.compaction-trigger": "2", "compaction.size-ratio": "100"}
_VECTORS = {"deletion-vectors.enabled": "true"}
_LOOKUP = {"changelog-producer": "lookup"}
_FIRST = {"merge-engine": "first-row"}


def _table(options: dict[str, str]) -> Action:
    """Rows on the top level, and newer ones of some of their keys."""

    def fill(lake: Lake) -> None:
        lake.create_database("d")
        chosen = {"bucket": "1", "write-only": "true", **options}
        lake.create_table(
            TABLE,
            [("id", "BIGINT"), ("p", "STRING"), ("v", "BIGINT")],
            primary_key=["id", "p"],
            partitioned_by=["p"],
            options={name: text for name, text in chosen.items() if text},
        )
        table = lake.table(TABLE)
        table.write(keyed((1, "a", 1), (2, "a", 1), (3, "b", 1)))
        table.compact(full=True, threads=1)
        table.write(keyed((2, "a", 2), (4, "a", 2)))

    return fill


def _compact(full: bool) -> Action:
    return lambda lake: lake.table(TABLE).compact(full, threads=1)


def _write(lake: Lake) -> object:
    return lake.table(TABLE).write(keyed((1, "a", 9), (4, "a", 9)), commit_user=USER, commit_identifier=7)


def _delete(lake: Lake) -> object:
    return lake.table(TABLE).delete(keyed((1, "a", 0), (3, "b", 0)), commit_user=USER, commit_identifier=7)


def _append(lake: Lake) -> None:
    lake.create_database("d")
    table = lake.create_table(TABLE, [("id", "BIGINT"), ("p", "STRING")], options={"compaction.min.file-num": "4"})
    for number in range(3):
        table.write(pa.table({"id": [number], "p": ["a"]}))


def _append_more(lake: Lake) -> object:
    rows = pa.table({"id": [7], "p": ["b"]})
    return lake.table(TABLE).write(rows, commit_user=USER, commit_identifier=7)


def _raced(rival: Callable[[Table], object], run: Action) -> Action:
    """On a store on which a rival comes in before our first snapshot is made; crashes pass it by."""

    def raced(lake: Lake) -> object:
        hooked = HookedStore(lake._store)
        hooked.when = lambda call, path: call == "put" and "manifest-list" in path

        def step_in() -> None:
            store = lake._store._store if isinstance(lake._store, DecoratedStore) else lake._store
            rival(Lake(store, clock=lake._clock, ids=CountedIds("rival")).table(TABLE))

        hooked.after = step_in
        return run(Lake(hooked, clock=lake._clock, ids=lake._ids))

    return raced


def _rival_writes(table: Table) -> object:
    return table.write(keyed((1, "a", 5), (2, "a", 5)), commit_user="rival", commit_identifier=1)


def _rival_compacts(table: Table) -> object:
    return table.compact(True, threads=1)


_INLINE = {"write-only": "", **_AT_ONCE}
OPERATIONS = (
    Operation("compact_full", _table({}), _compact(True)),
    Operation("compact_vectors", _table(_VECTORS), _compact(False)),
    Operation("compact_vectors_full", _table(_VECTORS), _compact(True)),
    Operation("compact_first_row", _table(_FIRST), _compact(False)),
    Operation("inline", _table({**_INLINE, "bucket": "1"}), _write),
    Operation("inline_dynamic", _table({**_INLINE, "bucket": ""}), _write),
    Operation("inline_vectors", _table({**_INLINE, **_VECTORS}), _write),
    Operation("inline_first_row", _table({**_INLINE, **_FIRST}), _write),
    Operation("compact_lookup", _table(_LOOKUP), _compact(False)),
    Operation("compact_changelog", _table({"changelog-producer": "full-compaction"}), _compact(True)),
    Operation("inline_lookup", _table({**_INLINE, **_LOOKUP}), _write),
    Operation("inline_append", _append, _append_more),
    Operation(
        "compact_after_a_rival_wrote",
        _table({}),
        _raced(_rival_writes, _compact(True)),
        between=(lambda lake: _rival_writes(lake.table(TABLE)),),
    ),
    Operation(
        "compact_after_a_rival_compacted",
        _table(_VECTORS),
        _raced(_rival_compacts, _compact(True)),
        between=(lambda lake: _rival_compacts(lake.table(TABLE)),),
    ),
)
FAILING = [operation for operation in OPERATIONS if operation.name in ("compact_vectors", "inline", "inline_vectors")]
DELETE = Operation("inline_delete_vectors", _table({**_INLINE, **_VECTORS}), _delete)


@pytest.mark.parametrize("operation", [*OPERATIONS, DELETE], ids=lambda operation: operation.name)
def test_a_crash_at_any_call_leaves_all_or_nothing(operation: Operation) -> None:
    crash_everywhere(operation, prepared(operation.prepare))


@pytest.mark.parametrize("operation", FAILING, ids=lambda operation: operation.name)
@pytest.mark.parametrize("after", [False, True])
def test_an_error_at_any_call_leaves_all_or_nothing(operation: Operation, after: bool) -> None:
    """The store fails once: the operation goes on, or says so; repeated, it is done."""
    start = prepared(operation.prepare)
    done = copied(start)
    operation.run(lake_on(done, "run"))
    expected = state(done)
    for call in range(1, counted(operation, start).calls + 1, 4):
        store: ObjectStore = copied(start)
        try:
            operation.run(lake_on(FailingStore(store, fail_at=call, after=after), "run"))
        except LakeletError:
            state(store)
            operation.repeat(lake_on(store, "again"))
        _settle(store)
        assert state(store) == expected, f"{operation.name}: an error {'after' if after else 'before'} call {call}"


def _settle(store: ObjectStore) -> None:
    """An inline compaction that failed is told in the log only, and the next one does it."""
    lake_on(store, "settle").table(TABLE).compact(True, threads=1)


def test_the_operations_do_what_their_names_say() -> None:
    for operation in (*OPERATIONS, DELETE):
        store = prepared(operation.prepare)
        before = lake_on(store).table(TABLE).snapshots()
        operation.run(lake_on(store, "run"))
        kinds = [snapshot.commit_kind.value for snapshot in lake_on(store).table(TABLE).snapshots()[len(before) :]]
        assert "COMPACT" in kinds, f"{operation.name}: {kinds}"
