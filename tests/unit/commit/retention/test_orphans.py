"""Orphan files: found over all branches, tags and changelogs, and never a file that is referenced."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError, LakeletError, NotFoundError
from lakelet.ids import RandomIds
from lakelet.storage.disk.local_store import LocalStore
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from lakelet.testing.instrumented_stores import CountingStore
from tests.unit.commit.named_files import named_files, stored_files
from tests.unit.hooked_store import HookedStore
from tests.unit.moving_clock import MovingClock

ORPHANS = [
    "d.db/t/p=a/bucket-0/data-lost-0.parquet",
    "d.db/t/p=gone/bucket-3/data-lost-0.parquet",
    "d.db/t/p=gone/bucket-postpone/changelog-lost-0.parquet",
    "d.db/t/manifest/manifest-lost-0",
    "d.db/t/manifest/manifest-list-lost-0",
    "d.db/t/index/index-lost-0",
    "d.db/t/statistics/stat-lost-0",
    "d.db/t/snapshot/snapshot.tmp",
    "d.db/t/changelog/other",
    "d.db/t/branch/branch-dev/snapshot/left-over",
]
FOREIGN = [
    "d.db/t/README",
    "d.db/t/p=a/_SUCCESS",
    "d.db/t/notes/bucket-0/data-1.parquet",
    "d.db/t/bucket-0/data-1.parquet",
    "d.db/t/p=a/q=b/bucket-0/data-1.parquet",
    "d.db/t/tag/tag-success-file/x",
    "d.db/t/consumer/consumer-x",
    "d.db/other/p=a/bucket-0/data-1.parquet",
]


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture
def store(clock: MovingClock) -> MemoryStore:
    return MemoryStore(clock=clock)


@pytest.fixture
def table(store: MemoryStore, clock: MovingClock) -> Table:
    return filled(Lake(store, clock=clock))


def filled(lake: Lake) -> Table:
    """A partitioned table with a tag and a branch that hold files main does not have."""
    lake.create_database("d")
    table = lake.create_table("d.t", [("id", "BIGINT"), ("p", "STRING")], partitioned_by=["p"])
    for number in range(4):
        table.write(pa.table({"id": [number, number], "p": ["a", "b"]}))
    table.tags.create("old", version=2)
    table.branches.create("dev", tag="old")
    table.on_branch("dev").write(pa.table({"id": [9], "p": ["a"]}))
    table.write(pa.table({"id": [7], "p": ["a"]}), mode="overwrite")
    return table


def everything(table: Table) -> dict[str, Any]:
    whole = {f"version {s.id}": table.scan(version=s.id).to_arrow() for s in table.snapshots()}
    return whole | {
        "tag": table.scan(tag="old").to_arrow(),
        "branch": table.on_branch("dev").scan().to_arrow(),
    }


def test_orphans_go_and_nothing_else(store: MemoryStore, table: Table, clock: MovingClock) -> None:
    before, named = everything(table), stored_files(table.home)
    for path in ORPHANS + FOREIGN:
        store.put(path, b"12345")
    clock.move(days=2)
    young = "d.db/t/p=a/bucket-0/data-young-0.parquet"
    store.put(young, b"x")
    would = table.remove_orphan_files(dry_run=True)
    assert (would.count, would.bytes) == (len(ORPHANS), 5 * len(ORPHANS))
    assert sorted(would.paths) == sorted(ORPHANS)
    report = table.remove_orphan_files()
    assert (report.count, report.bytes, report.paths) == (would.count, would.bytes, would.paths)
    assert not any(store.head(path) for path in ORPHANS)
    assert all(store.head(path) for path in [*FOREIGN, young])
    assert "d.db/t/p=gone" not in store.list_folder("d.db/t").folders
    assert everything(table) == before
    assert named <= stored_files(table.home)
    assert table.remove_orphan_files().count == 0


def test_expired_snapshots_leave_no_orphans(table: Table, clock: MovingClock) -> None:
    clock.move(days=2)
    table.expire_snapshots(1)
    assert table.remove_orphan_files(dry_run=True).count == 0
    assert stored_files(table.home) == named_files(table.home)


def test_what_an_interrupted_expiry_left_is_an_orphan(store: MemoryStore, table: Table, clock: MovingClock) -> None:
    clock.move(days=2)
    for number in (1, 2, 3):
        store.delete([table.home.paths.snapshot(number)])
    report = table.remove_orphan_files()
    assert report.count > 0
    assert stored_files(table.home) == named_files(table.home)
    everything(table)


def test_rule_9_a_commit_between_the_two_looks_is_seen(store: MemoryStore, table: Table, clock: MovingClock) -> None:
    """Files are written, get old, and are committed while orphans are looked for, at calls up to the last look."""
    write = table.new_write()
    write.write(pa.table({"id": [100], "p": ["a"]}))
    messages = write.prepare_commit()
    (file,) = messages[0].new_files
    clock.move(days=2)
    counting = CountingStore(store)
    assert file.name in Lake(counting, clock=clock).table("d.t").remove_orphan_files(dry_run=True).paths[0]
    looks = sum(1 for call, _ in counting.log)
    for call in range(0, looks, 3):
        copy = MemoryStore(clock=clock)
        for info in store.list(""):
            copy.put(info.path, store.get(info.path))
        clock.move(days=2)
        hooked, other = HookedStore(copy), Lake(copy, clock=clock).table("d.t")
        seen = iter(range(1_000))
        hooked.when = lambda *_, seen=seen, call=call: next(seen) == call  # type: ignore[misc]
        hooked.after = lambda other=other: other.new_commit().commit(messages)  # type: ignore[misc]
        Lake(hooked, clock=clock).table("d.t").remove_orphan_files("1 d")
        assert hooked.when is None
        assert 100 in other.scan().to_arrow().column("id").to_pylist(), call


def test_files_of_a_stray_snapshot_stay(store: MemoryStore, table: Table, clock: MovingClock) -> None:
    clock.move(days=2)
    stray = store.get(table.home.paths.snapshot(1))
    table.expire_snapshots(2)
    store.put(table.home.paths.snapshot(1), stray)
    store.put("d.db/t/manifest/manifest-lost-0", b"")
    clock.move(days=2)
    assert table.remove_orphan_files().count == 1


def test_nothing_goes_while_something_cannot_be_read(store: MemoryStore, table: Table, clock: MovingClock) -> None:
    store.put(ORPHANS[0], b"x")
    clock.move(days=2)
    store.delete([table.home.paths.manifest(table.snapshots()[1].delta_manifest_list)])
    before = stored_files(table.home)
    with pytest.raises(LakeletError):
        table.remove_orphan_files()
    assert stored_files(table.home) == before


def test_leftovers_of_interrupted_writes_go_from_a_disk(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, durable=False)
    table = filled(Lake(store))
    folder = tmp_path / "d.db/t"
    uuid = RandomIds().uuid()
    names = (f"p=a/bucket-0/.tmp-{uuid}", f"snapshot/.snapshot-9.{uuid}.tmp", f"manifest/.tmp-{uuid}")
    hidden = [folder / name for name in names]
    for path in hidden:
        path.write_bytes(b"half")
    (folder / "p=b/bucket-0/.keep").write_bytes(b"")
    (folder / "p=empty/bucket-0").mkdir(parents=True)
    assert table.remove_orphan_files("1 d").leftovers == 0
    assert all(path.exists() for path in hidden)
    assert not (folder / "p=empty").exists()
    # The age of a temporary is that of its last change, which no test can set back: ask as of tomorrow.
    removed = store.remove_leftovers("d.db/t", older_than_ms=2**62)
    assert sorted(info.path for info in removed) == sorted(f"d.db/t/{name}" for name in names)
    assert (folder / "p=b/bucket-0/.keep").exists()
    os.utime(next((folder / "p=a/bucket-0").glob("data-*")), (0, 0))
    assert table.remove_orphan_files("1 d").count == 0


def test_tables_without_partitions_and_in_a_folder_of_their_own(store: MemoryStore, clock: MovingClock) -> None:
    lake = Lake(store, clock=clock)
    lake.create_database("d")
    table = lake.create_table("d.t", [("id", "BIGINT")], options={"data-file.path-directory": "data"})
    table.write(pa.table({"id": [1]}))
    store.put("d.db/t/data/bucket-0/data-lost.parquet", b"x")
    store.put("d.db/t/bucket-0/data-elsewhere.parquet", b"x")
    clock.move(days=2)
    assert table.remove_orphan_files().paths == ("d.db/t/data/bucket-0/data-lost.parquet",)
    assert table.scan().count() == 1


def test_bad_input(store: MemoryStore, table: Table, clock: MovingClock) -> None:
    for age in ("soon", 1, "2999-01-01"):
        with pytest.raises(InvalidError, match="older_than"):
            table.remove_orphan_files(age)  # type: ignore[arg-type]
    Lake(store, clock=clock).drop_table("d.t")
    with pytest.raises(NotFoundError):
        table.remove_orphan_files()
