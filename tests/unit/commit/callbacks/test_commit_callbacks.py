"""Commit callbacks: every commit, in order, at least once, whatever fails."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from lakelet.commit import committer
from lakelet.commit.callbacks import commit_callbacks
from lakelet.commit.callbacks.callback_record import Settled, encode_record, extended, read_record, write_record
from lakelet.commit.callbacks.commit_callbacks import run_commit_callbacks
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.errors import ConflictError
from lakelet.model.manifest import EntryKind
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import CommitKind, Snapshot
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from lakelet.testing.instrumented_stores import CountingStore, SimulatedCrash
from tests.crash.operations import rows
from tests.crash.warehouse import TABLE, home_on, lake_on, listing

SEEN = f"{__name__}.Seen"
OTHER = f"{__name__}:Other"
RECORD = f"d.db/t/callback/commit/{SEEN}"


class Seen:
    """Notes what it is called for, and fails on chosen snapshots."""

    calls: ClassVar[list[tuple[str, int]]] = []
    events: ClassVar[list[str]] = []
    failing: ClassVar[set[int]] = set()
    arguments: ClassVar[list[str | None]] = []
    last: ClassVar[dict[str, Any]] = {}

    def __init__(self, argument: str | None = None) -> None:
        self.arguments.append(argument)

    def open(self, home: object, schema: TableSchema) -> None:
        self.events.append("open")

    def call(self, base_files: Any, delta_files: Any, identifier: Any, snapshot: Snapshot) -> None:
        if snapshot.id in self.failing:
            raise OSError("the other side is down")
        self.calls.append((type(self).__name__, snapshot.id))
        self.last.update(base=base_files, delta=delta_files, identifier=identifier)

    def close(self) -> None:
        self.events.append("close")


class Other(Seen):
    """Another class, with a record of its own."""


class Plain:
    """Only what a callback must have."""

    def call(self, base_files: Any, delta_files: Any, identifier: Any, snapshot: Snapshot) -> None:
        Seen.calls.append(("Plain", snapshot.id))


class Writing(Seen):
    """Writes to its own table at every call."""

    def call(self, base_files: Any, delta_files: Any, identifier: Any, snapshot: Snapshot) -> None:
        super().call(base_files, delta_files, identifier, snapshot)
        store = self.last["store"]
        run(store, write(store, 100 + snapshot.id))


class Mute:
    """No callback."""


@pytest.fixture(autouse=True)
def clean() -> None:
    for kept in (Seen.calls, Seen.events, Seen.failing, Seen.arguments, Seen.last):
        kept.clear()


@pytest.fixture(autouse=True)
def silent_writers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers die right after their commits: callbacks are run by the tests."""
    monkeypatch.setattr(committer, "run_commit_callbacks", lambda *_: None, raising=False)


def table_with(store: MemoryStore, **options: str) -> Table:
    lake = lake_on(store)
    lake.create_database("d")
    chosen = {"write-only": "true"} | options
    return lake.create_table(TABLE, [("id", "BIGINT"), ("p", "STRING")], partitioned_by=["p"], options=chosen)


def write(store: MemoryStore, number: int) -> Snapshot:
    made = lake_on(store, f"w{number}").table(TABLE).write(rows((number, "a")))
    assert made is not None
    return made


def run(store: Any, snapshot: Snapshot | None = None) -> None:
    home = home_on(store)
    chosen = snapshot or latest_snapshot(home)
    assert chosen is not None
    run_commit_callbacks(home, latest_schema(home), chosen)


def called(name: str = "Seen") -> list[int]:
    return [number for who, number in Seen.calls if who == name]


def expire(store: MemoryStore, *numbers: int) -> None:
    store.delete([f"d.db/t/snapshot/snapshot-{number}" for number in numbers])


def test_a_callback_learns_of_every_commit_in_order() -> None:
    store = MemoryStore()
    table_with(store, **{"commit.callbacks": SEEN})
    for number in (1, 2, 3):
        run(store, write(store, number))
    assert called() == [1, 2, 3]
    assert Seen.events == ["open", "close"] * 3
    assert Seen.arguments == [None] * 3


