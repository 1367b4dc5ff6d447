"""Rollback: to an id, a tag, a time; with commits, readers and expiry at work."""

from collections.abc import Callable

import pytest

from lakelet.errors import InvalidError, LakeletError, NotFoundError
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.unit.hooked_store import HookedStore
from tests.unit.versioned_table import SetClock, data_files, expire, ids, memory, names, numbers, put, table_on

SNAPSHOT = "d.db/t/snapshot/snapshot-"


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def table(store: MemoryStore) -> Table:
    return table_on(store, SetClock(), 5)


def hints(store: MemoryStore) -> tuple[bytes, bytes]:
    folder = "d.db/t/snapshot"
    return store.get(f"{folder}/EARLIEST"), store.get(f"{folder}/LATEST")


def test_to_an_id(store: MemoryStore, table: Table) -> None:
    files = data_files(store)
    assert table.rollback(3).id == 3
    assert (numbers(table), ids(table), hints(store)) == ([1, 2, 3], [1, 2, 3], (b"1", b"3"))
    assert names(table) == []
    assert data_files(store) == files
    put(table, 40)
    assert (numbers(table), ids(table)) == ([1, 2, 3, 4], [1, 2, 3, 40])


def test_to_a_time(table: Table) -> None:
    second = table.snapshots()[1]
    assert table.rollback(timestamp=second.time_ms).id == 2
    assert ids(table) == [1, 2]


def test_to_a_tag_and_without_those_of_later_versions(table: Table) -> None:
    for number in (2, 3, 4):
        table.tags.create(f"v{number}", number)
    table.tags.create("also-3", 3)
    table.rollback("v3")
    assert (ids(table), names(table)) == ([1, 2, 3], ["v2", "also-3", "v3"])


def test_to_a_tag_whose_snapshot_is_expired(store: MemoryStore, table: Table) -> None:
    table.tags.create("two", 2)
    expire(table, keep=2)
    assert numbers(table) == [4, 5]
    table.rollback("two")
    assert (numbers(table), ids(table), hints(store)) == ([2], [1, 2], (b"2", b"2"))
    put(table, 30)
    assert (numbers(table), ids(table)) == ([2, 3], [1, 2, 30])
    table.tags.delete("two")
    assert ids(table, version=2) == [1, 2]


def test_to_the_id_of_a_snapshot_that_only_a_tag_keeps(table: Table) -> None:
    table.tags.create("two", 2)
    expire(table)
    assert table.rollback(2).id == 2
    assert (numbers(table), names(table)) == ([2], ["two"])


def test_text_is_a_tag_first_and_an_id_then(table: Table) -> None:
    table.tags.create("4", 2)
    table.rollback("4")
    assert ids(table) == [1, 2]
    table.rollback("1")
    assert ids(table) == [1]


def test_to_the_newest_is_no_change(table: Table) -> None:
    table.tags.create("five")
    table.rollback(5)
    assert (numbers(table), names(table)) == ([1, 2, 3, 4, 5], ["five"])


def test_long_lived_changelogs_of_later_versions_go(store: MemoryStore, table: Table) -> None:
    for number in (1, 2, 3):
        store.put(f"d.db/t/changelog/changelog-{number}", store.get(f"{SNAPSHOT}{number}"))
    table.rollback(2)
    folder = store.list_folder("d.db/t/changelog")
    assert [info.path.rsplit("/", 1)[-1] for info in folder.files] == ["LATEST", "changelog-1", "changelog-2"]
    assert store.get("d.db/t/changelog/LATEST") == b"2"


def test_point_lookups_see_the_new_snapshot_of_the_old_id() -> None:
    """Rule 10: caches know a snapshot by more than its id."""
    store, clock = memory()
    table = table_on(store, clock)
    keyed = _keyed(table)
    for value in ("a", "b"):
        keyed.write([{"id": 1, "v": value}])
    assert keyed.get({"id": 1}) == {"id": 1, "v": "b"}
    keyed.rollback(1)
    assert keyed.get({"id": 1}) == {"id": 1, "v": "a"}
    keyed.write([{"id": 1, "v": "c"}])
    assert keyed.latest_snapshot().id == 2  # type: ignore[union-attr]
    assert keyed.get({"id": 1}) == {"id": 1, "v": "c"}


def _keyed(table: Table) -> Table:
    from lakelet.catalog.lake import Lake

    lake = Lake(table.home.store, clock=table.home.clock)
    return lake.create_table(
        "d.k", [("id", "BIGINT"), ("v", "STRING")], primary_key=["id"], options={"bucket": "1", "write-only": "true"}
    )


