"""Tags: what they keep, also with expiry and other tags."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from lakelet.errors import AlreadyExistsError, InvalidError, LakeletError, NotFoundError, UnavailableError
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from lakelet.testing.instrumented_stores import FailingStore
from tests.unit.hooked_store import HookedStore
from tests.unit.versioned_table import (
    HOUR_MS,
    START_MS,
    SetClock,
    data_files,
    expire,
    ids,
    memory,
    names,
    numbers,
    put,
    table_on,
)

TAGS = "d.db/t/tag/tag-"


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def table(store: MemoryStore, clock: SetClock) -> Table:
    return table_on(store, clock, 4)


def test_a_tag_names_the_newest_snapshot_or_one_by_id_or_time(table: Table) -> None:
    third = table.snapshots()[2]
    assert table.tags.create("newest").snapshot_id == 4
    assert table.tags.create("by-id", 2).snapshot_id == 2
    assert table.tags.create("by-time", timestamp=third.time_ms).snapshot_id == 3
    assert [(tag.name, tag.snapshot_id, tag.time_ms, tag.time_retained) for tag in table.tags.list()] == [
        (tag.name, tag.snapshot_id, table.snapshots()[tag.snapshot_id - 1].time_ms, None)
        for tag in (table.tags.get(name) for name in ("by-id", "by-time", "newest"))
    ]
    assert ids(table, tag="by-id") == [1, 2]


def test_a_tag_keeps_its_files_through_expiry_and_lets_go_of_them(store: MemoryStore, table: Table) -> None:
    table.write(table.scan().to_arrow(), mode="overwrite")
    table.tags.create("two", 2)
    table.tags.create("also-two", 2)
    expire(table)
    assert numbers(table) == [5]
    assert ids(table, tag="two") == [1, 2]
    table.tags.create("third-name", 2)
    table.tags.delete("two")
    table.tags.delete("third-name")
    assert ids(table, tag="also-two") == [1, 2]
    kept = data_files(store)
    table.tags.delete("also-two")
    gone = kept - data_files(store)
    assert len([path for path in gone if "/bucket-" in path]) == 2
    assert ids(table) == [1, 2, 3, 4]


def test_deleting_a_tag_of_a_live_snapshot_removes_no_file(store: MemoryStore, table: Table) -> None:
    table.tags.create("two", 2)
    before = data_files(store)
    table.tags.delete("two")
    assert data_files(store) == before
    assert names(table) == []


def test_replacing_a_tag_lets_go_of_what_it_kept(store: MemoryStore, table: Table) -> None:
    table.write(table.scan().to_arrow(), mode="overwrite")
    table.tags.create("it", 2, time_retained="1 d")
    expire(table)
    kept = data_files(store)
    replaced = table.tags.replace("it")
    assert (replaced.snapshot_id, replaced.time_retained) == (5, None)
    assert ids(table, tag="it") == [1, 2, 3, 4]
    assert len(kept - data_files(store)) > 2
    # Only the retention changes: the snapshot that nothing else keeps stays.
    table.tags.replace("it", time_retained=timedelta(hours=1))
    put(table, 9)
    expire(table)
    assert table.tags.replace("it", 5, time_retained="2 h").time_retained == timedelta(hours=2)
    assert ids(table, tag="it") == [1, 2, 3, 4]


def test_renaming_a_tag_keeps_everything_of_it(table: Table) -> None:
    made = table.tags.create("old", 2, time_retained="1 d")
    table.tags.rename("old", "new")
    renamed = table.tags.get("new")
    assert (renamed.snapshot, renamed.create_time, renamed.time_retained) == (
        made.snapshot,
        made.create_time,
        made.time_retained,
    )
    assert names(table) == ["new"]


def test_tags_expire_by_their_retention(clock: SetClock) -> None:
    store = MemoryStore()
    table = table_on(store, clock, 2, **{"tag.default-time-retained": "2 h"})
    table.tags.create("default")
    table.tags.create("short", time_retained="1 h")
    table.tags.create("long", 1, time_retained=timedelta(days=1))
    assert table.tags.expire() == []
    clock.now += HOUR_MS
    assert table.tags.expire() == ["short"]
    clock.now += HOUR_MS
    assert table.tags.expire() == ["default"]
    assert table.tags.expire(older_than=clock.now) == ["long"]
    assert names(table) == []


def test_tags_without_a_retention_expire_only_on_demand(table: Table, clock: SetClock) -> None:
    table.tags.create("plain")
    clock.now += 1000 * 24 * HOUR_MS
    assert table.tags.expire() == []
    # Its age is that of its file.
    made = table.home.store.head(f"{TAGS}plain")
    assert made is not None
    assert table.tags.expire(older_than=made.modified_ms) == []
    assert table.tags.expire(older_than=made.modified_ms + HOUR_MS) == ["plain"]


def test_a_marker_file_is_left_for_each_tag(clock: SetClock) -> None:
    store = MemoryStore()
    table = table_on(store, clock, 1, **{"tag.create-success-file": "true"})
    table.tags.create("eod")
    path = "d.db/t/tag/tag-success-file/eod_SUCCESS"
    first = store.get(path)
    table.tags.replace("eod")
    assert store.get(path) != first
    assert names(table) == ["eod"]
    table.tags.delete("eod")
    assert store.head(path) is None


BAD: dict[str, tuple[Callable[[Table], object], type[LakeletError], str]] = {
    "exists": (lambda t: t.tags.create("there"), AlreadyExistsError, "tag 'there' exists"),
    "future version": (
        lambda t: t.tags.create("x", 9),
        NotFoundError,
        "snapshot 9 is not in .*: snapshots 1 to 4 exist",
    ),
    "version 0": (lambda t: t.tags.create("x", 0), InvalidError, "version 0"),
    "version as text": (lambda t: t.tags.create("x", "1"), InvalidError, "version '1'"),  # type: ignore[arg-type]
    "time before all": (lambda t: t.tags.create("x", timestamp=START_MS), NotFoundError, "no snapshot of"),
    "two versions": (lambda t: t.tags.create("x", 1, START_MS), InvalidError, "both version and timestamp"),
    "blank name": (lambda t: t.tags.create(" "), InvalidError, "tag name ' '"),
    "no name": (lambda t: t.tags.create(None), InvalidError, "tag name None"),  # type: ignore[arg-type]
    "name with a slash": (lambda t: t.tags.create("a/b"), InvalidError, "tag name 'a/b'"),
    "hidden name": (lambda t: t.tags.create(".a"), InvalidError, "tag name '.a'"),
    "retention": (lambda t: t.tags.create("x", time_retained="soon"), InvalidError, "time_retained 'soon'"),
    "negative retention": (lambda t: t.tags.create("x", time_retained=timedelta(-1)), InvalidError, "time_retained"),
    "replace none": (lambda t: t.tags.replace("none"), NotFoundError, "tag 'none' is not in .*; its tags: there"),
    "replace by none": (lambda t: t.tags.replace("there", 9), NotFoundError, "snapshot 9"),
    "rename none": (lambda t: t.tags.rename("none", "x"), NotFoundError, "tag 'none'"),
    "rename to one that exists": (lambda t: t.tags.rename("there", "there"), AlreadyExistsError, "tag 'there' exists"),
    "rename to blank": (lambda t: t.tags.rename("there", ""), InvalidError, "tag name ''"),
    "delete none": (lambda t: t.tags.delete("none"), NotFoundError, "tag 'none'"),
    "get none": (lambda t: t.tags.get("none"), NotFoundError, "tag 'none'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_changes_nothing(store: MemoryStore, table: Table, name: str) -> None:
    table.tags.create("there", 2)
    before = {info.path: store.get(info.path) for info in store.list("")}
    call, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        call(table)
    assert {info.path: store.get(info.path) for info in store.list("")} == before


def test_what_exists_or_not_can_be_passed_over(table: Table) -> None:
    first = table.tags.create("a", 2)
    assert table.tags.create("a", 3, if_not_exists=True) == first
    table.tags.delete("none", if_exists=True)


def test_a_table_without_snapshots_has_nothing_to_tag() -> None:
    with pytest.raises(NotFoundError, match="no snapshot yet"):
        table_on(*memory()).tags.create("a")


def test_names_of_digits_are_names(table: Table) -> None:
    table.tags.create("3", 2)
    assert ids(table, version="3") == [1, 2]
    assert ids(table, version=3) == [1, 2, 3]


# ---------------------------------------------------------------- with others at work


def raced(meanwhile: Callable[[Table], object], when: str = f"{TAGS}new") -> tuple[Table, Table, MemoryStore]:
    """A table whose store lets others act right after a tag was written, and the others' table."""
    store, clock = memory()
    hooked = HookedStore(store)
    slow = table_on(hooked, clock, 3)
    slow.write(slow.scan().to_arrow(), mode="overwrite")
    fast = Table("d.t", type(slow.home)(store, slow.home.paths, clock))
    hooked.when = lambda call, path: call == "put_if_absent" and path == when
    hooked.after = lambda: meanwhile(fast)
    return slow, fast, store


