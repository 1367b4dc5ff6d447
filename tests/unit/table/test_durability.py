"""When a write waits for the disk: counted by the fsyncs it makes on a local store, never by time."""

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lakelet
from lakelet.commit.metadata.manifests import live_entries, snapshot_manifests
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.format.partition_folders import PartitionFolders
from lakelet.storage.disk.local_store import LocalStore
from lakelet.table import Table

LINK = "link"
KINDS: dict[str, dict[str, object]] = {
    "append": {},
    "partitioned": {"partitioned_by": ["p"]},
    "orc": {"options": {"file.format": "orc"}},
    "avro": {"options": {"file.format": "avro"}},
    "json manifests": {"options": {"manifest.format": "json"}},
    "fixed buckets": {"primary_key": ["id"], "options": {"bucket": "2"}},
    "dynamic buckets": {"primary_key": ["id"]},
    "over all partitions": {"primary_key": ["id"], "partitioned_by": ["p"]},
    "postponed": {"primary_key": ["id"], "options": {"bucket": "-2"}},
    "vectors": {"primary_key": ["id"], "options": {"bucket": "1", "deletion-vectors.enabled": "true"}},
}


class Disk:
    """The fsyncs and links of this process, in their order, by path from the warehouse."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.seen: list[str] = []
        real_fsync, real_link = os.fsync, os.link

        def fsync(descriptor: int) -> None:
            self.seen.append(os.path.relpath(os.readlink(f"/proc/self/fd/{descriptor}"), root))
            real_fsync(descriptor)

        def link(source: str, target: str, **options: bool) -> None:
            self.seen.append(f"{LINK} {os.path.relpath(target, root)}")
            real_link(source, target, **options)

        monkeypatch.setattr(os, "fsync", fsync)
        monkeypatch.setattr(os, "link", link)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Disk:
    return Disk(monkeypatch, tmp_path)


@pytest.fixture
def lake(tmp_path: Path) -> lakelet.Lake:
    lake = lakelet.connect(str(tmp_path))
    lake.create_database("d")
    return lake


def make(lake: lakelet.Lake, kind: str) -> Table:
    columns = [("id", "BIGINT NOT NULL"), ("p", "STRING NOT NULL"), ("v", "DOUBLE")]
    return lake.create_table("d.t", columns, **KINDS[kind])  # type: ignore[arg-type]


def rows(*ids: int) -> pa.Table:
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "p": [f"p{number % 2}" for number in ids], "v": [0.5 for _ in ids]}
    )


def named_files(table: Table) -> set[str]:
    """Every file that the newest snapshot names."""
    home, snapshot = table.home, latest_snapshot(table.home)
    assert snapshot is not None
    manifests = snapshot_manifests(home, snapshot)
    lists = [snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.index_manifest]
    found = {home.paths.manifest(name) for name in (*lists, *(one.name for one in manifests)) if name is not None}
    folders = PartitionFolders(home.paths, table.schema)
    for entry in live_entries(home, manifests).to_pylist():
        found.add(f"{folders.bucket_folder(entry['_PARTITION'], entry['_BUCKET'])}/{entry['_FILE_NAME']}")
    return found


def check_order(calls: list[str], table: Table, before: set[str]) -> None:
    """All files that the snapshots name were synced with their folders before these were linked."""
    snapshots = [number for number, call in enumerate(calls) if call.startswith(f"{LINK} d.db/t/snapshot/")]
    assert snapshots
    synced = calls[: snapshots[-1]]
    new = named_files(table) - before
    assert new <= set(synced)
    assert {path.rsplit("/", 1)[0] for path in new} <= set(synced)
    assert calls[-1] == "d.db/t/snapshot", "something waits for the disk after the snapshot is there"
    assert not any(
        path.endswith(("LATEST", "EARLIEST")) or ".tmp-" in path for path in synced if "/snapshot/" not in path
    )
    files = [path for path in calls if path in new]
    assert len(files) == len(set(files)), "a file was synced twice"


@pytest.mark.parametrize("kind", KINDS)
def test_a_write_syncs_every_file_before_its_snapshot(lake: lakelet.Lake, disk: Disk, kind: str) -> None:
    table = make(lake, kind)
    for ids in ((1, 2), (2, 3), (4,)):
        before = named_files(table) if latest_snapshot(table.home) is not None else set()
        disk.seen.clear()
        table.write(rows(*ids))
        check_order(disk.seen, table, before)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.delete(where="id = 2"),
        lambda table: table.write(rows(7), mode="overwrite"),
        lambda table: table.compact(full=True),
        lambda table: table.new_commit().commit(prepared(table, rows(8))),
    ],
    ids=["delete", "overwrite", "compact", "two phases"],
)
@pytest.mark.parametrize("kind", ["append", "fixed buckets", "dynamic buckets", "vectors"])
def test_a_change_syncs_every_file_before_its_snapshot(
    lake: lakelet.Lake, disk: Disk, kind: str, change: Callable[[Table], object]
) -> None:
    table = make(lake, kind)
    for number in range(3):
        table.write(rows(number, number + 1))
    before = named_files(table)
    disk.seen.clear()
    change(table)
    if disk.seen:
        check_order(disk.seen, table, before)


def prepared(table: Table, data: pa.Table) -> list[object]:
    write = table.new_write()
    write.write(data)
    return list(pickle.loads(pickle.dumps(write.prepare_commit())))


@pytest.mark.parametrize("kind", KINDS)
def test_prepared_files_are_durable_before_the_messages_are_handed_out(
    lake: lakelet.Lake, disk: Disk, kind: str, tmp_path: Path
) -> None:
    table = make(lake, kind)
    there = set(tmp_path.rglob("*"))
    disk.seen.clear()
    prepared(table, rows(1, 2, 3))
    new = {os.path.relpath(path, tmp_path) for path in set(tmp_path.rglob("*")) - there if path.is_file()}
    assert new
    assert new <= set(disk.seen)
    folders = {os.path.dirname(path) for path in new}
    assert folders | {os.path.dirname(folder) for folder in folders} <= set(disk.seen)
    store = table.home.store
    assert isinstance(store, LocalStore)
    assert not any(store._unsynced)


@pytest.mark.parametrize(
    ("kind", "most"), [("append", 8), ("partitioned", 8), ("fixed buckets", 8), ("dynamic buckets", 11)]
)
def test_a_small_write_makes_few_fsyncs(lake: lakelet.Lake, disk: Disk, kind: str, most: int) -> None:
    """A data file, a manifest, two manifest lists, a snapshot, and the three folders they are in."""
    table = make(lake, kind)
    for number in range(2):
        table.write(rows(2 * number))
    disk.seen.clear()
    table.write(rows(4))
    assert len([call for call in disk.seen if not call.startswith(LINK)]) == most, disk.seen


def test_a_table_is_made_with_five_fsyncs(lake: lakelet.Lake, disk: Disk) -> None:
    lake.create_table("d.other", [("id", "BIGINT")])
    disk.seen.clear()
    lake.sql("CREATE TABLE d.t (id BIGINT, v STRING)")
    synced = [call for call in disk.seen if not call.startswith(LINK)]
    assert ".tmp-" in synced[0]
    assert sorted(synced[1:]) == ["d.db", "d.db/t", "d.db/t/metadata", "d.db/t/schema"]


def test_a_home_elsewhere_writes_durably(lake: lakelet.Lake) -> None:
    home = make(lake, "append").home.deferring()
    assert home.defers
    assert not pickle.loads(pickle.dumps(home)).defers
    assert home.on_branch("b").defers


@pytest.mark.parametrize("left", [b"", b"\0\0", b"1", None], ids=["empty", "zeros", "torn", "lost"])
def test_a_hint_that_a_crash_left_wrong_is_seen_through_and_repaired(
    lake: lakelet.Lake, tmp_path: Path, left: bytes | None
) -> None:
    table = make(lake, "append")
    for number in range(12):
        table.write(rows(number))
    newest = table.snapshots()[-1].id
    hints = [tmp_path / "d.db/t/snapshot" / name for name in ("LATEST", "EARLIEST")]
    for hint in hints:
        hint.unlink() if left is None else hint.write_bytes(left)
    again = lakelet.connect(str(tmp_path)).table("d.t")
    assert again.snapshots()[-1].id == newest
    assert again.scan().count() == 12
    made = again.write(rows(99))
    assert made is not None
    assert hints[0].read_bytes() == str(again.snapshots()[-1].id).encode()
    again.repair()
    assert hints[1].read_bytes() == str(again.snapshots()[0].id).encode()
