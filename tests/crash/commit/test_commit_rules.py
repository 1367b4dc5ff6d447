"""The rules of the commit, by number: creates that were kept and not answered, late creates, repeated commits.

Rule 8 (Java and pypaimon may alternate with us, not commit at the same moment) is documented; rule 11 is held by
tests/unit/storage/test_probe.py.
"""

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lakelet.commit.metadata.snapshots import read_snapshot
from lakelet.errors import CommitUnknownError, ConflictError, InvalidError, UnavailableError
from lakelet.format.metadata.snapshot_json import encode_snapshot
from lakelet.model.snapshot import CommitKind
from lakelet.storage.decorated import DecoratedStore
from lakelet.storage.disk.local_store import LocalStore
from lakelet.storage.memory import MemoryStore
from lakelet.storage.paths import TablePaths
from lakelet.storage.store import ObjectStore
from lakelet.table import Table
from lakelet.testing.instrumented_stores import CountingStore, FailingStore
from tests.crash.operations import rows
from tests.crash.warehouse import TABLE, check, home_on, lake_on, listing

PATHS = TablePaths.of(*TABLE.split("."))


def new_table(store: ObjectStore, commits: int = 0, **arguments: object) -> Table:
    lake = lake_on(store, "new")
    lake.create_database("d")
    table = lake.create_table(TABLE, [("id", "BIGINT"), ("p", "STRING")], **arguments)  # type: ignore[arg-type]
    for number in range(1, commits + 1):
        table.write(rows((number, "a")))
    return table


def table_on(store: ObjectStore, ids: str = "other") -> Table:
    return lake_on(store, ids).table(TABLE)


def numbers_in(store: ObjectStore) -> list[object]:
    found = check(store)
    assert found is not None
    return [row[0] for row in found]


class Interfering(DecoratedStore):
    """Runs `action` once, just before the first call that `chosen` accepts."""

    def __init__(self, store: ObjectStore, chosen: Callable[[str, str], bool], action: Callable[[], object]) -> None:
        super().__init__(store)
        self._chosen = chosen
        self._action: Callable[[], object] | None = action

    def _around(self, call: str, path: str, action):  # type: ignore[no-untyped-def]
        if self._action is not None and self._chosen(call, path):
            once, self._action = self._action, None
            once()
        return action()


def creates_snapshot(call: str, path: str) -> bool:
    return call == "put_if_absent" and "/snapshot/" in path


def creates_schema(call: str, path: str) -> bool:
    return call == "put_if_absent" and "/schema/" in path


# ---------------------------------------------------------------- rule 1: the local create


def test_rule_1_a_local_create_is_never_seen_in_part(tmp_path: Path) -> None:
    """A reader that never stops looking sees the whole object or none."""
    store = LocalStore(tmp_path)
    data = os.urandom(1 << 20)
    stop, wrong = threading.Event(), []

    def look() -> None:
        while not stop.is_set():
            for info in store.list_folder("snapshot").files:
                if info.size != len(data) or store.get(info.path) != data:
                    wrong.append(info)

    reader = threading.Thread(target=look)
    reader.start()
    try:
        for number in range(20):
            assert store.put_if_absent(f"snapshot/snapshot-{number}", data)
    finally:
        stop.set()
        reader.join()
    assert wrong == []


def test_rule_1_names_java_can_see_are_final_ones(tmp_path: Path) -> None:
    """Java lists dot-less names only, and fails on one that is neither a snapshot nor a hint."""
    table = new_table(LocalStore(tmp_path, durable=False), 2)
    table.add_column("c", "INT")
    folder = tmp_path / PATHS.snapshot_folder
    assert sorted(os.listdir(folder)) == ["EARLIEST", "LATEST", "snapshot-1", "snapshot-2"]
    assert sorted(os.listdir(tmp_path / PATHS.schema_folder)) == ["schema-0", "schema-1"]


def test_rule_1_a_temporary_left_by_a_crash_is_no_snapshot(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, durable=False)
    table = new_table(store, 1)
    (tmp_path / PATHS.snapshot_folder / ".tmp-crashed").write_bytes(b'{"ver')
    table.write(rows((2, "a")))
    assert numbers_in(store) == [1, 2]


# ---------------------------------------------------------------- rule 2: the create that was kept and answered 503


@pytest.mark.parametrize("times", [1, 3])
def test_rule_2_a_snapshot_kept_and_answered_503_is_ours(times: int) -> None:
    store = MemoryStore()
    new_table(store, 1)
    failing = FailingStore(store, fail_at=1, after=True, only=creates_snapshot, times=times)
    made = table_on(failing).write(rows((2, "a")))
    assert made is not None
    assert made.id == 2
    assert numbers_in(store) == [1, 2]


