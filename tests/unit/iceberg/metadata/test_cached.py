"""The metadata source of Iceberg tables over the cache: what it reads again, and what it never serves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.manifest import read_manifest_list

from lakelet.cache.level import CacheLevel
from lakelet.catalog.lake import Lake
from lakelet.errors import NotFoundError
from lakelet.iceberg.branches import rollback_to_snapshot
from lakelet.iceberg.maintenance.expiry import expire_snapshots
from lakelet.iceberg.metadata import table_pointer, uncached
from lakelet.iceberg.metadata.manifests import read_entries
from lakelet.iceberg.scan import plan as plan_module
from lakelet.iceberg.scan import scan_of
from lakelet.iceberg.scan.live_entries import LiveEntries
from lakelet.iceberg.table import IcebergTable
from tests.unit.iceberg.metadata.cached_lakes import (
    CATALOG,
    FULL,
    NAME,
    appended,
    create,
    foreign,
    ids,
    opened,
    scan,
    table,
)

_APPEND = """
import sys, pathlib
from tests.unit.iceberg.metadata.cached_lakes import NAME, appended, foreign
appended(foreign(pathlib.Path(sys.argv[1])).load_table(NAME), 7)
"""


class Calls:
    """Counts what is read: tables from the catalog, lists and manifests from the store."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tables = 0
        self.manifests: list[str] = []
        self.lists = 0
        load, read, listed = table_pointer.load_table, read_entries, read_manifest_list

        def load_table(*arguments: Any) -> Any:
            self.tables += 1
            return load(*arguments)

        def decoded(io: Any, manifest: Any, statistics: Sequence[int] = ()) -> Any:
            self.manifests.append(manifest.manifest_path)
            return read(io, manifest, statistics)

        def read_list(*arguments: Any) -> Any:
            self.lists += 1
            return listed(*arguments)

        monkeypatch.setattr(table_pointer, "load_table", load_table)
        monkeypatch.setattr(uncached, "read_entries", decoded)
        monkeypatch.setattr(uncached, "read_manifest_list", read_list)

    def taken(self) -> tuple[int, int, int]:
        found = (self.tables, self.lists, len(self.manifests))
        self.tables, self.lists, self.manifests = 0, 0, []
        return found


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake that hears of no other, with three snapshots of one row each."""
    made = opened(tmp_path)
    create(made)
    for number in range(3):
        made.sql(f"INSERT INTO {FULL} VALUES ({number}, 'd{number}', {number}.5)")
    return made


def test_what_has_been_read_is_not_read_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    scan(lake)
    calls = Calls(monkeypatch)
    assert len(scan(lake).files) == 3
    assert calls.taken() == (0, 0, 0)
    # Statistics are another reading of the manifests; the first selective plan reads what it needs.
    assert len(scan(lake, "dt = 'd1'").files) == 1
    assert calls.taken() == (0, 0, 1)
    assert len(scan(lake, "dt = 'd2'").files) == 1
    assert calls.taken() == (0, 0, 2)
    assert len(scan(lake, "v > 1").files) == 2
    assert calls.taken() == (0, 0, 0)


def test_of_a_new_snapshot_only_its_own_manifest_is_read(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for where in (None, "v > 1", "v > 2"):
        scan(lake, where)
    appended(foreign(tmp_path).load_table(NAME), 7)
    calls = Calls(monkeypatch)
    assert len(scan(lake, "v > 1").files) == 3
    assert calls.taken() == (1, 1, 1)
    assert len(scan(lake).files) == 4
    assert calls.taken() == (0, 0, 0)


def test_partitions_are_looked_through_once_for_all_conditions(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    columns_of = plan_module._columns_of

    def counted(*given: Any) -> Any:
        made.append(1)
        return columns_of(*given)

    monkeypatch.setattr(plan_module, "_columns_of", counted)
    found = [len(scan(lake, where=f"dt = 'd{number}'").files) for number in (0, 1, 2, 0, 3)]
    assert found == [1, 1, 1, 1, 0]
    # The first plan with a condition reads no more manifests than it needs, and is not kept.
    assert len(made) <= 2


def test_entries_of_a_snapshot_are_continued_after_an_append(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (0, 1):
        scan(lake, where=f"id = {number}")
    put_together: list[int] = []
    of = LiveEntries.of

    def counted(parts: Sequence[Any], *, statistics: bool) -> LiveEntries:
        put_together.append(len(parts))
        return of(parts, statistics=statistics)

    monkeypatch.setattr(LiveEntries, "of", counted)
    appended(foreign(tmp_path).load_table(NAME), 7)
    assert [len(scan(lake, where=where).files) for where in ("id = 7", "id = 1", "id > 0")] == [1, 1, 3]
    assert put_together == [1]
    foreign(tmp_path).load_table(NAME).delete("id = 1")
    assert [len(scan(lake, where=where).files) for where in ("id = 7", "id = 1", "id > 0")] == [1, 0, 2]


def test_a_commit_of_another_process_is_seen_at_once(lake: Lake, tmp_path: Path) -> None:
    assert ids(lake) == [0, 1, 2]
    subprocess.run([sys.executable, "-c", _APPEND, str(tmp_path)], check=True, timeout=600)
    assert ids(lake) == [0, 1, 2, 7]


def test_foreign_changes_without_rows_are_seen_at_once(lake: Lake, tmp_path: Path) -> None:
    assert table(lake).column_names == ("id", "dt", "v")
    other = foreign(tmp_path).load_table(NAME)
    with other.transaction() as change:
        change.set_properties({"owner": "me"})
    assert table(lake).properties["owner"] == "me"
    with other.update_schema() as update:
        update.rename_column("v", "w")
    assert table(lake).column_names == ("id", "dt", "w")
    first = table(lake).metadata.snapshots[0].snapshot_id
    other.manage_snapshots().set_current_snapshot(snapshot_id=first).commit()
    assert ids(lake) == [0]
    other.refresh()
    appended_back = table(lake).metadata.snapshots[2].snapshot_id
    other.manage_snapshots().set_current_snapshot(snapshot_id=appended_back).commit()
    assert ids(lake) == [0, 1, 2]


def test_a_table_that_was_dropped_and_created_again_never_shows_the_old_one(lake: Lake, tmp_path: Path) -> None:
    assert ids(lake) == [0, 1, 2]
    other = foreign(tmp_path)
    schema = other.load_table(NAME).schema()
    other.drop_table(NAME)
    with pytest.raises(NotFoundError):
        ids(lake)
    made = other.create_table(NAME, schema)
    assert ids(lake) == []
    appended(made, 9)
    assert ids(lake) == [9]


def test_names_that_differ_in_case_are_two_tables(lake: Lake, tmp_path: Path) -> None:
    other = foreign(tmp_path)
    made = other.create_table("shop.Orders", other.load_table(NAME).schema())
    appended(made, 5)
    assert ids(lake) == [0, 1, 2]
    assert lake.sql(f"SELECT id FROM {CATALOG}.shop.Orders").rows() == [(5,)]


def test_manual_staleness_shows_the_old_version_until_a_refresh(lake: Lake, tmp_path: Path) -> None:
    stale = opened(tmp_path, {"cache.staleness": "manual"})
    assert ids(stale) == [0, 1, 2]
    lake.sql(f"INSERT INTO {FULL} VALUES (3, 'd3', 3.5)")
    assert ids(stale) == [0, 1, 2]
    # A commit sees what is there, and does not show it to queries.
    fresh = stale.catalogs.open(CATALOG).table(NAME)
    assert len(fresh.metadata.snapshots) == 4
    assert ids(stale) == [0, 1, 2]
    assert stale.sql(f"REFRESH TABLE {FULL}").rows() == [(f"refreshed {FULL}: snapshot changed",)]
    assert ids(stale) == [0, 1, 2, 3]
    assert stale.sql(f"REFRESH TABLE {FULL}").rows() == [(f"refreshed {FULL}: nothing changed",)]


@pytest.mark.parametrize("staleness", ["manual", "bounded(3600000)"])
def test_own_changes_are_seen_at_once_whatever_the_staleness(tmp_path: Path, staleness: str) -> None:
    made = opened(tmp_path, {"cache.staleness": staleness}, listens=True)
    create(made)
    seen = []
    for number in range(3):
        made.sql(f"INSERT INTO {FULL} VALUES ({number}, 'd', 0.5)")
        seen.append(number)
        assert ids(made) == seen
    made.sql(f"ALTER TABLE {FULL} ADD COLUMN note STRING")
    assert "note" in table(made).column_names
    made.sql(f"ALTER TABLE {FULL} SET TBLPROPERTIES ('shop.note' = 'me')")
    assert table(made).properties["shop.note"] == "me"
    fresh = made.catalogs.open(CATALOG).table(NAME)
    rollback_to_snapshot(fresh, fresh.metadata.snapshots[0].snapshot_id)
    assert ids(made) == [0]
    made.sql(f"DELETE FROM {FULL} WHERE id = 0")
    assert ids(made) == []
    made.sql(f"ALTER TABLE {FULL} RENAME TO {CATALOG}.shop.others")
    with pytest.raises(NotFoundError):
        ids(made)
    made.sql(f"DROP TABLE {CATALOG}.shop.others")
    create(made)
    assert ids(made) == []


def test_a_catalog_that_takes_the_name_of_another_has_its_own_tables(tmp_path: Path) -> None:
    made = opened(tmp_path / "lake", {"cache.staleness": "manual"}, listens=True)
    for number, folder in enumerate((tmp_path / "a", tmp_path / "b")):
        folder.mkdir()
        made.sql(
            f"CREATE CATALOG ice WITH ('type' = 'sql', 'uri' = 'sqlite:///{folder}/c.db', 'warehouse' = 'file://{folder}')"
        )
        made.sql("CREATE DATABASE ice.d")
        made.sql("CREATE TABLE ice.d.t (id BIGINT)")
        made.sql(f"INSERT INTO ice.d.t VALUES ({number})")
        assert made.sql("SELECT id FROM ice.d.t").rows() == [(number,)]
        made.sql("DROP CATALOG ice")


def test_metadata_files_without_a_unique_name_are_compared_at_every_look(lake: Lake, tmp_path: Path) -> None:
    """A table of folders has `v1.metadata.json`, and so has the next one that is put in its place."""
    other = foreign(tmp_path)
    loaded = other.load_table(NAME)
    location = Path(loaded.metadata_location.removeprefix("file://"))
    text = location.read_text()
    plain = location.with_name("v1.metadata.json")
    plain.write_text(text)
    other.drop_table(NAME)
    other.register_table(NAME, f"file://{plain}")
    assert table(lake).properties.get("owner") is None
    assert table(lake).metadata is table(lake).metadata
    plain.write_text(loaded.metadata.model_copy(update={"properties": {"owner": "me"}}).model_dump_json())
    assert table(lake).properties["owner"] == "me"


def test_holders_of_a_table_do_not_change_that_of_others(lake: Lake) -> None:
    mine, before = table(lake), table(lake).metadata
    mine.library.append(mine.library.scan().to_arrow())
    assert len(mine.library.metadata.snapshots) == 4
    assert len(before.snapshots) == 3


def test_upkeep_reads_the_store(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    scan(lake)
    calls = Calls(monkeypatch)
    expire_snapshots(lake.catalogs.open(CATALOG).table(NAME), retain_last=1, older_than_ms=1 << 60)
    assert calls.lists >= 3


def test_without_the_cache_everything_is_read(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.sql('ADMIN SET FRONTEND CONFIG ("enable_tiered_cache" = "false")')
    scan(lake)
    calls = Calls(monkeypatch)
    scan(lake)
    assert len(calls.manifests) == 3
    found = table(lake)
    lake.sql('ADMIN SET FRONTEND CONFIG ("enable_tiered_cache" = "true")')
    scan_of(found)
    calls.taken()
    scan_of(found, cache=False)
    assert len(calls.manifests) == 3


def test_without_the_partition_level_plans_are_made_anew(lake: Lake) -> None:
    lake.sql('ADMIN SET FRONTEND CONFIG ("iceberg_partition_cache_max_size" = "0")')
    for _ in range(2):
        assert len(scan(lake, "v > 1").files) == 2
    assert not lake.cache.is_in_cache(FULL, CacheLevel.PARTITION)


def test_a_catalog_of_the_name_of_the_lakes_own_is_not_cached(tmp_path: Path) -> None:
    options = {
        "catalog.lakelet.type": "sql",
        "catalog.lakelet.uri": f"sqlite:///{tmp_path}/c.db",
        "catalog.lakelet.warehouse": f"file://{tmp_path}",
    }
    made = opened(tmp_path / "lake", options)
    made.sql("CREATE DATABASE lakelet.d")
    made.sql("CREATE TABLE lakelet.d.t (id BIGINT)")
    made.sql("INSERT INTO lakelet.d.t VALUES (1)")
    assert made.sql("SELECT id FROM lakelet.d.t").rows() == [(1,)]
    assert not made.cache.is_in_cache("lakelet.d.t", CacheLevel.TABLE_METADATA)


def test_a_failure_to_read_is_not_kept(lake: Lake, tmp_path: Path) -> None:
    found: IcebergTable = table(lake)
    snapshot = found.metadata.current_snapshot()
    assert snapshot is not None
    lists = Path(snapshot.manifest_list.removeprefix("file://"))
    hidden = lists.rename(lists.with_suffix(".gone"))
    lake.cache.clear()
    with pytest.raises(NotFoundError, match="is gone"):
        scan(lake)
    hidden.rename(lists)
    assert len(scan(lake).files) == 3


def test_explain_says_what_came_from_the_cache(lake: Lake, tmp_path: Path) -> None:
    def said() -> str:
        return next(text for name, text in lake.sql(f"EXPLAIN SELECT id FROM {FULL}").rows() if name == FULL)

    lake.cache.clear()
    assert "cache: pointer checked and read anew, manifests: 0 from the cache, 3 read, plan made" in said()
    assert "cache: pointer checked, manifests: 0 from the cache, 0 read, plan kept" in said()
    appended(foreign(tmp_path).load_table(NAME), 9)
    assert "cache: pointer checked and read anew, manifests: 0 from the cache, 1 read, plan made" in said()
    lake.sql("SET metadata-cache = off")
    assert "cache: not used" in said()


def test_a_session_goes_past_the_cache(lake: Lake, tmp_path: Path) -> None:
    lake.sql('ADMIN SET FRONTEND CONFIG ("cache.staleness" = "manual")')
    before = ids(lake)
    appended(foreign(tmp_path).load_table(NAME), 9)
    assert ids(lake) == before
    lake.sql("SET metadata-cache = off")
    assert ids(lake) == [*before, 9]
    lake.sql("RESET metadata-cache")
    assert ids(lake) == before


def test_compatibility_mode_answers_from_the_catalog_and_counts_differences(lake: Lake, tmp_path: Path) -> None:
    lake.sql('ADMIN SET FRONTEND CONFIG ("tiered_cache_compatibility_mode" = "true", "cache.staleness" = "manual")')
    before = ids(lake)
    appended(foreign(tmp_path).load_table(NAME), 9)
    assert ids(lake) == [*before, 9]
    found = lake.cache.get_all_metrics()
    assert found.comparisons > 0
    assert found.differences == 0


def test_a_difference_is_counted(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids(lake)
    stale = table_pointer.checked_pointer(lake.catalogs.open(CATALOG).library, NAME, None)
    appended(foreign(tmp_path).load_table(NAME), 9)
    lake.sql('ADMIN SET FRONTEND CONFIG ("tiered_cache_compatibility_mode" = "true")')
    monkeypatch.setattr("lakelet.iceberg.metadata.cached.checked_pointer", lambda *_: stale)
    assert 9 in ids(lake)
    assert lake.cache.get_all_metrics().differences > 0


def test_tables_outside_of_the_rollout_are_not_cached_and_queries_are_counted(lake: Lake) -> None:
    lake.sql('ADMIN SET FRONTEND CONFIG ("tiered_cache_rollout_percentage" = "0")')
    lake.cache.clear()
    asked = dict(lake.cache.hottest_tables()).get(FULL, 0)
    ids(lake)
    assert not lake.cache.is_in_cache(FULL, CacheLevel.TABLE_METADATA)
    assert dict(lake.cache.hottest_tables())[FULL] == asked + 1