def test_a_tag_of_a_snapshot_that_expires_meanwhile_is_kept_or_refused() -> None:
    slow, fast, _ = raced(expire)
    with pytest.raises(NotFoundError, match="was expired while it was tagged"):
        slow.tags.create("new", 2)
    assert names(fast) == []
    assert ids(fast) == [1, 2, 3]


def test_a_withdrawn_tag_leaves_no_files_behind() -> None:
    slow, fast, store = raced(expire)
    with pytest.raises(NotFoundError):
        slow.tags.create("new", 2)
    left = [path for path in data_files(store) if "/bucket-" in path]
    assert sorted(left) == sorted(path for path, _ in fast.files())


def test_a_tag_of_a_tagged_snapshot_outlives_the_deletion_of_the_other_or_is_refused() -> None:
    slow, fast, _ = raced(lambda table: table.tags.delete("only"))
    slow.tags.create("only", 2)
    expire(fast)
    with pytest.raises(NotFoundError, match="was expired while it was tagged"):
        slow.tags.create("new", 2)
    assert names(fast) == []


def test_a_tag_survives_expiry_where_another_tag_keeps_its_snapshot() -> None:
    slow, fast, _ = raced(lambda table: (table.tags.create("other", 2), expire(table)))
    slow.tags.create("new", 2)
    assert names(fast) == ["new", "other"]
    assert ids(fast, tag="new") == [1, 2]


