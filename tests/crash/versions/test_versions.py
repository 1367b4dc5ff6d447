"""A crash at every storage call of what changes tags, branches and the line of snapshots.

Unlike a commit, these are several steps: a table in between must be at a version it has had or is to have, with all its files,
and the same call again must end where an undisturbed one does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import pytest

from lakelet.commit.metadata.manifests import live_entries, snapshot_manifests
from lakelet.commit.metadata.snapshots import latest_snapshot, read_snapshot
from lakelet.commit.metadata.version_ids import schema_ids, snapshot_ids
from lakelet.commit.retention.file_references import branch_homes
from lakelet.commit.versions.tags import all_tags
from lakelet.errors import AlreadyExistsError, LakeletError, NotFoundError
from lakelet.model.snapshot import Snapshot
from lakelet.storage.decorated import DecoratedStore
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore
from lakelet.storage.paths import TablePaths
from lakelet.storage.store import ObjectStore
from lakelet.table import Table
from lakelet.testing.instrumented_stores import CountingStore, SimulatedCrash, changes
from tests.crash.power_cut import CRASHES
from tests.crash.warehouse import CountedIds, copied, fingerprint
from tests.unit.versioned_table import SetClock, data_files, expire, ids, put, table_on

Lines = dict[str, tuple[list[int], list[str]]]


class CopyingStore(DecoratedStore):
    """A store that moves folders object by object, as object stores do."""

    @property
    def moves_atomically(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Change:
    """`between` are the rows of the main line that a crash may leave beside those before and after; `done` are errors by
    which a repeated call learns that the first one had its effect; `leaves` are tags that a crash may leave."""

    run: Callable[[Table], object]
    between: tuple[tuple[int, ...], ...] = ()
    done: tuple[type[LakeletError], ...] = ()
    leaves: tuple[str, ...] = ()
    copies_folders: bool = False


CHANGES = {
    "create tag": Change(lambda t: t.tags.create("new", 4), done=(AlreadyExistsError,)),
    "create tag of a tagged": Change(lambda t: t.tags.create("new", 2), done=(AlreadyExistsError,)),
    "replace tag": Change(lambda t: t.tags.replace("two", 4), leaves=("lakelet-replacing-two",)),
    "rename tag": Change(
        lambda t: t.tags.rename("two", "new"), done=(NotFoundError, AlreadyExistsError), leaves=("two", "new")
    ),
    "delete tag": Change(lambda t: t.tags.delete("two"), done=(NotFoundError,)),
    "create branch": Change(lambda t: t.branches.create("new"), done=(AlreadyExistsError,)),
    "create branch of a tag": Change(lambda t: t.branches.create("new", tag="two"), done=(AlreadyExistsError,)),
    "create branch of a version": Change(
        lambda t: t.branches.create("new", version=4), done=(AlreadyExistsError,), leaves=("origin-of-branch-new",)
    ),
    "delete branch": Change(lambda t: t.branches.delete("dev"), done=(NotFoundError,)),
    "rename branch": Change(lambda t: t.branches.rename("dev", "new"), done=(NotFoundError,)),
    "rename branch by copies": Change(
        lambda t: t.branches.rename("dev", "new"), done=(NotFoundError, AlreadyExistsError), copies_folders=True
    ),
    "fast-forward": Change(lambda t: t.branches.fast_forward("dev"), between=((1, 2, 3, 4),)),
    "fast-forward to a line of its own": Change(
        lambda t: t.branches.fast_forward("own"), between=((7,), (7, 8), (1, 2, 3, 4))
    ),
    "rollback": Change(lambda t: t.rollback(4), leaves=("lakelet-rollback-to-4",)),
    "rollback to a tag": Change(lambda t: t.rollback("two"), between=((1, 2, 3, 4),)),
}


def table_of(store: ObjectStore) -> Table:
    home = TableHome(store, TablePaths.of("d", "t"), SetClock(1_900_000_000_000), CountedIds("again"))
    return Table("d.t", home)


@pytest.fixture(scope="module")
def start() -> MemoryStore:
    """The main line: snapshots 4 and 5, tag `two`; branch `dev`: 2 and more; branch `own`: 1 and 2 of its own."""
    store = MemoryStore()
    table = table_on(store, SetClock(), 3)
    table.tags.create("two", 2)
    table.branches.create("dev", tag="two")
    dev = table.on_branch("dev")
    dev.add_column("n", "INT")
    for number in (30, 40, 50):
        put(dev, number)
    table.branches.create("own")
    for number in (7, 8):
        put(table.on_branch("own"), number)
    put(table, 4)
    table.write(table.scan().to_arrow(), mode="overwrite")
    expire(table, keep=2)
    return store


def look(store: ObjectStore) -> Lines:
    """The rows and tags of every branch that is a table, after checking that every version of it is whole."""
    there = {info.path for info in store.list("")}
    lines: Lines = {}
    for home in branch_homes(table_of(store).home):
        if not schema_ids(home) or f"{home.paths.branch_root}/UNFINISHED" in there:
            continue
        newest = latest_snapshot(home)
        numbers = list(snapshot_ids(home))
        assert (numbers[-1] if numbers else None) == (None if newest is None else newest.id)
        tags = all_tags(home)
        for snapshot in [*(read_snapshot(home, number) for number in numbers), *(tag.snapshot for tag in tags)]:
            check_whole(home, snapshot, there)
        lines[home.paths.branch] = (ids(Table("d.t", home)), [tag.name for tag in tags])
    return lines


def check_whole(home: TableHome, snapshot: Snapshot, there: set[str]) -> None:
    names = live_entries(home, snapshot_manifests(home, snapshot), columns=()).column("_FILE_NAME").to_pylist()
    files = {path.rsplit("/", 1)[-1] for path in there if "/bucket-" in path}
    assert set(names) <= files, f"snapshot {snapshot.id} of branch {home.paths.branch} lacks files"


def wrapped(change: Change, store: ObjectStore) -> ObjectStore:
    return CopyingStore(store) if change.copies_folders else store


@pytest.mark.parametrize("name", CHANGES)
def test_a_crash_at_any_call_leaves_a_table_that_can_be_read(start: MemoryStore, name: str) -> None:
    change = CHANGES[name]
    once = copied(start)
    counting = CountingStore(wrapped(change, once))
    change.run(table_of(counting))
    before, after = look(start), look(once)
    allowed = [before["main"][0], after["main"][0], *map(list, change.between)]
    seen = set()
    for call in range(1, counting.changing_calls + 1):
        for crash, effective in CRASHES:
            store = copied(start)
            crashing = crash(wrapped(change, store), crash_at=call, after=effective, only=changes)
            with pytest.raises(SimulatedCrash):
                change.run(table_of(crashing))
            if (left := fingerprint(store)) in seen:
                continue
            seen.add(left)
            moment = f"{name}: crash {'after' if effective else 'before'} call {call}, {crashing.struck}"
            found = look(store)
            assert found["main"][0] in allowed, moment
            for branch in before.keys() & found.keys() - {"main"}:
                assert found[branch][0] == before[branch][0], moment
            check_repeated(change, store, after, moment)
    assert len(seen) > 1


def check_repeated(change: Change, store: ObjectStore, after: Lines, moment: str) -> None:
    # A call that is refused because the first one had its effect, but for what it may leave behind.
    with suppress(*change.done):
        change.run(table_of(wrapped(change, store)))
    found = look(store)
    left = set(change.leaves)
    assert {branch: rows for branch, (rows, _) in found.items() if branch in after} == {
        branch: rows for branch, (rows, _) in after.items()
    }, f"{moment}; then repeated"
    for branch, (_, tags) in after.items():
        assert set(found[branch][1]) - left == set(tags) - left, f"{moment}; then repeated"


@pytest.mark.parametrize("name", ["delete tag", "delete branch", "replace tag"])
def test_an_undisturbed_change_removes_the_files_that_nothing_names(start: MemoryStore, name: str) -> None:
    store = copied(start)
    CHANGES[name].run(table_of(store))
    named = set()
    for home in branch_homes(table_of(store).home):
        snapshots = [read_snapshot(home, number) for number in snapshot_ids(home)]
        for snapshot in [*snapshots, *(tag.snapshot for tag in all_tags(home))]:
            entries = live_entries(home, snapshot_manifests(home, snapshot), columns=())
            named.update(entries.column("_FILE_NAME").to_pylist())
    files = {path.rsplit("/", 1)[-1] for path in data_files(store) if "/bucket-" in path}
    assert files == named
