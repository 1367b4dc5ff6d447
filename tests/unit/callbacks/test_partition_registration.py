"""The shipped registration of partitions: each once, however often it is called."""

from __future__ import annotations

import json

import pytest

from lakelet.callbacks.partition_registration import MarkerFiles, PartitionRegistration, RegisteredPartition
from lakelet.commit.callbacks.callback_files import base_files, delta_files
from lakelet.commit.callbacks.commit_callbacks import run_commit_callbacks
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.errors import InternalError, InvalidError
from lakelet.storage.memory import MemoryStore
from tests.crash.warehouse import home_on, lake_on

CALLBACK = "lakelet.callbacks.partition_registration.PartitionRegistration"
FOLDER = "d.db/t/callback/partitions"


class Listed:
    """A registry in memory."""

    def __init__(self) -> None:
        self.added: list[RegisteredPartition] = []

    def add_partition_if_absent(self, partition: RegisteredPartition) -> bool:
        self.added.append(partition)
        return True


def written(store: MemoryStore, rows: list[tuple[int, str | None, int]], **options: str) -> None:
    """A commit of rows, its callbacks called once more than the committer may have done."""
    lake = lake_on(store, str(len(rows)))
    if "d" not in lake.databases():
        lake.create_database("d")
        columns = [("id", "BIGINT"), ("dt", "STRING"), ("h", "INT")]
        lake.create_table("d.t", columns, partitioned_by=["dt", "h"], options=options)
    lake.table("d.t").write([{"id": id_, "dt": dt, "h": h} for id_, dt, h in rows])
    called(store)


def called(store: MemoryStore) -> None:
    home = home_on(store)
    snapshot = latest_snapshot(home)
    assert snapshot is not None
    run_commit_callbacks(home, latest_schema(home), snapshot)


def test_partitions_are_added_once() -> None:
    store = MemoryStore()
    written(store, [(1, "a/b", 1), (2, "a/b", 1), (3, None, 2)], **{"commit.callbacks": CALLBACK})
    markers = MarkerFiles(store, FOLDER)
    first = store.get(f"{FOLDER}/dt=a%2Fb/h=1/PARTITION")
    assert json.loads(first) == {"partition": {"dt": "a/b", "h": "1"}, "snapshotId": 1}
    null = json.loads(store.get(f"{FOLDER}/dt=__DEFAULT_PARTITION__/h=2/PARTITION"))
    assert null["partition"] == {"dt": None, "h": "2"}
    written(store, [(4, "a/b", 1), (5, "c", 1)])
    assert store.get(f"{FOLDER}/dt=a%2Fb/h=1/PARTITION") == first
    assert markers.partitions() == ["dt=__DEFAULT_PARTITION__/h=2", "dt=a%2Fb/h=1", "dt=c/h=1"]


def test_the_argument_is_a_folder_of_the_warehouse() -> None:
    store = MemoryStore()
    options = {"commit.callbacks": CALLBACK, f"commit.callback.{CALLBACK}.param": "/registry/t/"}
    written(store, [(1, "a", 1)], **options)
    assert MarkerFiles(store, "registry/t").partitions() == ["dt=a/h=1"]
    assert MarkerFiles(store, FOLDER).partitions() == []
    with pytest.raises(InvalidError, match=r"\.\."):
        PartitionRegistration("a/../b")


def test_only_partitions_that_files_were_added_to() -> None:
    store = MemoryStore()
    written(store, [(1, "a", 1), (2, "b", 1)])
    lake_on(store, "more").table("d.t").write([{"id": 3, "dt": "c", "h": 1}], mode="overwrite")
    home, registry = home_on(store), Listed()
    snapshot = latest_snapshot(home)
    assert snapshot is not None
    callback = PartitionRegistration(registry=registry)
    base, delta = base_files(home, snapshot), delta_files(home, snapshot)
    with pytest.raises(InternalError):
        callback.call(base, delta, snapshot.committed_as(), snapshot)
    callback.open(home, latest_schema(home))
    callback.call(base, delta, snapshot.committed_as(), snapshot)
    assert len(delta) == 3
    assert registry.added == [RegisteredPartition("dt=c/h=1", {"dt": "c", "h": "1"}, 2)]


def test_a_table_without_partitions_has_nothing_to_register() -> None:
    store = MemoryStore()
    lake = lake_on(store)
    lake.create_database("d")
    table = lake.create_table("d.t", [("id", "BIGINT")], options={"commit.callbacks": CALLBACK})
    table.write([{"id": 1}])
    called(store)
    assert MarkerFiles(store, FOLDER).partitions() == []
