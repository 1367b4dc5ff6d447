"""Branches: made, written to, renamed and deleted, beside the main line and beside expiry."""

from collections.abc import Callable

import pytest

from lakelet.commit.versions.branches import rename_branch
from lakelet.errors import AlreadyExistsError, ConflictError, InvalidError, LakeletError, NotFoundError
from lakelet.options import TableOptions
from lakelet.storage.decorated import DecoratedStore
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.unit.hooked_store import HookedStore
from tests.unit.versioned_table import SetClock, data_files, expire, ids, memory, names, numbers, put, table_on

ROOT = "d.db/t/branch/branch-dev"


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def table(store: MemoryStore) -> Table:
    table = table_on(store, SetClock(), 3)
    table.tags.create("two", 2)
    return table


def test_an_empty_branch_has_the_newest_schema_and_a_line_of_its_own(table: Table) -> None:
    table.add_column("n", "INT")
    table.branches.create("dev")
    branch = table.on_branch("dev")
    assert (branch.name, branch.branch, branch.schema.id, numbers(branch)) == ("d.t$branch_dev", "dev", 1, [])
    put(branch, 9)
    assert (ids(branch), numbers(branch), ids(table)) == ([9], [1], [1, 2, 3])
    assert ids(table, branch="dev") == [9]
    assert branch.on_branch("main").name == "d.t"


def test_a_branch_begins_with_the_snapshot_of_a_tag(table: Table) -> None:
    table.add_column("n", "INT")
    table.branches.create("dev", tag="two")
    branch = table.on_branch("dev")
    assert (ids(branch), numbers(branch), branch.schema.id, names(branch)) == ([1, 2], [2], 0, ["two"])
    put(branch, 30)
    branch.add_column("other", "STRING")
    assert (ids(branch), numbers(branch), ids(table)) == ([1, 2, 30], [2, 3], [1, 2, 3])
    assert [field.name for field in table.schema.fields] == ["id", "p", "n"]


def test_a_branch_of_a_snapshot_keeps_it_by_a_tag(table: Table) -> None:
    table.branches.create("dev", version=1)
    assert names(table) == ["origin-of-branch-dev", "two"]
    table.branches.create("other", version=2)
    # Snapshot 2 has a tag.
    assert names(table) == ["origin-of-branch-dev", "two"]
    table.branches.delete("dev")
    assert names(table) == ["two"]
    assert ids(table.on_branch("other")) == [1, 2]


def test_a_branch_keeps_its_files_through_expiry_and_the_main_line_those_of_its(
    store: MemoryStore, table: Table
) -> None:
    table.branches.create("dev", tag="two")
    branch = table.on_branch("dev")
    branch.write(branch.scan().to_arrow(), mode="overwrite")
    table.write(table.scan().to_arrow(), mode="overwrite")
    table.tags.delete("two")
    expire(table)
    assert ids(branch, version=2) == [1, 2]
    branch.tags.delete("two")
    expire(branch)
    assert (numbers(branch), ids(branch), ids(table)) == ([3], [1, 2], [1, 2, 3])
    table.branches.delete("dev")
    left = sorted(path for path in data_files(store) if "/bucket-" in path)
    assert left == sorted(path for path, _ in table.files())


def test_the_files_of_a_deleted_branch_go_but_for_those_of_others(store: MemoryStore, table: Table) -> None:
    before = data_files(store)
    table.branches.create("dev", tag="two")
    put(table.on_branch("dev"), 30)
    table.on_branch("dev").tags.create("three")
    table.branches.delete("dev")
    assert data_files(store) == before
    assert not list(store.list("d.db/t/branch"))
    assert table.branches.list() == []


def test_renaming_a_branch_keeps_everything_of_it(table: Table) -> None:
    table.branches.create("dev", tag="two")
    put(table.on_branch("dev"), 30)
    table.branches.rename("dev", "test")
    assert table.branches.list() == ["test"]
    assert ids(table.on_branch("test")) == [1, 2, 30]


class CopyingStore(DecoratedStore):
    """A store that moves folders object by object, as object stores do."""

    @property
    def moves_atomically(self) -> bool:
        return False


def test_renaming_a_branch_where_folders_are_copied() -> None:
    store, clock = memory()
    table = table_on(CopyingStore(store), clock, 3)
    table.add_column("n", "INT")
    table.branches.create("dev", version=2)
    put(table.on_branch("dev"), 30)
    table.branches.rename("dev", "test")
    assert table.branches.list() == ["test"]
    assert ids(table.on_branch("test")) == [1, 2, 30]
    assert not list(store.list("d.db/t/branch/branch-dev"))


