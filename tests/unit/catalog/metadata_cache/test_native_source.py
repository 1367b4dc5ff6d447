"""The metadata source of native tables over the cache: what it reads again, and what it never serves."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import lakelet
from lakelet.cache.level import CacheLevel
from lakelet.cache.settings import CacheSettings
from lakelet.catalog.lake import Lake
from lakelet.catalog.metadata_cache.open import cached_metadata
from lakelet.commit.metadata import pointer_check
from lakelet.commit.metadata.source import UNCACHED
from lakelet.errors import NotFoundError
from lakelet.storage.disk.local_store import LocalStore
from lakelet.storage.store import ObjectStore
from lakelet.table.table import Table
from lakelet.testing.instrumented_stores import CountingStore

Deaf = Callable[..., Lake]
COLUMNS = pa.schema([("id", pa.int64()), ("dt", pa.string())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "dt": ["a"] * len(ids)}, schema=COLUMNS)


@pytest.fixture(params=[False, True], ids=["one call after the other", "in two round trips"])
def deaf(request: pytest.FixtureRequest) -> Deaf:
    """Opens a lake that hears of no change by others, as another process would not."""

    def opened(store: ObjectStore, options: dict[str, str] | None = None) -> Lake:
        settings = CacheSettings.of(options or {})
        source = cached_metadata(store, settings, listens=False, parallel=request.param)
        return Lake(store, metadata=source, cache=source.cache)

    return opened


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


@pytest.fixture
def other(store: LocalStore) -> Lake:
    """Another process's lake."""
    lake = Lake(store)
    lake.create_database("shop")
    lake.create_table("shop.orders", COLUMNS).write(rows(1))
    return lake


def seen(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().column("id").to_pylist())


def test_a_foreign_commit_is_seen_at_once(deaf: Deaf, store: LocalStore, other: Lake) -> None:
    mine = deaf(store).table("shop.orders")
    assert seen(mine) == [1]
    other.table("shop.orders").write(rows(2))
    assert seen(mine) == [1, 2]


def test_a_foreign_change_of_columns_or_options_is_seen_without_a_snapshot(
    deaf: Deaf, store: LocalStore, other: Lake
) -> None:
    mine = deaf(store).table("shop.orders")
    assert mine.scan().columns == ("id", "dt")
    other.table("shop.orders").add_column("note", "STRING")
    assert mine.scan().columns == ("id", "dt", "note")
    other.table("shop.orders").set_options({"source.split.target-size": "64 mb"})
    assert mine.options["source.split.target-size"] == "64 mb"


def test_a_rollback_and_a_commit_to_the_same_id_are_seen(deaf: Deaf, store: LocalStore, other: Lake) -> None:
    theirs = other.table("shop.orders")
    theirs.write(rows(2))
    mine = deaf(store).table("shop.orders")
    assert seen(mine) == [1, 2]
    theirs.rollback(to=1)
    assert seen(mine) == [1]
    theirs.write(rows(3))
    assert mine.latest_snapshot() == UNCACHED.latest_snapshot(mine.home)
    theirs.rollback(to=1)
    theirs.write(rows(4))
    # The same id as before, and no read in between.
    assert seen(mine) == [1, 4]


def test_a_table_that_was_dropped_and_recreated_is_never_served_as_the_old_one(
    deaf: Deaf, store: LocalStore, other: Lake
) -> None:
    mine = deaf(store).table("shop.orders")
    assert seen(mine) == [1]
    other.drop_table("shop.orders")
    with pytest.raises(NotFoundError):
        mine.scan()
    other.create_table("shop.orders", pa.schema([("id", pa.int64()), ("other", pa.string())]))
    assert mine.scan().columns == ("id", "other")
    assert seen(mine) == []
    other.table("shop.orders").write(pa.table({"id": [9], "other": ["x"]}))
    assert seen(mine) == [9]


def test_a_table_whose_folder_was_replaced_is_read_anew(
    deaf: Deaf, store: LocalStore, other: Lake, tmp_path: Path
) -> None:
    """Java's tables have no UUID: nothing but the bytes tells that another table has taken the place."""
    other.create_table("shop.next", COLUMNS).write(rows(7))
    mine = deaf(store).table("shop.orders")
    assert seen(mine) == [1]
    shutil.rmtree(tmp_path / "shop.db" / "orders")
    os.rename(tmp_path / "shop.db" / "next", tmp_path / "shop.db" / "orders")
    assert seen(mine) == [7]


def test_a_fast_forward_is_seen(deaf: Deaf, store: LocalStore, other: Lake) -> None:
    theirs = other.table("shop.orders")
    theirs.tags.create("base", version=1)
    theirs.branches.create("dev", tag="base")
    branch = theirs.on_branch("dev")
    mine = deaf(store).table("shop.orders")
    assert seen(mine) == [1]
    assert seen(mine.on_branch("dev")) == [1]
    branch.write(rows(5))
    assert seen(mine.on_branch("dev")) == [1, 5]
    theirs.branches.fast_forward("dev")
    assert seen(mine) == [1, 5]
    branch.add_column("note", "STRING")
    branch.write(pa.table({"id": [6], "dt": ["a"], "note": ["x"]}))
    assert mine.scan().columns == ("id", "dt")
    theirs.branches.fast_forward("dev")
    assert mine.scan().columns == ("id", "dt", "note")
    assert seen(mine) == [1, 5, 6]