def test_what_a_callback_is_given() -> None:
    store = MemoryStore()
    table_with(store, **{"commit.callbacks": SEEN})
    write(store, 1)
    made = write(store, 2)
    run(store)
    base, delta = Seen.last["base"], Seen.last["delta"]
    assert Seen.last["identifier"] == (made.commit_user, made.commit_identifier, CommitKind.APPEND)
    assert (len(base), len(delta)) == (1, 1)
    assert delta[0].kind is EntryKind.ADD
    assert {entry.file.name for entry in base} | {entry.file.name for entry in delta} == {
        file.name for _, file in lake_on(store).table(TABLE).files()
    }
    assert delta.columns(["_PARTITION"]).to_pydict() == {"_PARTITION": [delta[0].partition]}
    assert base[:1] == list(base)


def test_files_are_read_only_when_a_callback_looks() -> None:
    store = MemoryStore()
    table_with(store, **{"commit.callbacks": f"{__name__}.Plain"})
    made = write(store, 1)
    counting = CountingStore(store)
    run(counting, made)
    assert called("Plain") == [1]
    assert not [path for _, path in counting.log if "/manifest/" in path]


def test_a_table_without_callbacks_pays_nothing() -> None:
    store = MemoryStore()
    table_with(store)
    made = write(store, 1)
    home = home_on(CountingStore(store))
    run_commit_callbacks(home, latest_schema(home_on(store)), made)
    assert isinstance(home.store, CountingStore)
    assert home.store.calls == 0


def test_a_callback_is_made_with_its_argument() -> None:
    store = MemoryStore()
    table_with(store, **{"commit.callbacks": f"{OTHER},", f"commit.callback.{OTHER}.param": "x=1"})
    run(store, write(store, 1))
    lake_on(store).table(TABLE).set_options({f"commit.callback.{OTHER.replace(':', '.')}.param": "y"})
    lake_on(store).table(TABLE).reset_options([f"commit.callback.{OTHER}.param"])
    run(store, write(store, 2))
    assert Seen.arguments == ["x=1", "y"]
    assert called("Other") == [1, 2]


def test_commits_whose_writers_died_are_called_for_with_the_next_one() -> None:
    store = MemoryStore()
    table_with(store, **{"commit.callbacks": SEEN})
    for number in (1, 2, 3):
        write(store, number)
    run(store)
    assert called() == [1, 2, 3]
    write(store, 4)
    write(store, 5)
    run(store)
    assert called() == [1, 2, 3, 4, 5]


def test_a_long_way_back_is_noted_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_callbacks, "_NOTED_EVERY", 2)
    store = MemoryStore()
    table_with(store, **{"commit.callbacks": SEEN})
    for number in range(1, 8):
        write(store, number)
    # What is before the first snapshot is settled too, so that the record is written after every other call.
    puts = 0

    def counted(path: str, data: bytes) -> None:
        nonlocal puts
        puts += path == RECORD
        if puts == 4:
            raise SimulatedCrash

    monkeypatch.setattr(store, "put", lambda path, data, put=store.put: (counted(path, data), put(path, data)))
    with pytest.raises(SimulatedCrash):
        run(store)
    assert called() == [1, 2, 3, 4, 5, 6, 7]
    monkeypatch.undo()
    run(store)
    assert called() == [1, 2, 3, 4, 5, 6, 7, 6, 7]


def test_a_commit_found_done_is_not_called_for_again() -> None:
    store = MemoryStore()
    table_with(store, **{"commit.callbacks": SEEN})
    first = write(store, 1)
    run(store, write(store, 2))
    run(store, first)
    assert called() == [1, 2]


