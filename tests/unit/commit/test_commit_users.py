"""The last commits of users whose snapshots have expired."""

import json

from lakelet.commit.commit_users import last_identifier, named_users, record_users
from lakelet.model.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore
from lakelet.storage.paths import TablePaths


def home() -> TableHome:
    return TableHome(MemoryStore(), TablePaths.of("d", "t"))


def snapshot(user: str, identifier: int) -> Snapshot:
    return Snapshot(1, 0, "b", "d", user, identifier, CommitKind.APPEND, 0, 0, 0)


def test_the_greatest_identifier_of_each_named_user() -> None:
    gone = [
        snapshot("a", 3),
        snapshot("a", 5),
        snapshot("a", 4),
        snapshot("b", 0),
        snapshot("c", BATCH_COMMIT_IDENTIFIER),
    ]
    assert named_users(gone) == {"a": 5, "b": 0}


def test_a_record_only_grows() -> None:
    table = home()
    assert last_identifier(table, "a") is None
    record_users(table, {"a": 5, "日本/..": 0})
    record_users(table, {"a": 4})
    assert (last_identifier(table, "a"), last_identifier(table, "日本/..")) == (5, 0)
    record_users(table, {"a": 7})
    assert last_identifier(table, "a") == 7
    assert last_identifier(table.on_branch("dev"), "a") is None


def test_older_records_go_and_the_user_can_be_read() -> None:
    table = home()
    for number in (1, 2, 3):
        record_users(table, {"a": number})
    (info,) = table.store.list(table.paths.commit_users_folder)
    assert json.loads(table.store.get(info.path)) == {"user": "a", "identifier": 3}


def test_of_two_records_the_greater_counts() -> None:
    """Two expiries at once: each read before the other wrote."""
    table = home()
    record_users(table, {"a": 9})
    folder = next(iter(table.store.list(table.paths.commit_users_folder))).path.rpartition("/")[0]
    table.store.put(f"{folder}/identifier-6", b"{}")
    table.store.put(f"{folder}/note", b"{}")
    assert last_identifier(table, "a") == 9
