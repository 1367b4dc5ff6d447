"""Fast-forward: the main line becomes that of a branch."""

import pytest

from lakelet.errors import NotFoundError
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.unit.hooked_store import HookedStore
from tests.unit.versioned_table import SetClock, expire, ids, memory, names, numbers, put, table_on


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def table(store: MemoryStore) -> Table:
    """The main line has snapshots 1 to 3; branch `dev` begins with 2 and has 3 more."""
    return branched(table_on(store, SetClock(), 3))


def branched(table: Table) -> Table:
    table.tags.create("two", 2)
    table.branches.create("dev", tag="two")
    for number in (30, 40, 50):
        put(table.on_branch("dev"), number)
    return table


def hints(store: MemoryStore) -> tuple[bytes, bytes]:
    return store.get("d.db/t/snapshot/EARLIEST"), store.get("d.db/t/snapshot/LATEST")


def test_the_main_line_goes_on_as_the_branch_did(store: MemoryStore, table: Table) -> None:
    assert table.branches.fast_forward("dev").id == 5
    assert (numbers(table), ids(table), hints(store)) == ([1, 2, 3, 4, 5], [1, 2, 30, 40, 50], (b"1", b"5"))
    assert ids(table, version=3) == [1, 2, 30]
    put(table, 60)
    put(table.on_branch("dev"), 61)
    assert (ids(table), ids(table.on_branch("dev"))) == ([1, 2, 30, 40, 50, 60], [1, 2, 30, 40, 50, 61])


def test_a_longer_main_line_is_cut(table: Table) -> None:
    for number in (4, 5, 6, 7):
        put(table, number)
    table.branches.fast_forward("dev")
    assert (numbers(table), ids(table)) == ([1, 2, 3, 4, 5], [1, 2, 30, 40, 50])


def test_schemas_and_tags_become_those_of_the_branch(table: Table) -> None:
    table.tags.create("one", 1)
    table.tags.create("also-two", 2)
    table.tags.create("three", 3)
    table.add_column("main_only", "INT")
    table.add_column("main_only_too", "INT")
    put(table, 4)
    branch = table.on_branch("dev")
    branch.add_column("branch_only", "STRING")
    branch.write([{"id": 60, "p": "a", "branch_only": "x"}])
    branch.tags.create("six")
    table.branches.fast_forward("dev")
    assert [field.name for field in table.schema.fields] == ["id", "p", "branch_only"]
    assert [schema.id for schema in table.schemas()] == [0, 1]
    assert names(table) == ["one", "also-two", "two", "six"]
    assert table.scan(where="id = 60").to_arrow().to_pylist() == [{"id": 60, "p": "a", "branch_only": "x"}]


def test_an_empty_branch_that_was_written_replaces_everything(table: Table) -> None:
    table.branches.create("new")
    for number in (100, 200):
        put(table.on_branch("new"), number)
    table.branches.fast_forward("new")
    assert (numbers(table), ids(table), names(table)) == ([1, 2], [100, 200], [])


def test_a_main_line_that_expired_beyond_the_beginning_of_the_branch(store: MemoryStore, table: Table) -> None:
    for number in (4, 5, 6, 7):
        put(table, number)
    expire(table, keep=2)
    assert numbers(table) == [6, 7]
    table.branches.fast_forward("dev")
    assert (numbers(table), ids(table), hints(store)) == ([2, 3, 4, 5], [1, 2, 30, 40, 50], (b"2", b"5"))


def test_a_main_line_that_ends_before_the_branch_begins(store: MemoryStore, table: Table) -> None:
    expire(table.on_branch("dev"), keep=2)
    table.rollback(2)
    table.tags.create("also-two", 2)
    table.branches.fast_forward("dev")
    assert (numbers(table), ids(table), hints(store)) == ([4, 5], [1, 2, 30, 40, 50], (b"4", b"5"))
    files = [info.path.rsplit("/", 1)[-1] for info in store.list_folder("d.db/t/snapshot").files]
    assert files == ["EARLIEST", "LATEST", "snapshot-4", "snapshot-5"]
    assert ids(table, tag="also-two") == [1, 2]


