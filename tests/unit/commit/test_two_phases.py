"""Writing here and committing there: messages, repeated commits, aborts."""

import pickle
from dataclasses import replace

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.commit.committed_files import committed_files
from lakelet.errors import ConflictError, InvalidError
from lakelet.model.commit_message import CommitMessage
from lakelet.model.snapshot import CommitKind
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.crash.operations import rows
from tests.crash.warehouse import TABLE, check, home_on, lake_on, listing
from tests.unit.hooked_store import HookedStore
from tests.unit.moving_clock import MovingClock


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    lake = lake_on(store, "new")
    lake.create_database("d")
    lake.create_table(TABLE, [("id", "BIGINT"), ("p", "STRING")], partitioned_by=["p"]).write(rows((1, "a"), (2, "b")))
    return store


@pytest.fixture
def table(store: MemoryStore) -> Table:
    return lake_on(store, "table").table(TABLE)


def prepared(table: Table, data: pa.Table) -> tuple[CommitMessage, ...]:
    with table.new_write() as write:
        write.write(data)
        messages: tuple[CommitMessage, ...] = pickle.loads(pickle.dumps(write.prepare_commit()))
        return messages


def ids(store: MemoryStore) -> list[object]:
    found = check(store)
    assert found is not None
    return sorted(row[0] for row in found)  # type: ignore[type-var]


def test_nothing_is_visible_before_the_commit(store: MemoryStore, table: Table) -> None:
    messages = prepared(table, rows((3, "a"), (4, "c")))
    assert ids(store) == [1, 2]
    assert len(messages) == 2
    made = table.new_commit("job", 1).commit(messages)
    assert made is not None
    assert (made.commit_user, made.commit_identifier) == ("job", 1)
    assert ids(store) == [1, 2, 3, 4]


def test_messages_of_several_writers_make_one_snapshot(store: MemoryStore, table: Table) -> None:
    messages = [message for number in range(3, 6) for message in prepared(table, rows((number, "a")))]
    made = table.new_commit("job", 1).commit(messages)
    assert made is not None
    assert made.id == 2
    assert ids(store) == [1, 2, 3, 4, 5]


def test_rule_4_a_commit_sent_twice_makes_one_snapshot(store: MemoryStore, table: Table) -> None:
    messages = prepared(table, rows((3, "a")))
    commit = table.new_commit("job", 1)
    assert commit.commit(messages) == commit.commit(messages) == table.new_commit("job", 1).commit(messages)
    assert ids(store) == [1, 2, 3]


def test_rule_4_identifiers_out_of_order_are_done(store: MemoryStore, table: Table) -> None:
    """Identifiers rise per user: a smaller one was sent before."""
    fifth = table.new_commit("job", 5).commit(prepared(table, rows((3, "a"))))
    assert table.new_commit("job", 4).commit(prepared(table, rows((4, "a")))) == fifth
    assert table.new_commit("job", 6).commit(prepared(table, rows((5, "a")))) != fifth
    assert table.new_commit("job", 5).commit(prepared(table, rows((6, "a")))) == fifth
    assert ids(store) == [1, 2, 3, 5]


@pytest.mark.parametrize(("user", "identifier"), [("job", None), (None, 3), ("", 1)])
def test_rule_4_a_user_without_an_identifier_is_refused(table: Table, user: str | None, identifier: int | None) -> None:
    with pytest.raises(InvalidError, match="user and an identifier"):
        table.new_commit(user, identifier)


def test_a_commit_after_another_rewrote_a_file_is_a_conflict(store: MemoryStore, table: Table) -> None:
    (new,) = prepared(table, rows((3, "a")))
    table.new_commit("job", 1).commit([new])
    rewrite = replace(new, new_files=prepared(table, rows((30, "a")))[0].new_files, deleted_files=new.new_files)
    table.delete(where="id = 3")
    with pytest.raises(ConflictError, match=new.new_files[0].name):
        table.new_commit("job", 2).commit([rewrite])
    assert ids(store) == [1, 2]
    table.new_commit("job", 2).abort([rewrite])
    assert ids(store) == [1, 2]