def test_a_snapshot_left_below_the_live_ones_is_not_taken_for_the_newest(
    deaf: Deaf, store: LocalStore, other: Lake
) -> None:
    """An expiry that deletes several snapshots at once and is stopped can leave the older and have taken the newer."""
    mine = deaf(store).table("shop.orders")
    assert seen(mine) == [1]
    theirs = other.table("shop.orders")
    for number in (2, 3, 4):
        theirs.write(rows(number))
    store.delete([theirs.home.paths.snapshot(2)])
    assert seen(mine) == [1, 2, 3, 4]


def test_a_switch_of_lines_before_it_is_filled_in_is_seen(deaf: Deaf, store: LocalStore, other: Lake) -> None:
    """A fast-forward puts its newest snapshot first, and the hint: then there is no snapshot right after the old one."""
    mine = deaf(store).table("shop.orders")
    theirs = other.table("shop.orders")
    assert seen(mine) == [1]
    for number in (2, 3):
        theirs.write(rows(number))
    paths = theirs.home.paths
    third = store.get(paths.snapshot(3))
    theirs.rollback(to=1)
    assert seen(mine) == [1]
    store.put(paths.snapshot(3), third)
    store.put(paths.latest_hint, b"3")
    assert mine.latest_snapshot() == UNCACHED.latest_snapshot(mine.home)


def test_our_own_changes_are_seen_under_manual_staleness(tmp_path: Path) -> None:
    lake = lakelet.connect(str(tmp_path), {"cache.staleness": "manual"})
    lake.create_database("shop")
    table = lake.create_table("shop.orders", COLUMNS)
    assert seen(table) == []
    table.write(rows(1))
    assert seen(table) == [1]
    table.add_column("note", "STRING")
    assert table.scan().columns == ("id", "dt", "note")
    table.write(pa.table({"id": [2], "dt": ["a"], "note": ["x"]}))
    table.rollback(to=1)
    assert seen(table) == [1]
    lake.drop_table("shop.orders")
    lake.create_table("shop.orders", COLUMNS).write(rows(8))
    assert seen(table) == [8]


def test_refresh_table_with_tiered_cache(deaf: Deaf, store: LocalStore, other: Lake) -> None:
    """Under manual staleness, foreign rows are seen after a refresh and not before."""
    other.table("shop.orders").write(rows(2))
    lake = deaf(store, {"cache.staleness": "manual"})
    mine = lake.table("shop.orders")
    assert seen(mine) == [1, 2]
    other.table("shop.orders").write(rows(3))
    assert seen(mine) == [1, 2]
    assert lake.cache.refresh_table("shop.orders").snapshot_changed
    assert seen(mine) == [1, 2, 3]


def test_a_commit_is_based_on_the_newest_version_under_manual_staleness(
    deaf: Deaf, store: LocalStore, other: Lake
) -> None:
    lake = deaf(store, {"cache.staleness": "manual"})
    mine = lake.table("shop.orders")
    assert seen(mine) == [1]
    other.table("shop.orders").write(rows(2))
    made = mine.write(rows(3))
    assert made is not None
    assert made.id == 3
    assert sorted(mine.scan(cache=False).to_arrow().column("id").to_pylist()) == [1, 2, 3]


def test_a_scan_past_the_cache_reads_the_store(deaf: Deaf, store: LocalStore, other: Lake) -> None:
    lake = deaf(store, {"cache.staleness": "manual"})
    mine = lake.table("shop.orders")
    assert seen(mine) == [1]
    other.table("shop.orders").write(rows(2))
    assert mine.scan(cache=False).to_arrow().num_rows == 2
    lake.cache.configure(lake.cache.settings.changed("enable_tiered_cache", "false"))
    assert seen(mine) == [1, 2]


def test_a_version_and_a_tag_by_name_are_looked_up_each_time(deaf: Deaf, store: LocalStore, other: Lake) -> None:
    theirs = other.table("shop.orders")
    theirs.write(rows(2))
    theirs.tags.create("eod", version=1)
    lake = deaf(store, {"cache.staleness": "manual"})
    mine = lake.table("shop.orders")
    assert mine.scan(tag="eod").to_arrow().num_rows == 1
    theirs.tags.delete("eod")
    theirs.tags.create("eod", version=2)
    assert mine.scan(tag="eod").to_arrow().num_rows == 2
    theirs.rollback(to=1)
    theirs.write(rows(3, 4))
    assert mine.scan(version=2).to_arrow().num_rows == 3