class SendsTwice(DecoratedStore):
    """A client or proxy that sends the create of a snapshot again by itself, and so finds its own object."""

    def put_if_absent(self, path: str, data: bytes, *, deferred: bool = False) -> bool:
        created = super().put_if_absent(path, data)
        return super().put_if_absent(path, data) if "/snapshot/" in path else created


def test_rule_2_a_create_repeated_on_the_way_is_ours() -> None:
    store = MemoryStore()
    table = new_table(SendsTwice(store))
    made = table.write(rows((1, "a")))
    assert made is not None
    assert made.id == 1
    table.write(rows((2, "a")))
    assert numbers_in(store) == [1, 2]


def test_rule_2_a_snapshot_not_kept_and_answered_503_is_sent_again() -> None:
    store = MemoryStore()
    new_table(store, 1)
    made = table_on(FailingStore(store, fail_at=1, only=creates_snapshot, times=2)).write(rows((2, "a")))
    assert made is not None
    assert made.id == 2
    assert numbers_in(store) == [1, 2]


def test_rule_2_a_snapshot_lost_after_a_503_is_committed_once_more() -> None:
    """The first create was not kept, and another writer took the id before the second."""
    store = MemoryStore()
    new_table(store, 1)
    failing = FailingStore(store, fail_at=1, only=creates_snapshot)
    puts = 0

    def second(call: str, path: str) -> bool:
        nonlocal puts
        puts += creates_snapshot(call, path)
        return puts == 2

    made = table_on(Interfering(failing, second, lambda: table_on(store, "rival").write(rows((9, "z"))))).write(
        rows((2, "a"))
    )
    assert made is not None
    assert made.id == 3
    assert numbers_in(store) == [1, 2, 9]


@pytest.mark.parametrize("after", [False, True])
def test_rule_2_a_schema_answered_503_is_changed_once(after: bool) -> None:
    store = MemoryStore()
    new_table(store, 1)
    table_on(FailingStore(store, fail_at=1, after=after, only=creates_schema)).add_column("c", "INT")
    assert [schema.names for schema in table_on(store).schemas()] == [("id", "p"), ("id", "p", "c")]


def test_rule_2_a_first_schema_answered_503_makes_the_table() -> None:
    store = MemoryStore()
    new_table(FailingStore(store, fail_at=1, after=True, only=creates_schema))
    assert check(store) == []


def test_rule_2_an_outage_while_creating_leaves_every_file(caplog: pytest.LogCaptureFixture) -> None:
    """The outcome of the commit is unknown: it succeeded, and was found after the outage with nothing missing."""
    store = MemoryStore()
    new_table(store, 1)
    failing = FailingStore(
        store,
        fail_at=1,
        after=True,
        only=lambda call, path: "/snapshot/snapshot-2" in path and call != "head",
        times=10**9,
    )
    with pytest.raises(CommitUnknownError, match="snapshot-2"):
        table_on(failing).write(rows((2, "a")), commit_user="job", commit_identifier=1)
    assert numbers_in(store) == [1, 2]
    again = table_on(store, "again").write(rows((2, "a")), commit_user="job", commit_identifier=1)
    assert again is not None
    assert again.id == 2
    assert numbers_in(store) == [1, 2]


def test_rule_2_an_outage_before_anything_was_kept_leaves_every_file_too() -> None:
    store = MemoryStore()
    new_table(store, 1)
    before = listing(store)
    with pytest.raises(CommitUnknownError):
        table_on(FailingStore(store, fail_at=1, only=creates_snapshot, times=10**9)).write(rows((2, "a")))
    kinds = sorted(path.split("/")[2] for path in listing(store) if path not in before)
    assert kinds == ["bucket-0", "manifest", "manifest", "manifest"]
    assert numbers_in(store) == [1]


# ---------------------------------------------------------------- rule 3: the late create


def expire(store: ObjectStore, *numbers: int) -> None:
    store.delete([PATHS.snapshot(number) for number in numbers])


def live_rows(store: ObjectStore) -> list[object]:
    return sorted(table_on(store).scan().to_arrow().column("id").to_pylist())


def test_rule_3_a_create_after_expiry_is_no_commit_and_is_repeated() -> None:
    """A writer paused before its create; meanwhile its id was taken, and expired again."""
    store = MemoryStore()
    new_table(store, 2).set_options({"write-only": "true"})

    def meanwhile() -> None:
        for number in range(10, 15):
            table_on(store, f"rival-{number}").write(rows((number, "z")))
        expire(store, 1, 2, 3, 4)

    made = table_on(Interfering(store, creates_snapshot, meanwhile)).write(rows((3, "a")))
    assert made is not None
    assert made.id == 8
    assert store.head(PATHS.snapshot(3)) is None
    assert live_rows(store) == [1, 2, 3, 10, 11, 12, 13, 14]