BAD: dict[str, tuple[Callable[[Table], object], type[LakeletError], str]] = {
    "exists": (lambda t: t.branches.create("there"), AlreadyExistsError, "branch 'there' of .* exists"),
    "main": (lambda t: t.branches.create("main"), InvalidError, "that of the main branch"),
    "blank": (lambda t: t.branches.create("  "), InvalidError, "not blank"),
    "none": (lambda t: t.branches.create(None), InvalidError, "not blank"),  # type: ignore[arg-type]
    "number": (lambda t: t.branches.create("123"), InvalidError, "no number"),
    "slash": (lambda t: t.branches.create("a/b"), InvalidError, "branch name 'a/b'"),
    "no such tag": (lambda t: t.branches.create("x", tag="none"), NotFoundError, "tag 'none' is not in"),
    "no such version": (lambda t: t.branches.create("x", version=9), NotFoundError, "snapshot 9 is not in"),
    "version as text": (lambda t: t.branches.create("x", version="2"), InvalidError, "version '2'"),  # type: ignore[arg-type]
    "tag and version": (lambda t: t.branches.create("x", "two", 2), InvalidError, "both tag and version"),
    "delete none": (lambda t: t.branches.delete("none"), NotFoundError, "branch 'none' is not in .*: there"),
    "delete main": (lambda t: t.branches.delete("main"), InvalidError, "main branch"),
    "delete itself": (lambda t: t.on_branch("there").branches.delete("there"), InvalidError, "from itself"),
    "rename none": (lambda t: t.branches.rename("none", "x"), NotFoundError, "branch 'none'"),
    "rename main": (lambda t: t.branches.rename("main", "x"), InvalidError, "main branch"),
    "rename to one that exists": (lambda t: t.branches.rename("there", "there"), AlreadyExistsError, "exists"),
    "rename to a number": (lambda t: t.branches.rename("there", "7"), InvalidError, "no number"),
    "forward none": (lambda t: t.branches.fast_forward("none"), NotFoundError, "branch 'none'"),
    "forward main": (lambda t: t.branches.fast_forward("main"), InvalidError, "cannot fast-forward from 'main'"),
    "forward an empty one": (lambda t: t.branches.fast_forward("there"), InvalidError, "has no snapshot to go to"),
    "forward itself": (
        lambda t: t.on_branch("there").branches.fast_forward("there"),
        InvalidError,
        "cannot fast-forward from 'there'",
    ),
    "read none": (lambda t: t.on_branch("none"), NotFoundError, "branch 'none'"),
    "scan none": (lambda t: t.scan(branch="none"), NotFoundError, "branch 'none'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_changes_nothing(store: MemoryStore, table: Table, name: str) -> None:
    table.branches.create("there")
    before = {info.path: store.get(info.path) for info in store.list("")}
    call, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        call(table)
    assert {info.path: store.get(info.path) for info in store.list("")} == before


def test_what_exists_or_not_can_be_passed_over(table: Table) -> None:
    table.branches.create("dev")
    table.branches.create("dev", if_not_exists=True)
    table.branches.delete("none", if_exists=True)


def test_a_branch_that_fills_in_for_another_cannot_be_deleted_or_renamed(table: Table) -> None:
    table.branches.create("dev")
    options = TableOptions({"scan.fallback-branch": "dev"})
    with pytest.raises(InvalidError, match="reset 'scan\\.fallback-branch' first"):
        rename_branch(table.home, options, "dev", "x")


# ---------------------------------------------------------------- half made, and with others at work


def test_a_half_made_branch_is_none_until_it_is_made(store: MemoryStore, table: Table) -> None:
    table.branches.create("dev", tag="two")
    marker = b'{"from": {"snapshot": null, "tag": null, "schema": 0}}'
    store.put(f"{ROOT}/UNFINISHED", marker)
    assert table.branches.list() == []
    with pytest.raises(NotFoundError, match="half made or half deleted"):
        table.on_branch("dev")
    with pytest.raises(ConflictError, match="being made from something else"):
        table.branches.create("dev", tag="two")
    table.branches.delete("dev")
    table.branches.create("dev", tag="two")
    assert ids(table.on_branch("dev")) == [1, 2]


def test_the_tag_of_a_half_made_branch_goes_with_it(store: MemoryStore, table: Table) -> None:
    table.branches.create("dev", version=1)
    store.delete_folder(ROOT)
    store.put(f"{ROOT}/UNFINISHED", b"{}")
    table.branches.delete("dev")
    assert names(table) == ["two"]


def test_what_a_late_writer_left_of_a_deleted_branch_is_no_part_of_a_new_one(store: MemoryStore, table: Table) -> None:
    store.put(f"{ROOT}/snapshot/snapshot-7", store.get("d.db/t/snapshot/snapshot-3"))
    assert table.branches.list() == []
    table.branches.create("dev")
    assert numbers(table.on_branch("dev")) == []


def test_a_branch_whose_tag_is_deleted_meanwhile_is_not_made() -> None:
    store, clock = memory()
    hooked = HookedStore(store)
    slow = table_on(hooked, clock, 3)
    slow.tags.create("two", 2)
    fast = Table("d.t", type(slow.home)(store, slow.home.paths, clock))
    expire(fast)
    hooked.when = lambda call, path: call == "put_if_absent" and path == f"{ROOT}/snapshot/snapshot-2"
    hooked.after = lambda: fast.tags.delete("two")
    with pytest.raises(NotFoundError, match="was deleted while it was branched"):
        slow.branches.create("dev", tag="two")
    assert fast.branches.list() == []
    assert not list(store.list("d.db/t/branch"))
    assert ids(fast) == [1, 2, 3]