def test_a_hot_plan_reads_only_pointers(deaf: Deaf, store: LocalStore, other: Lake) -> None:
    recording = CountingStore(store)
    mine = deaf(recording).table("shop.orders")
    first = mine.scan().plan()
    recording.reset()
    assert mine.scan().plan() == first
    touched = {path.split("/", 2)[2] for _, path in recording.log}
    assert touched <= {
        "snapshot/LATEST",
        "snapshot/snapshot-1",
        "snapshot/snapshot-2",
        "snapshot",
        "schema",
        "schema/schema-0",
    }


@pytest.fixture
def remote(store: LocalStore, other: Lake) -> tuple[Table, CountingStore]:
    """A table of two snapshots that was planned, on a store whose calls are round trips, and its calls from then on."""
    other.table("shop.orders").write(rows(2))
    recording = CountingStore(store)
    source = cached_metadata(recording, listens=False, parallel=True)
    mine = Lake(recording, metadata=source, cache=source.cache).table("shop.orders")
    for _ in range(2):
        mine.scan().plan()
    recording.reset()
    return mine, recording


def test_a_hot_revalidation_takes_four_calls_in_two_round_trips(remote: tuple[Table, CountingStore]) -> None:
    """Those that find the ids are made together, and then those that read the two files."""
    mine, recording = remote
    mine.scan().plan()
    paths = mine.home.paths
    assert set(recording.log[:2]) == {("list_folder", paths.snapshot_folder), ("list_folder", paths.schema_folder)}
    assert set(recording.log[2:]) == {("get", paths.snapshot(2)), ("get", paths.schema(0))}


def test_a_folder_of_many_snapshots_is_not_listed_again(
    remote: tuple[Table, CountingStore], other: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, recording = remote
    monkeypatch.setattr(pointer_check, "MOST_LISTED", 1)
    mine.scan().plan()
    paths = mine.home.paths
    assert set(recording.log[:4]) == {
        ("get", paths.latest_hint),
        ("head", paths.snapshot(3)),
        ("head", paths.snapshot(1)),
        ("list_folder", paths.schema_folder),
    }
    assert set(recording.log[4:]) == {("get", paths.snapshot(2)), ("get", paths.schema(0))}
    other.table("shop.orders").write(rows(3))
    assert seen(mine) == [1, 2, 3]


def test_many_tables_are_refreshed_with_few_threads(store: LocalStore, other: Lake) -> None:
    for number in range(12):
        other.create_table(f"shop.t{number}", COLUMNS).write(rows(number))
        other.table(f"shop.t{number}").write(rows(number))
    source = cached_metadata(store, CacheSettings.of({"cache.load-threads": "2"}), listens=False, parallel=True)
    lake = Lake(store, metadata=source, cache=source.cache)
    for number in range(12):
        lake.cache.get_complete_metadata(f"shop.t{number}")
        other.table(f"shop.t{number}").write(rows(number))
    assert lake.cache.refresh_catalog("lakelet") == 12
    assert [lake.cache.get_table_metadata(f"shop.t{number}").current_snapshot_id for number in range(12)] == [3] * 12


def test_a_thread_sees_what_it_has_committed_while_others_read(tmp_path: Path) -> None:
    """A query of another thread that began before the commit may end after it: what it found is not taken for the newest."""
    lake = lakelet.connect(str(tmp_path), {"cache.staleness": "manual"})
    lake.create_database("shop")
    table = lake.create_table("shop.orders", COLUMNS)
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            table.scan()

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(4)]
        try:
            for number in range(1, 25):
                made = table.write(rows(number))
                assert made is not None
                seen_now = table.scan().snapshot
                assert seen_now is not None
                assert seen_now.id >= made.id
        finally:
            done.set()
        for reader in readers:
            reader.result()


def test_a_new_snapshot_decodes_only_its_own_manifests(deaf: Deaf, store: LocalStore, other: Lake) -> None:
    recording = CountingStore(store)
    mine = deaf(recording).table("shop.orders")
    mine.scan().plan()
    other.table("shop.orders").write(rows(2))
    before = {path for _, path in recording.log}
    recording.reset()
    mine.scan().plan()
    again = [path for _, path in recording.log if "/manifest/" in path and path in before]
    assert again == []


def test_a_forked_process_starts_empty(deaf: Deaf, store: LocalStore, other: Lake) -> None:
    lake = deaf(store, {"cache.staleness": "manual"})
    mine = lake.table("shop.orders")
    assert seen(mine) == [1]
    other.table("shop.orders").write(rows(2))
    child = os.fork()
    if child == 0:
        empty = not any(lake.cache.is_in_cache("shop.orders", level) for level in CacheLevel)
        snapshot = mine.scan().snapshot
        os._exit(0 if empty and snapshot is not None and snapshot.id == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_the_listener_of_a_lake_leaves_with_it(tmp_path: Path) -> None:
    import gc

    from lakelet.events import bus

    gc.collect()
    before = len(bus._subscriptions)
    for _ in range(5):
        lakelet.connect(str(tmp_path))
    gc.collect()
    assert len(bus._subscriptions) <= before