def test_an_abort_removes_the_files(store: MemoryStore, table: Table) -> None:
    before = listing(store)
    messages = prepared(table, rows((3, "a"), (4, "c")))
    assert len(listing(store)) == len(before) + 2
    table.new_commit("job", 1).abort(messages)
    table.new_commit("job", 1).abort(messages)
    assert listing(store) == before


def test_an_abort_never_removes_committed_files(store: MemoryStore, table: Table) -> None:
    messages = prepared(table, rows((3, "a"), (4, "c")))
    table.new_commit("job", 1).commit(messages)
    table.new_commit("job", 1).abort(messages)
    assert ids(store) == [1, 2, 3, 4]


def test_an_abort_leaves_files_that_only_an_older_snapshot_names(store: MemoryStore, table: Table) -> None:
    """They were committed and then deleted: the older version still reads them."""
    messages = prepared(table, rows((3, "a")))
    table.new_commit("job", 1).commit(messages)
    table.write(rows((9, "z")), mode="overwrite")
    table.new_commit("job", 1).abort(messages)
    assert sorted(table.scan(version=2).to_arrow().column("id").to_pylist()) == [1, 2, 3]


def test_an_abort_of_a_part_that_was_committed_keeps_that_part(store: MemoryStore, table: Table) -> None:
    committed, other = prepared(table, rows((3, "a"))), prepared(table, rows((4, "a")))
    table.new_commit("job", 1).commit(committed)
    names = {file.name for message in (*committed, *other) for file in message.new_files}
    assert committed_files(home_on(store), [*committed, *other]) == {file.name for file in committed[0].new_files}
    table.new_commit("job", 2).abort([*committed, *other])
    left = {path.rsplit("/", 1)[-1] for path in listing(store)}
    assert names & left == {file.name for file in committed[0].new_files}
    assert ids(store) == [1, 2, 3]


def test_committed_files_of_a_new_table_are_none() -> None:
    store = MemoryStore()
    lake = lake_on(store)
    lake.create_database("d")
    table = lake.create_table(TABLE, [("id", "BIGINT"), ("p", "STRING")])
    assert committed_files(home_on(store), prepared(table, rows((1, "a")))) == set()
    assert committed_files(home_on(store), []) == set()


def test_a_writer_that_has_prepared_takes_no_more_rows(table: Table) -> None:
    write = table.new_write()
    write.write(rows((3, "a")))
    write.prepare_commit()
    with pytest.raises(InvalidError, match="prepared"):
        write.write(rows((4, "a")))


def test_a_writer_left_by_an_error_removes_its_files(store: MemoryStore, table: Table) -> None:
    before = listing(store)

    def write_too_much() -> None:
        with table.new_write() as write:
            write.write(rows((3, "a")))
            write.write(pa.table({"unknown": [1]}))

    with pytest.raises(InvalidError):
        write_too_much()
    assert listing(store) == before


def test_files_whose_messages_are_out_stay_whatever_happens_to_the_writer(store: MemoryStore, table: Table) -> None:
    def fail_after_the_commit() -> None:
        with table.new_write() as write:
            write.write(rows((3, "a")))
            table.new_commit().commit(write.prepare_commit())
            raise KeyError("elsewhere")

    with pytest.raises(KeyError):
        fail_after_the_commit()
    assert ids(store) == [1, 2, 3]


def test_an_abort_after_the_commit_removes_nothing(store: MemoryStore, table: Table) -> None:
    write = table.new_write()
    write.write(rows((3, "a")))
    table.new_commit().commit(write.prepare_commit())
    write.abort()
    assert ids(store) == [1, 2, 3]


def test_an_abort_before_the_commit_removes_the_files(store: MemoryStore, table: Table) -> None:
    before = listing(store)
    write = table.new_write()
    write.write(rows((3, "a")))
    write.prepare_commit()
    write.abort()
    assert listing(store) == before