BAD: dict[str, tuple[Callable[[Table], object], type[LakeletError], str]] = {
    "nowhere": (lambda t: t.rollback(), InvalidError, "needs a snapshot id or a tag name"),
    "to and time": (lambda t: t.rollback(2, timestamp=5), InvalidError, "and not both"),
    "expired": (lambda t: t.rollback(1), NotFoundError, "snapshot 1 is not in .*snapshots 4 to 5 exist"),
    "future": (lambda t: t.rollback(6), NotFoundError, "snapshot 6 is not in"),
    "zero": (lambda t: t.rollback(0), InvalidError, "version 0"),
    "a fraction": (lambda t: t.rollback(2.5), InvalidError, "version 2.5"),  # type: ignore[arg-type]
    "no such tag": (lambda t: t.rollback("none"), NotFoundError, "tag 'none' is not in .*: three"),
    "before all": (lambda t: t.rollback(timestamp=5), NotFoundError, "no snapshot of"),
    "a time as words": (lambda t: t.rollback(timestamp="then"), InvalidError, "timestamp 'then'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_changes_nothing(store: MemoryStore, table: Table, name: str) -> None:
    table.tags.create("three", 3)
    expire(table, keep=2)
    before = {info.path: store.get(info.path) for info in store.list("")}
    call, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        call(table)
    assert {info.path: store.get(info.path) for info in store.list("")} == before


# ---------------------------------------------------------------- with others at work


def raced(call: str, path: str, meanwhile: Callable[[Table], object]) -> tuple[Table, Table]:
    """A table that is rolled back while others act after one of its calls, and the others' table."""
    store, clock = memory()
    hooked = HookedStore(store)
    rolled = table_on(hooked, clock, 5)
    other = Table("d.t", type(rolled.home)(store, rolled.home.paths, clock))
    hooked.when = lambda made, where: made == call and where == path
    hooked.after = lambda: meanwhile(other)
    return rolled, other


def test_a_commit_before_the_first_deletion_goes_with_the_others() -> None:
    rolled, other = raced("put", "d.db/t/snapshot/LATEST", lambda table: put(table, 60))
    rolled.rollback(3)
    assert (numbers(other), ids(other)) == ([1, 2, 3], [1, 2, 3])


def test_a_commit_on_a_snapshot_that_goes_next_goes_too() -> None:
    rolled, other = raced("delete", f"{SNAPSHOT}5", lambda table: put(table, 60))
    rolled.rollback(3)
    assert (numbers(other), ids(other)) == ([1, 2, 3], [1, 2, 3])
    put(other, 70)
    assert (numbers(other), ids(other)) == ([1, 2, 3, 4], [1, 2, 3, 70])


def test_a_commit_on_the_version_gone_back_to_stays() -> None:
    rolled, other = raced("delete", f"{SNAPSHOT}4", lambda table: put(table, 60))
    rolled.rollback(3)
    assert (numbers(other), ids(other)) == ([1, 2, 3, 4], [1, 2, 3, 60])


def test_a_commit_that_a_rollback_overtakes_is_made_again() -> None:
    store, clock = memory()
    hooked = HookedStore(store)
    writer = table_on(hooked, clock, 3)
    other = Table("d.t", type(writer.home)(store, writer.home.paths, clock))
    hooked.when = lambda call, path: call == "put_if_absent" and path == f"{SNAPSHOT}4"
    # The rollback ends between the creation of snapshot 4 and the check whether it exists.
    hooked.after = lambda: store.delete([f"{SNAPSHOT}3", f"{SNAPSHOT}2"])
    put(writer, 60)
    assert (numbers(other), ids(other)) == ([1, 2], [1, 60])


def test_expiry_of_the_version_itself_does_not_empty_the_table() -> None:
    def expire_oldest(table: Table) -> None:
        expire(table, keep=1)

    rolled, other = raced("put", "d.db/t/snapshot/LATEST", expire_oldest)
    rolled.rollback(3)
    assert (numbers(other), ids(other), names(other)) == ([3], [1, 2, 3], [])


def test_a_slow_commit_on_a_snapshot_that_was_rolled_back_does_not_hide_among_new_ones() -> None:
    """Its id follows that of a new commit on the version gone back to, but it was made on a snapshot that is gone."""
    store, clock = memory()
    hooked = HookedStore(store)
    rolled = table_on(hooked, clock, 4)
    other = Table("d.t", type(rolled.home)(store, rolled.home.paths, clock))
    put(other, 5)
    late = store.get(f"{SNAPSHOT}5")
    other.rollback(4)

    def meanwhile() -> None:
        # Snapshot 4 is deleted; somebody commits on 3, and the snapshot made on the old 4 is there too.
        put(other, 60)
        store.put(f"{SNAPSHOT}5", late)

    hooked.when = lambda call, path: call == "delete" and path == f"{SNAPSHOT}4"
    hooked.after = meanwhile
    rolled.rollback(3)
    assert (numbers(other), ids(other)) == ([1, 2, 3, 4], [1, 2, 3, 60])
