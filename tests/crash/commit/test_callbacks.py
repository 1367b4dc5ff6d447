"""Crashes and faults around commit callbacks and statistics: every commit is called for, no commit is harmed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from lakelet.callbacks.partition_registration import MarkerFiles
from lakelet.commit.metadata.version_ids import snapshot_ids
from lakelet.errors import UnavailableError
from lakelet.model.snapshot import CommitKind, Snapshot
from lakelet.storage.decorated import DecoratedStore
from lakelet.storage.memory import MemoryStore
from lakelet.storage.store import ObjectStore
from lakelet.testing.instrumented_stores import CountingStore, CrashStore, SimulatedCrash, changes
from tests.crash.operations import rows
from tests.crash.power_cut import CRASHES
from tests.crash.warehouse import TABLE, check, copied, fingerprint, home_on, lake_on, listing

REGISTRATION = "lakelet.callbacks.partition_registration.PartitionRegistration"
LOOKING, PARTITIONS = f"{__name__}.Looking", "d.db/t/callback/partitions"


class Looking:
    """Reads everything that it is given, and notes the snapshots in order."""

    called: ClassVar[list[int]] = []

    def call(self, base_files: Any, delta_files: Any, identifier: Any, snapshot: Snapshot) -> None:
        list(base_files)
        list(delta_files)
        self.called.append(snapshot.id)


class FaultyStore(DecoratedStore):
    """Fails from one call on, for ever, wherever `when` holds."""

    when: Callable[[str, str], bool] = staticmethod(lambda call, path: False)

    def _around(self, call: str, path: str, action: Callable[[], Any]) -> Any:
        if self.when(call, path):
            raise UnavailableError(f"{path}: out of order")
        return action()


@pytest.fixture(autouse=True)
def clean() -> None:
    Looking.called.clear()


@pytest.fixture
def start() -> MemoryStore:
    store = MemoryStore()
    lake = lake_on(store, "start")
    lake.create_database("d")
    options = {"commit.callbacks": f"{LOOKING},{REGISTRATION}"}
    lake.create_table(TABLE, [("id", "BIGINT"), ("p", "STRING")], partitioned_by=["p"], options=options)
    lake.table(TABLE).write(rows((1, "a")))
    return store


def run(store: ObjectStore) -> Snapshot | None:
    return lake_on(store, "run").table(TABLE).write(rows((2, "b")), commit_user="job", commit_identifier=1)


def first_calls() -> list[int]:
    return list(dict.fromkeys(Looking.called))


def test_every_commit_calls_back(start: MemoryStore) -> None:
    assert Looking.called == [1]
    run(start)
    assert Looking.called == [1, 2]
    run(start)
    assert Looking.called == [1, 2]
    assert MarkerFiles(start, PARTITIONS).partitions() == ["p=a", "p=b"]
    lake_on(start, "delete").table(TABLE).delete(where="id = 1")
    assert Looking.called == [1, 2, 3]


def test_a_crash_at_any_call_leaves_no_commit_without_its_call(start: MemoryStore) -> None:
    counting = CountingStore(copied(start))
    run(counting)
    stood, seen = 0, set[int]()
    for call in range(1, counting.changing_calls + 1):
        for crash, effective in CRASHES:
            Looking.called[:] = [1]
            store = copied(start)
            with pytest.raises(SimulatedCrash):
                run(crash(store, crash_at=call, after=effective, only=changes))
            # A call that only reads leaves what the one before it left.
            if fingerprint(store) in seen:
                continue
            seen.add(fingerprint(store))
            stood += len(snapshot_ids(home_on(store))) == 2
            # Another writer comes along, and then the first one again.
            lake_on(store, "other").table(TABLE).write(rows((3, "c")))
            run(store)
            assert first_calls() == list(snapshot_ids(home_on(store))) == [1, 2, 3], f"change {call}"
            assert MarkerFiles(store, PARTITIONS).partitions() == ["p=a", "p=b", "p=c"]
            found = check(store)
            assert found is not None
            assert sorted(found) == [(1, "a"), (2, "b"), (3, "c")]
    # The snapshot, its hints, the partition's marker, two records.
    assert stood > 4


def test_a_repeated_write_finishes_the_calls_of_its_first_run(start: MemoryStore) -> None:
    counting = CountingStore(copied(start))
    run(counting)
    seen = set[int]()
    for call in range(1, counting.changing_calls + 1):
        Looking.called[:] = [1]
        store = copied(start)
        with pytest.raises(SimulatedCrash):
            run(CrashStore(store, crash_at=call, after=True, only=changes))
        if fingerprint(store) in seen:
            continue
        seen.add(fingerprint(store))
        run(store)
        assert first_calls() == [1, 2], f"change {call}"


@pytest.mark.parametrize("broken", ["get", "put", "put_if_absent"])
def test_a_store_that_fails_after_the_commit_does_not_fail_it(
    start: MemoryStore, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    faulty = FaultyStore(start)
    faulty.when = lambda call, path: call == broken and "/callback/" in path
    made = run(faulty)
    assert made is not None
    assert made.id == 2
    assert "snapshot 2" in caplog.text
    faulty.when = lambda call, path: False
    lake_on(faulty, "other").table(TABLE).write(rows((3, "c")))
    assert first_calls() == [1, 2, 3]
    assert MarkerFiles(start, PARTITIONS).partitions() == ["p=a", "p=b", "p=c"]


def test_a_crash_at_any_call_of_analyze(start: MemoryStore) -> None:
    counting = CountingStore(copied(start))
    lake_on(counting, "run").table(TABLE).analyze()
    seen = set[int]()
    for call in range(1, counting.changing_calls + 1):
        for crash, effective in CRASHES:
            store = copied(start)
            with pytest.raises(SimulatedCrash):
                lake_on(crash(store, crash_at=call, after=effective, only=changes), "run").table(TABLE).analyze()
            if fingerprint(store) in seen:
                continue
            seen.add(fingerprint(store))
            table = lake_on(store, "again").table(TABLE)
            before = table.statistics()
            assert check(store) == [(1, "a")]
            assert (before is not None) == (len(table.snapshots()) == 2)
            made = table.analyze()
            assert made is not None
            assert made.commit_kind is CommitKind.ANALYZE
            found = table.statistics()
            assert found is not None
            assert found.record_count == 1
            named = {
                f"d.db/t/statistics/{snapshot.statistics}" for snapshot in table.snapshots() if snapshot.statistics
            }
            files = {path for path in listing(store) if "/statistics/" in path}
            assert named <= files
            assert len(files - named) <= 1