def test_messages_are_prepared_once(table: Table) -> None:
    write = table.new_write()
    write.write(rows((3, "a")))
    write.prepare_commit()
    with pytest.raises(InvalidError, match="prepared its commit"):
        write.prepare_commit()


def test_a_write_that_failed_cannot_be_committed_in_part(store: MemoryStore, table: Table) -> None:
    write = table.new_write()
    with pytest.raises(InvalidError, match="unknown"):
        write.write([rows((3, "a")), pa.table({"unknown": [1]})])
    with pytest.raises(InvalidError, match="failed"):
        write.prepare_commit()
    write.abort()
    assert ids(store) == [1, 2]


def test_messages_without_an_identifier_are_not_committed_twice(store: MemoryStore, table: Table) -> None:
    messages = prepared(table, rows((3, "a")))
    commit = table.new_commit()
    commit.commit(messages)
    with pytest.raises(InvalidError, match="committed already"):
        commit.commit(messages)
    assert ids(store) == [1, 2, 3]


def test_messages_for_a_table_that_was_made_again_are_refused(store: MemoryStore, table: Table) -> None:
    messages = prepared(table, rows((3, "a")))
    lake = lake_on(store, "again")
    lake.drop_table(TABLE)
    new = lake.create_table(TABLE, [("id", "BIGINT"), ("p", "STRING")], partitioned_by=["p"])
    with pytest.raises(ConflictError, match="dropped and created again"):
        new.new_commit().commit(messages)
    assert new.scan().count() == 0


@pytest.mark.parametrize(
    ("named", "ignored", "made"), [(False, None, False), (True, None, True), (True, True, False), (False, False, True)]
)
def test_empty_commits(store: MemoryStore, table: Table, named: bool, ignored: bool | None, made: bool) -> None:
    """A named commit makes a snapshot even when it is empty, for that is how its repetition is recognised."""
    commit = table.new_commit("job", 1) if named else table.new_commit()
    if ignored is not None:
        commit = commit.ignore_empty(ignored)
    assert (commit.commit([]) is not None) is made
    assert ids(store) == [1, 2]


def test_an_overwrite_in_two_phases(store: MemoryStore, table: Table) -> None:
    table.new_commit("job", 1).overwrite({"p": "a"}).commit(prepared(table, rows((3, "a"))))
    assert ids(store) == [2, 3]
    table.new_commit("job", 2).overwrite(dynamic=True).commit(prepared(table, rows((4, "b"))))
    assert ids(store) == [3, 4]
    table.new_commit("job", 3).overwrite().commit([])
    assert ids(store) == []


def test_an_overwrite_of_none_is_refused(store: MemoryStore, table: Table) -> None:
    """To some it is the whole table, to some the partitions of the new files."""
    with pytest.raises(InvalidError, match=r"overwrite\(dynamic=True\)"):
        table.new_commit("job", 1).overwrite(None)
    assert table.new_commit("job", 1).overwrite({}).replaces == table.new_commit("job", 1).overwrite().replaces
    assert ids(store) == [1, 2]
    table.write(rows((7, "a")), mode="overwrite", partition=None)
    assert ids(store) == [7]


def test_row_ids_are_refused_by_name(table: Table) -> None:
    commit = table.new_commit("job", 1)
    assert commit.row_id_check_conflict(None) == commit
    with pytest.raises(InvalidError, match=r"row_id_check_conflict.*row-tracking\.enabled"):
        commit.row_id_check_conflict(0)


@pytest.mark.parametrize("twice_in_one", [True, False])
def test_files_are_added_once_where_a_commit_asks_for_the_look(
    store: MemoryStore, table: Table, twice_in_one: bool
) -> None:
    """Under another identifier the same messages are another commit, and only their files tell."""
    messages = prepared(table, rows((3, "a"), (4, "b")))
    if not twice_in_one:
        table.new_commit("job", 1).append_commit_check_conflict(True).commit(messages)
    again = table.new_commit("other", 1).append_commit_check_conflict(True)
    with pytest.raises(ConflictError, match="twice"):
        again.commit((*messages, *messages) if twice_in_one else messages)
    assert ids(store) == ([1, 2] if twice_in_one else [1, 2, 3, 4])
    again.commit(prepared(table, rows((5, "a"))))
    assert ids(store) == ([1, 2, 5] if twice_in_one else [1, 2, 3, 4, 5])