def test_a_main_line_without_snapshots() -> None:
    store, clock = memory()
    table = table_on(store, clock)
    table.branches.create("dev")
    put(table.on_branch("dev"), 1)
    table.branches.fast_forward("dev")
    assert (numbers(table), ids(table), hints(store)) == ([1], [1], (b"1", b"1"))


def test_once_more_is_no_change_and_keeps_later_commits(table: Table) -> None:
    table.branches.fast_forward("dev")
    put(table, 60)
    table.tags.create("six")
    assert table.branches.fast_forward("dev").id == 6
    assert (ids(table), names(table)) == ([1, 2, 30, 40, 50, 60], ["two", "six"])


def test_of_one_branch_to_another(table: Table) -> None:
    table.branches.create("test", tag="two")
    test = table.on_branch("test")
    put(test, 31)
    test.branches.fast_forward("dev")
    assert (ids(test), ids(table)) == ([1, 2, 30, 40, 50], [1, 2, 3])


@pytest.mark.parametrize(
    ("call", "path", "stays"),
    [
        ("put", "LATEST", False),
        ("delete", "snapshot-3", False),
        ("put", "snapshot-4", True),
        ("put", "snapshot-3", True),
    ],
)
def test_a_commit_to_the_main_line_is_before_the_switch_or_after(call: str, path: str, stays: bool) -> None:
    store, clock = memory()
    hooked = HookedStore(store)
    slow = branched(table_on(hooked, clock, 3))
    other = Table("d.t", type(slow.home)(store, slow.home.paths, clock))
    hooked.when = lambda made, where: made == call and where == f"d.db/t/snapshot/{path}"
    hooked.after = lambda: put(other, 99)
    slow.branches.fast_forward("dev")
    assert ids(other) == [1, 2, 30, 40, 50, *([99] if stays else [])]
    assert numbers(other) == list(range(1, 6 + stays))


def test_a_reader_in_the_middle_sees_the_one_or_the_other(table: Table) -> None:
    before = table.scan()
    table.branches.fast_forward("dev")
    assert sorted(before.to_arrow().column("id").to_pylist()) == [1, 2, 3]
    with pytest.raises(NotFoundError):
        table.scan(version=9)


def apply(table: Table, number: int) -> None:
    """A commit of the named user, of row 100 + number."""
    table.write([{"id": 100 + number, "p": "a"}], commit_user="job", commit_identifier=number)


def test_rule_4_a_commit_is_recognised_on_a_branch_that_begins_after_it(table: Table) -> None:
    """Of a snapshot before the one that the branch was made from, live or expired."""
    apply(table, 0)
    put(table, 4)
    expire(table, keep=2)
    apply(table, 1)
    put(table, 5)
    table.branches.create("later", version=numbers(table)[-1])
    branch = table.on_branch("later")
    for number in (0, 1):
        apply(branch, number)
    assert ids(branch) == ids(table)
    apply(branch, 2)
    assert ids(branch) == sorted([*ids(table), 102])


def test_rule_4_an_expired_version_takes_no_later_commits_to_its_branch(table: Table) -> None:
    """What was committed after the version is not on the branch, and is not taken for it."""
    apply(table, 0)
    put(table, 4)
    expire(table)
    table.branches.create("earlier", tag="two")
    apply(table.on_branch("earlier"), 0)
    assert ids(table.on_branch("earlier")) == [1, 2, 100]


def test_rule_4_a_commit_is_recognised_after_a_fast_forward(table: Table) -> None:
    """One of main before the branch began, and one of the branch; neither has a snapshot any more."""
    apply(table, 0)
    put(table, 4)
    table.branches.create("next", version=numbers(table)[-1])
    branch = table.on_branch("next")
    branch.write([{"id": 200, "p": "a"}], commit_user="other", commit_identifier=0)
    put(branch, 6)
    expire(branch)
    table.branches.fast_forward("next")
    before = ids(table)
    assert [snapshot.commit_user for snapshot in table.snapshots() if snapshot.commit_user in ("job", "other")] == []
    apply(table, 0)
    table.write([{"id": 200, "p": "a"}], commit_user="other", commit_identifier=0)
    assert ids(table) == before == [1, 2, 3, 4, 6, 100, 200]
