"""A crash at every storage call of every operation, before and after the call takes effect."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from lakelet.storage.disk.local_store import LocalStore
from lakelet.storage.memory import MemoryStore
from lakelet.storage.store import ObjectStore
from lakelet.testing.instrumented_stores import CountingStore, CrashStore, SimulatedCrash, changes
from tests.crash.keyed_operations import KEYED_OPERATIONS
from tests.crash.operations import OPERATIONS, USER, Operation
from tests.crash.power_cut import FATES, PowerCut
from tests.crash.warehouse import TABLE, State, copied, fingerprint, lake_on, listing, prepared, state

ON_DISK = ("create_table", "append", "overwrite_dynamic", "delete", "add_column", "rename_table", "drop_table")
READING = ("append", "delete")
KEYED_ON_DISK = ("keyed_upsert_across", "keyed_restamp")
CUT_IN_EVERY_WAY = ("first_write", "append_merging_manifests", "two_phases", "keyed_restamp")
EVERY_OPERATION = (*OPERATIONS, *KEYED_OPERATIONS)


def named(operations: tuple[str, ...]) -> list[Operation]:
    return [operation for operation in EVERY_OPERATION if operation.name in operations]


def counted(operation: Operation, start: ObjectStore, kind: type[MemoryStore] = MemoryStore) -> CountingStore:
    counting = CountingStore(copied(start, kind()))
    operation.run(lake_on(counting, "run"))
    return counting


def states(operation: Operation, start: ObjectStore) -> tuple[State, State, State, list[State]]:
    """The warehouse before the operation, after it, after it was repeated, and all that a crash may leave."""
    once, twice, between = copied(start), copied(start), []
    operation.run(lake_on(once, "run"))
    operation.run(lake_on(twice, "run"))
    repeat(operation, twice, had_effect=True)
    before, after = state(start), state(once)
    for interrupted in operation.between:
        store = copied(start)
        interrupted(lake_on(store, "between"))
        between.append(state(store))
    return before, after, state(twice), [before, after, *between]


def repeat(operation: Operation, store: ObjectStore, *, had_effect: bool) -> None:
    try:
        operation.repeat(lake_on(store, "again"))
    except operation.refusals:
        assert had_effect, "an operation without effect was refused when it was repeated"


def crash_everywhere(
    operation: Operation,
    start: ObjectStore,
    fresh: Iterator[ObjectStore] | None = None,
    crash: Callable[..., CrashStore] = CrashStore,
    moments: tuple[bool, ...] = (False, True),
) -> None:
    before, after, twice, allowed = states(operation, start)
    calls = counted(operation, start).changing_calls
    assert calls > 0
    # Some calls leave what the one before them left: each distinct warehouse is looked at once.
    seen: dict[int, State] = {}
    left = None
    for call in range(1, calls + 1):
        for effective in moments:
            store = copied(start, next(fresh) if fresh is not None else None)
            crashing = crash(store, crash_at=call, after=effective, only=changes)
            with pytest.raises(SimulatedCrash):
                operation.run(lake_on(crashing, "run"))
            left = fingerprint(store)
            if left in seen:
                continue
            moment = "after" if effective else "before"
            where = f"{operation.name}: crash {moment} change {call} of {calls}, {crashing.struck}"
            found = seen[left] = state(store)
            assert found in allowed, where
            repeat(operation, store, had_effect=found == after)
            assert state(store) == (twice if found == after else after), f"{where}; then repeated"
            assert operation.name != "drop_table" or listing(store) == {}, (
                f"{where}: files are left that nobody can drop"
            )
    # Before the first call nothing has happened.
    assert next(iter(seen.values())) == before or moments[0]
    assert left is not None
    assert seen[left] == after


@pytest.mark.parametrize("operation", EVERY_OPERATION, ids=lambda operation: operation.name)
def test_a_crash_at_any_call_leaves_all_or_nothing(operation: Operation) -> None:
    crash_everywhere(operation, prepared(operation.prepare))


@pytest.mark.parametrize("operation", EVERY_OPERATION, ids=lambda operation: operation.name)
def test_a_power_cut_at_any_call_leaves_all_or_nothing(operation: Operation) -> None:
    """What was not synced is lost, empty, torn or kept, by turns. Before a call there is the same to lose as after the last."""
    crash_everywhere(operation, prepared(operation.prepare), crash=PowerCut, moments=(True,))


@pytest.mark.parametrize("fate", FATES[:-1])
@pytest.mark.parametrize("operation", named(CUT_IN_EVERY_WAY), ids=lambda operation: operation.name)
def test_a_power_cut_at_any_call_leaves_all_or_nothing_in_every_way(operation: Operation, fate: str) -> None:
    crash_everywhere(operation, prepared(operation.prepare), crash=partial(PowerCut, fate=fate), moments=(True,))


@pytest.mark.parametrize("operation", named(ON_DISK + KEYED_ON_DISK), ids=lambda operation: operation.name)
def test_a_crash_at_any_call_leaves_all_or_nothing_on_a_disk(operation: Operation, tmp_path: Path) -> None:
    start = prepared(operation.prepare)
    stores = (LocalStore(tmp_path / str(number), durable=False) for number in count())
    crash_everywhere(operation, start, stores)


@pytest.mark.parametrize("operation", named(READING), ids=lambda operation: operation.name)
def test_a_crash_at_a_read_leaves_nothing_else(operation: Operation) -> None:
    """Why the others crash only at calls that change something."""
    start = prepared(operation.prepare)
    calls = counted(operation, start)

    def left(number: int, *, after: bool, only: Callable[[str, str], bool] | None) -> frozenset[str]:
        store = copied(start)
        with pytest.raises(SimulatedCrash):
            operation.run(lake_on(CrashStore(store, crash_at=number, after=after, only=only), "run"))
        return frozenset(listing(store))

    changed = {
        left(number, after=after, only=changes)
        for number in range(1, calls.changing_calls + 1)
        for after in (False, True)
    }
    assert {left(number, after=False, only=None) for number in range(1, calls.calls + 1)} <= changed


def test_a_crash_at_any_call_of_a_second_run() -> None:
    """A writer that crashes, is started again, and crashes again: still once."""
    (operation,) = named(("append",))
    start = prepared(operation.prepare)
    _, after, _, allowed = states(operation, start)
    calls = counted(operation, start).changing_calls
    for first in range(1, calls + 1):
        store = copied(start)
        for call in (first, calls - 2):
            try:
                operation.run(lake_on(CrashStore(store, crash_at=call, after=True, only=changes), f"run-{call}"))
            except SimulatedCrash:
                assert state(store) in allowed
        operation.run(lake_on(store, "again"))
        assert state(store) == after


def test_the_operations_do_what_their_names_say() -> None:
    """Merges really merge: otherwise the crash tests would pass over them."""
    for name in ("append_merging_manifests", "append_merging_all_manifests"):
        (operation,) = named((name,))
        counting = CountingStore(prepared(operation.prepare))
        operation.run(lake_on(counting, "run"))
        manifests = [
            path
            for call, path in counting.log
            if call == "put" and "/manifest/manifest-" in path and "-list-" not in path
        ]
        assert len(manifests) == 2, f"{name} wrote {manifests}"


@pytest.mark.parametrize("operation", [o for o in KEYED_OPERATIONS if o.between], ids=lambda operation: operation.name)
def test_rivals_really_come_first(operation: Operation) -> None:
    """Raced operations write their files again and commit second."""
    store = prepared(operation.prepare)
    before = len(lake_on(store).table(TABLE).snapshots())
    operation.run(lake_on(store, "run"))
    snapshots = lake_on(store).table(TABLE).snapshots()
    assert [snapshot.commit_user for snapshot in snapshots[before:]] == ["rival", USER]
    files = {path.rsplit("/", 1)[-1] for path in listing(store) if "/bucket-" in path and "/changelog-" not in path}
    live = [file for snapshot in snapshots for _, file in lake_on(store).table(TABLE).files(version=snapshot.id)]
    assert files == {file.name for file in live}, "files of the first attempt are left"


class CopyOnlyStore(MemoryStore):
    """A store that cannot rename a folder, as S3 cannot."""

    @property
    def moves_atomically(self) -> bool:
        return False


def test_a_crash_while_a_table_is_copied_to_its_new_name_loses_nothing() -> None:
    """One of the names is the whole table at any time; both are for a moment, and then the new one can be dropped again."""
    (operation,) = named(("rename_table",))
    start = prepared(operation.prepare)
    after = copied(start)
    operation.run(lake_on(after, "run"))
    before_rows, after_rows = state(start).tables[0][1:], state(after).tables[0][1:]
    assert before_rows == after_rows
    seen = []
    calls = counted(operation, start, CopyOnlyStore).changing_calls
    for call in range(1, calls + 1):
        for effective in (False, True):
            store = copied(start, CopyOnlyStore())
            with pytest.raises(SimulatedCrash):
                operation.run(lake_on(CrashStore(store, crash_at=call, after=effective, only=changes), "run"))
            found = state(store).tables
            assert found
            assert all(table[1:] == before_rows for table in found)
            seen.append(tuple(table[0] for table in found))
            if len(found) == 2:
                lake_on(store).drop_table("d.u")
            if seen[-1] != ("d.u",):
                operation.run(lake_on(store, "again"))
            assert state(store) == state(after)
    assert list(dict.fromkeys(seen)) == [("d.t",), ("d.t", "d.u"), ("d.u",)]