def test_the_look_is_repeated_when_another_writer_comes_first(store: MemoryStore, table: Table) -> None:
    """The same files are committed by somebody else between this commit's look and its snapshot."""
    messages = prepared(table, rows((3, "a")))
    hooked = HookedStore(store)
    ours = lake_on(hooked, "ours").table(TABLE)
    before = set(listing(store))
    hooked.when = lambda call, path: "/manifest/" in path and path not in before
    hooked.after = lambda: table.new_commit("other", 1).commit(messages)
    with pytest.raises(ConflictError, match="twice"):
        ours.new_commit("job", 1).append_commit_check_conflict(True).commit(messages)
    assert ids(store) == [1, 2, 3]


def test_an_overwrite_refuses_rows_of_another_partition(store: MemoryStore, table: Table) -> None:
    messages = prepared(table, rows((3, "b")))
    with pytest.raises(InvalidError, match="p=b"):
        table.new_commit("job", 1).overwrite({"p": "a"}).commit(messages)
    with pytest.raises(InvalidError, match="dynamic"):
        table.new_commit("job", 1).overwrite({"p": "a"}, dynamic=True)
    assert ids(store) == [1, 2]


def test_watermarks_never_go_back(table: Table) -> None:
    marks = [100, None, 50, 200]
    made = [table.new_commit("job", number).watermark(mark).commit([]) for number, mark in enumerate(marks)]
    assert [snapshot.watermark for snapshot in made if snapshot is not None] == [100, 100, 100, 200]


# ---------------------------------------------------------------- upkeep after the commit


def clocked(clock: MovingClock, key: tuple[str, ...], **options: str) -> Table:
    lake = Lake(MemoryStore(clock=clock), clock=clock)
    lake.create_database("d")
    chosen = {"bucket": "1"} if key else {}
    return lake.create_table(
        TABLE, [("id", "BIGINT NOT NULL"), ("p", "STRING")], primary_key=key, options=chosen | options
    )


@pytest.mark.parametrize("key", [(), ("id",)], ids=["append", "keyed"])
def test_commits_in_two_phases_compact_expire_and_tag(key: tuple[str, ...]) -> None:
    clock = MovingClock()
    options = {
        "snapshot.num-retained.min": "1",
        "snapshot.num-retained.max": "4",
        "snapshot.time-retained": "1 h",
        "tag.automatic-creation": "process-time",
        "tag.creation-period": "hourly",
    }
    table = clocked(clock, key, **options)
    kinds = set()
    for number in range(15):
        made = table.new_commit("job", number).commit(prepared(table, rows((number, "a"))))
        assert made is not None
        kinds.add(made.commit_kind)
        clock.move(minutes=30)
    assert CommitKind.COMPACT in kinds
    assert len(table.snapshots()) <= 4
    assert table.tag_names()
    assert len(table.files()) < 10
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == list(range(15))


@pytest.mark.parametrize("way", ["commit", "write", "off", "write-only"])
@pytest.mark.parametrize("key", [(), ("id",)], ids=["append", "keyed"])
def test_upkeep_follows_empty_commits_unless_told_otherwise(key: tuple[str, ...], way: str) -> None:
    clock = MovingClock()
    options = {"snapshot.num-retained.min": "1", "snapshot.time-retained": "1 d", "write-only": "false"}
    table = clocked(clock, key, **options)
    for number in range(3):
        table.write(rows((number, "a")))
    if way == "write-only":
        table.set_options({"write-only": "true"})
    clock.move(days=3)
    before = len(table.snapshots())
    assert before == 3
    if way == "write":
        assert table.write(rows()) is None
    else:
        assert table.new_commit().expire_for_empty_commit(way != "off").commit(()) is None
    assert len(table.snapshots()) == (1 if way in ("commit", "write") else before)
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == [0, 1, 2]