def test_rule_3_a_late_create_of_the_first_snapshot_is_no_commit() -> None:
    store = MemoryStore()
    new_table(store)

    def meanwhile() -> None:
        for number in range(10, 13):
            table_on(store, f"rival-{number}").write(rows((number, "z")))
        expire(store, 1)

    made = table_on(Interfering(store, creates_snapshot, meanwhile)).write(rows((3, "a")))
    assert made is not None
    assert made.id == 4
    assert live_rows(store) == [3, 10, 11, 12]


def test_rule_3_two_late_creates_do_not_hold_each_other_up() -> None:
    """The stray of another late writer stands just below ours: ids on to the newest must be without gaps as well."""
    store = MemoryStore()
    new_table(store, 3).set_options({"write-only": "true"})
    stray = store.get(PATHS.snapshot(3))

    def meanwhile() -> None:
        for number in range(10, 15):
            table_on(store, f"rival-{number}").write(rows((number, "z")))
        expire(store, 1, 2, 3, 4, 5)
        store.put(PATHS.snapshot(3), stray)

    made = table_on(Interfering(store, creates_snapshot, meanwhile)).write(rows((4, "a")))
    assert made is not None
    assert made.id == 9
    assert store.head(PATHS.snapshot(4)) is None
    assert live_rows(store) == [1, 2, 3, 4, 10, 11, 12, 13, 14]


def test_rule_3_a_create_after_rollback_is_no_commit_and_is_repeated() -> None:
    store = MemoryStore()
    new_table(store, 4)
    made = table_on(Interfering(store, creates_snapshot, lambda: expire(store, 4, 3))).write(rows((5, "a")))
    assert made is not None
    assert made.id == 3
    assert numbers_in(store) == [1, 2, 5]


def test_rule_3_a_newer_hint_that_is_wrong_does_not_undo_a_commit() -> None:
    store = MemoryStore()
    new_table(store, 2)
    store.put(PATHS.latest_hint, b"900")
    made = table_on(store).write(rows((3, "a")))
    assert made is not None
    assert made.id == 3
    assert numbers_in(store) == [1, 2, 3]


# ---------------------------------------------------------------- rule 4: idempotence


def test_rule_4_a_repeated_write_is_applied_once_and_writes_nothing() -> None:
    store = MemoryStore()
    table = new_table(store)
    first = table.write(rows((1, "a")), commit_user="job", commit_identifier=5)
    table.write(rows((2, "a")))
    counting = CountingStore(store)
    again = table_on(counting).write(rows((1, "a")), commit_user="job", commit_identifier=5)
    assert first == again
    assert not {"put", "put_if_absent", "open_output", "delete"} & set(counting.counts())
    assert numbers_in(store) == [1, 2]


def test_rule_4_identifiers_at_or_below_the_last_are_done() -> None:
    store = MemoryStore()
    table = new_table(store)
    made = table.write(rows((1, "a")), commit_user="job", commit_identifier=5)
    assert table.write(rows((2, "a")), commit_user="job", commit_identifier=3) == made
    assert table.write(rows((3, "a")), commit_user="other", commit_identifier=3) != made
    assert table.write(rows((4, "a")), commit_user="job", commit_identifier=6) is not None
    assert table.write(rows((5, "a")), commit_user="job", commit_identifier=5) == made
    assert numbers_in(store) == [1, 3, 4]


def test_rule_4_a_compaction_under_the_same_identifier_is_not_the_write() -> None:
    """An engine compacts under an identifier before it commits rows under it."""
    store = MemoryStore()
    table = new_table(store, 1)
    last = read_snapshot(home_on(store), 1)
    compaction = replace(
        last, id=2, commit_user="job", commit_identifier=5, commit_kind=CommitKind.COMPACT, delta_record_count=0
    )
    empty = table.new_commit().ignore_empty(False).commit([])
    assert empty is not None
    store.put(
        PATHS.snapshot(2),
        encode_snapshot(
            replace(
                empty,
                **{name: getattr(compaction, name) for name in ("commit_user", "commit_identifier", "commit_kind")},
            )
        ),
    )
    made = table.write(rows((2, "a")), commit_user="job", commit_identifier=5)
    assert made is not None
    assert made.id == 3
    assert numbers_in(store) == [1, 2]


@pytest.mark.parametrize(("user", "identifier"), [("job", None), (None, 5), ("", 5), ("job", -1), ("job", 2**63 - 1)])
def test_rule_4_a_user_without_an_identifier_is_refused(user: str | None, identifier: int | None) -> None:
    store = MemoryStore()
    table = new_table(store, 1)
    before = listing(store)
    with pytest.raises(InvalidError):
        table.write(rows((2, "a")), commit_user=user, commit_identifier=identifier)
    assert listing(store) == before