def test_of_two_creations_at_once_one_is_refused() -> None:
    store, clock = memory()
    table = table_on(store, clock, 2)
    other = HookedStore(store)
    racing = Table("d.t", type(table.home)(other, table.home.paths, clock))
    # Between the look for the tag, which finds none, and its creation.
    other.when = lambda call, path: call == "get" and path.endswith("snapshot-2")
    other.after = lambda: table.tags.create("x", 1)
    with pytest.raises(AlreadyExistsError):
        racing.tags.create("x")
    assert table.tags.get("x").snapshot_id == 1


def test_a_rename_of_a_tag_that_is_deleted_meanwhile_keeps_nothing() -> None:
    slow, fast, _ = raced(lambda table: table.tags.delete("old"))
    slow.tags.create("old", 2)
    expire(fast)
    with pytest.raises(NotFoundError, match="was deleted while it was renamed"):
        slow.tags.rename("old", "new")
    assert names(fast) == []


def test_a_replacement_that_comes_too_late_leaves_the_tag_as_it_was() -> None:
    store, clock = memory()
    hooked = HookedStore(store)
    slow = table_on(hooked, clock, 3)
    slow.tags.create("it", 1)
    fast = Table("d.t", type(slow.home)(store, slow.home.paths, clock))
    hooked.when = lambda call, path: call == "put_if_absent" and path == f"{TAGS}lakelet-replacing-it"
    hooked.after = lambda: expire(fast)
    with pytest.raises(NotFoundError, match="was expired while it was tagged"):
        slow.tags.replace("it", 2)
    assert fast.tags.get("it").snapshot_id == 1
    assert ids(fast, tag="it") == [1]


@pytest.mark.parametrize("after", [False, True])
def test_a_store_that_fails_to_answer_is_asked_again(after: bool) -> None:
    store, clock = memory()
    table = table_on(store, clock, 2)
    failing = FailingStore(store, fail_at=-1, after=after)
    # The creation of the tag is the call that fails, whether or not it was carried out.
    probe = Table("d.t", type(table.home)(failing, table.home.paths, clock))
    probe.tags.create("probe")
    place = next(number for number, (call, _) in enumerate(failing.log, 1) if call == "put_if_absent")
    table.tags.delete("probe")
    failing = FailingStore(store, fail_at=place, after=after)
    Table("d.t", type(table.home)(failing, table.home.paths, clock)).tags.create("x")
    assert names(table) == ["x"]


def test_an_error_of_the_store_is_passed_on() -> None:
    store, clock = memory()
    table = table_on(store, clock, 2)
    failing = FailingStore(store, fail_at=1)
    with pytest.raises(UnavailableError):
        Table("d.t", type(table.home)(failing, table.home.paths, clock)).tags.create("x")
    assert names(table) == []


def test_a_damaged_tag_can_be_deleted(store: MemoryStore, table: Table) -> None:
    store.put(f"{TAGS}broken", b"{")
    table.tags.delete("broken")
    assert names(table) == []