def test_a_failing_callback_is_reported_and_called_again(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    table_with(store, **{"commit.callbacks": f"{SEEN},{OTHER}"})
    run(store, write(store, 1))
    Seen.failing.add(2)
    with caplog.at_level(logging.WARNING):
        run(store, write(store, 2))
        run(store, write(store, 3))
    assert called() == [1]
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 4
    assert SEEN in caplog.text
    assert "snapshot 2" in caplog.text
    assert "the other side is down" in caplog.text
    assert Seen.events.count("open") == Seen.events.count("close")
    Seen.failing.clear()
    run(store, write(store, 4))
    assert called() == called("Other") == [1, 2, 3, 4]


def test_one_failing_callback_does_not_hold_up_another() -> None:
    store = MemoryStore()
    table_with(store, **{"commit.callbacks": f"{SEEN},{__name__}.Plain"})
    Seen.failing.add(1)
    run(store, write(store, 1))
    assert (called(), called("Plain")) == ([], [1])


def test_a_callback_that_never_worked_does_not_make_commits_look_far_back() -> None:
    store = MemoryStore()
    table_with(store, **{"commit.callbacks": SEEN})
    Seen.failing.add(1)
    for number in range(1, 8):
        write(store, number)
    run(store)
    counting = CountingStore(store)
    run(counting, write(store, 8))
    assert len([path for _, path in counting.log if "snapshot-" in path]) <= 2


def test_a_callback_named_later_is_not_owed_earlier_commits() -> None:
    store = MemoryStore()
    table = table_with(store)
    write(store, 1)
    write(store, 2)
    table.set_options({"commit.callbacks": SEEN})
    write(store, 3)
    run(store, write(store, 4))
    assert called() == [3, 4]
    table.reset_options(["commit.callbacks"])
    write(store, 5)
    table.set_options({"commit.callbacks": SEEN})
    run(store, write(store, 6))
    assert called() == [3, 4, 6]


def test_expired_snapshots_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    table_with(store, **{"commit.callbacks": SEEN})
    run(store, write(store, 1))
    for number in (2, 3, 4):
        write(store, number)
    expire(store, 1, 2, 3)
    run(store, write(store, 5))
    assert called() == [1, 4, 5]
    assert "snapshots 2 to 3" in caplog.text
    caplog.clear()
    run(store, write(store, 6))
    assert not caplog.records


def test_expired_snapshots_are_reported_once_where_there_is_no_record(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    table_with(store, **{"commit.callbacks": SEEN})
    for number in (1, 2, 3):
        write(store, number)
    expire(store, 1)
    Seen.failing.add(2)
    run(store)
    run(store)
    assert caplog.text.count("snapshots 1 to 1") == 1
    Seen.failing.clear()
    run(store)
    assert called() == [2, 3]


def test_a_snapshot_expired_while_its_callback_reads_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    table_with(store, **{"commit.callbacks": SEEN})
    first = write(store, 1)
    Seen.failing.add(1)
    write(store, 2)
    expire(store, 1)
    store.delete([f"d.db/t/manifest/{first.delta_manifest_list}"])
    run(store, first)
    assert "snapshots 1 to 1" in caplog.text
    run(store)
    assert called() == [2]


def test_snapshots_made_after_a_rollback_are_called_for() -> None:
    store = MemoryStore()
    table_with(store, **{"commit.callbacks": SEEN})
    for number in (1, 2, 3, 4):
        run(store, write(store, number))
    expire(store, 4, 3)
    store.put("d.db/t/snapshot/LATEST", b"2")
    write(store, 13)
    Seen.calls.clear()
    run(store, write(store, 14))
    assert called() == [3, 4]
    expire(store, 4, 3, 2)
    store.put("d.db/t/snapshot/LATEST", b"1")
    run(store, write(store, 22))
    assert called() == [3, 4, 2]


def test_two_writers_at_once_may_repeat_but_never_skip() -> None:
    store = MemoryStore()
    table_with(store, **{"commit.callbacks": SEEN})
    run(store, write(store, 1))
    before = store.get(RECORD)
    second, third = write(store, 2), write(store, 3)
    run(store, third)
    # The slower writer read the record before the faster one wrote it, and writes its own after.
    store.put(RECORD, before)
    run(store, second)
    run(store, write(store, 4))
    assert called() == [1, 2, 3, 2, 3, 4]


def test_a_callback_that_writes_to_its_own_table_does_not_go_round_for_ever() -> None:
    store = MemoryStore()
    Seen.last["store"] = store
    table_with(store, **{"commit.callbacks": f"{__name__}.Writing"})
    run(store, write(store, 1))
    assert called("Writing") == [1]
    assert lake_on(store).table(TABLE).scan().count() == 2
    run(store, write(store, 2))
    assert called("Writing") == [1, 2, 3]


def test_branches_have_records_of_their_own(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    table_with(store, **{"commit.callbacks": SEEN})
    run(store, write(store, 1))
    run(store, write(store, 2))
    home = home_on(store).on_branch("b")
    for kind, number in (("schema", 0), ("snapshot", 2)):
        store.copy(f"d.db/t/{kind}/{kind}-{number}", f"{home.paths.branch_root}/{kind}/{kind}-{number}")
    snapshot = latest_snapshot(home)
    assert snapshot is not None
    run_commit_callbacks(home, latest_schema(home), snapshot)
    assert called() == [1, 2, 2]
    assert not caplog.records
    assert f"d.db/t/branch/branch-b/callback/commit/{SEEN}" in listing(store)


@pytest.mark.parametrize(
    "name", ["no.such.module.Class", f"{__name__}.Absent", f"{__name__}.Mute", "org.apache.Hook", "x"]
)
def test_a_class_that_cannot_be_used_is_a_warning_at_the_commit(name: str, caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    table_with(store)
    made = write(store, 1)
    home = home_on(store)
    stored = replace(latest_schema(home), options={"commit.callbacks": f"{name},{SEEN}"})
    run_commit_callbacks(home, stored, made)
    assert name in caplog.text
    assert called() == [1]


@pytest.mark.parametrize(
    "data", [b"", b"{}", b'{"version": 2, "settled": []}', b'{"version": 1, "settled": [7]}', b"[1]"]
)
def test_a_damaged_record_means_calling_again(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    table_with(store, **{"commit.callbacks": SEEN})
    run(store, write(store, 1))
    store.put(RECORD, data)
    run(store, write(store, 2))
    assert called() == [1, 1, 2]
    assert "no record of a callback" in caplog.text


def test_records_are_bounded_and_read_as_written() -> None:
    store = MemoryStore()
    home = home_on(store)
    record = extended((), [Settled(number, f"list-{number}") for number in range(200)])
    assert len(record) < 100
    write_record(home, "a.B", record)
    assert read_record(home, "a.B") == record
    assert extended(record, []) == record
    assert extended(record, [Settled(198, "new")])[-2:] == (Settled(197, "list-197"), Settled(198, "new"))
    assert encode_record((Settled(1, "l"),)) == (
        b'{\n "version": 1,\n "settled": [\n  {\n   "snapshotId": 1,\n   "deltaManifestList": "l"\n  }\n ]\n}'
    )


class Raising:
    """Raises what a test says, where it says."""

    raised: ClassVar[BaseException] = OSError()
    place: ClassVar[str] = ""

    def __init__(self) -> None:
        self._raise("init")

    def open(self, home: object, schema: TableSchema) -> None:
        self._raise("open")

    def call(self, base_files: Any, delta_files: Any, identifier: Any, snapshot: Snapshot) -> None:
        self._raise("call")

    def close(self) -> None:
        self._raise("close")

    def _raise(self, place: str) -> None:
        if place == self.place:
            raise self.raised


@pytest.mark.parametrize("place", ["init", "open", "call", "close"])
@pytest.mark.parametrize(
    "raised", [OSError("x"), ConflictError("x"), SystemExit(3), KeyboardInterrupt(), GeneratorExit()]
)
def test_whatever_a_callback_raises_the_commit_stands(
    place: str, raised: BaseException, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(committer, "run_commit_callbacks", run_commit_callbacks, raising=False)
    monkeypatch.setattr(Raising, "raised", raised)
    monkeypatch.setattr(Raising, "place", place)
    store = MemoryStore()
    table_with(store, **{"commit.callbacks": f"{__name__}.Raising,{SEEN}"})
    if isinstance(raised, (Exception, SystemExit)):
        write(store, 1)
        assert Seen.calls == [("Seen", 1)]
    else:
        with pytest.raises(type(raised)):
            write(store, 1)
    assert f"commit callback {__name__}.Raising" in caplog.text
    assert type(raised).__name__ in caplog.text
    assert lake_on(store).table(TABLE).scan().count() == 1