def test_rule_4_a_repeated_delete_is_applied_once() -> None:
    store = MemoryStore()
    table = new_table(store, 2)
    made = table.delete(where="id = 1", commit_user="job", commit_identifier=5)
    table.write(rows((1, "b")))
    assert table.delete(where="id = 1", commit_user="job", commit_identifier=5) == made
    assert numbers_in(store) == [1, 2]


# ---------------------------------------------------------------- rules 9 and 10


def test_rule_9_old_files_must_still_be_there() -> None:
    store = MemoryStore()
    table = new_table(store, 1)
    write = table.new_write()
    write.write(rows((2, "a")))
    (message,) = write.prepare_commit()
    old = replace(
        message,
        new_files=tuple(
            replace(file, creation_ms=(file.creation_ms or 0) - 13 * 3_600_000) for file in message.new_files
        ),
    )
    store.delete([f"{PATHS.root}/bucket-0/{file.name}" for file in old.new_files])
    with pytest.raises(ConflictError, match="has been removed since"):
        table.new_commit("job", 1).commit([old])
    assert numbers_in(store) == [1]


def test_rule_9_old_files_that_are_there_are_committed() -> None:
    store = MemoryStore()
    table = new_table(store, 1)
    write = table.new_write()
    write.write(rows((2, "a")))
    (message,) = write.prepare_commit()
    old = replace(
        message,
        new_files=tuple(
            replace(file, creation_ms=(file.creation_ms or 0) - 13 * 3_600_000) for file in message.new_files
        ),
    )
    assert table.new_commit("job", 1).commit([old]) is not None
    assert numbers_in(store) == [1, 2]


def test_rule_10_an_id_that_a_rollback_freed_is_read_anew() -> None:
    """The same table object sees the new snapshot of an id it has read before."""
    store = MemoryStore()
    table = new_table(store, 3)
    first = table.latest_snapshot()
    assert table.scan().count() == 3
    expire(store, 3)
    table_on(store).write(rows((30, "a"), (31, "b")))
    second = table.latest_snapshot()
    assert first is not None
    assert second is not None
    assert first.id == second.id == 3
    assert first.delta_manifest_list != second.delta_manifest_list
    assert live_rows(store) == sorted(table.scan().to_arrow().column("id").to_pylist()) == [1, 2, 30, 31]


def test_rule_10_write_returns_the_snapshot_it_made() -> None:
    store = MemoryStore()
    table = new_table(store, 1)
    rival = Interfering(store, creates_snapshot, lambda: table_on(store, "rival").write(rows((9, "z"))))
    made = table_on(rival).write(rows((2, "a")), properties={"job": "7"}, watermark=5)
    assert made == table.latest_snapshot()
    assert made is not None
    assert (made.id, made.properties, made.watermark) == (3, {"job": "7"}, 5)


# ---------------------------------------------------------------- losing, and giving up


def test_a_lost_attempt_leaves_no_manifest_behind() -> None:
    store = MemoryStore()
    table = new_table(store, 1)
    rival = Interfering(store, creates_snapshot, lambda: table_on(store, "rival").write(rows((9, "z"))))
    table_on(rival).write(rows((2, "a")))
    written = {path.rsplit("/", 1)[-1] for path in listing(store) if "/manifest/" in path}
    # Three commits, each with two lists and one manifest.
    assert len(written) == 9
    assert table.scan().count() == 3


def test_giving_up_removes_everything_of_the_write() -> None:
    store = MemoryStore()
    new_table(store, 1, options={"commit.max-retries": 2})

    class Beaten(DecoratedStore):
        def put_if_absent(self, path: str, data: bytes, *, deferred: bool = False) -> bool:
            table_on(store, f"rival-{len(listing(store))}").write(rows((9, "z")))
            return super().put_if_absent(path, data)

    with pytest.raises(ConflictError, match="gave up after 3 attempts"):
        table_on(Beaten(store), "loser").write(rows((2, "a")))
    assert [path for path in listing(store) if "loser" in path] == []
    assert numbers_in(store) == [1, 9, 9, 9]


def test_an_unavailable_store_before_the_create_removes_everything_of_the_write() -> None:
    store = MemoryStore()
    new_table(store, 1)
    failing = FailingStore(store, fail_at=1, only=lambda call, path: call == "put" and "manifest-list" in path)
    with pytest.raises(UnavailableError):
        table_on(failing, "loser").write(rows((2, "a")))
    assert [path for path in listing(store) if "loser" in path] == []
