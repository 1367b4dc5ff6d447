"""SHOW PROC, ADMIN SET FRONTEND CONFIG and REFRESH, and queries whose metadata is cached."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from lakelet.cache.level import CacheLevel
from lakelet.cache.settings import CacheSettings
from lakelet.catalog.lake import Lake
from lakelet.catalog.metadata_cache.open import cached_metadata
from lakelet.errors import InvalidError, NotFoundError
from lakelet.storage.disk.local_store import LocalStore


def opened(folder: Path, options: Mapping[str, str] | None = None) -> Lake:
    """A lake that hears of no change by others, as another process would not."""
    store = LocalStore(str(folder))
    source = cached_metadata(store, CacheSettings.of(options or {}), listens=False)
    return Lake(store, metadata=source, cache=source.cache)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = opened(tmp_path)
    found.sql("CREATE DATABASE db")
    found.sql("CREATE TABLE db.test_table (id INT, name STRING)")
    found.sql("INSERT INTO db.test_table VALUES (1, 'Alice'), (2, 'Bob')")
    return found


def count(lake: Lake) -> int:
    return len(lake.sql("SELECT * FROM db.test_table").rows())


def test_query_with_tiered_cache(lake: Lake) -> None:
    assert count(lake) == 2
    before = lake.cache.get_all_metrics()
    assert before.overall_hit_ratio > 0
    for _ in range(5):
        assert count(lake) == 2
    assert lake.cache.get_all_metrics().overall_hit_ratio > before.overall_hit_ratio


def test_refresh_table_with_tiered_cache(lake: Lake, tmp_path: Path) -> None:
    stale = opened(tmp_path, {"cache.staleness": "manual"})
    assert count(stale) == 2
    lake.sql("INSERT INTO db.test_table VALUES (3, 'Charlie')")
    assert count(stale) == 2
    assert stale.sql("REFRESH TABLE db.test_table").rows() == [("refreshed db.test_table: snapshot changed",)]
    assert count(stale) == 3
    assert stale.sql("REFRESH TABLE db.test_table").rows() == [("refreshed db.test_table: nothing changed",)]


def test_a_database_and_a_catalog_are_refreshed(lake: Lake, tmp_path: Path) -> None:
    stale = opened(tmp_path, {"cache.staleness": "manual"})
    for number, statement in enumerate(("REFRESH DATABASE db", "REFRESH CATALOG lakelet"), 2):
        assert count(stale) == number
        lake.sql(f"INSERT INTO db.test_table VALUES ({number}, 'x')")
        assert count(stale) == number
        stale.sql(statement)
        assert count(stale) == number + 1


def test_the_statistics_are_shown_level_by_level(lake: Lake) -> None:
    for _ in range(3):
        count(lake)
    for path in ("", "/lakelet", "/lakelet/db", "/lakelet/db/test_table"):
        found = lake.sql(f"SHOW PROC '/tiered_cache_stats{path}'")
        assert found.columns[:5] == ("Cache Level", "Hit Ratio", "Hit Count", "Miss Count", "Avg Load Time")
        rows = found.rows()
        assert [row[0] for row in rows] == ["TableMetadata", "Snapshot", "Schema", "Partition"]
        assert all(row[1].endswith("%") and row[4].endswith(" ms") for row in rows)
        assert all(row[2] > 0 for row in rows[:3])
    table = {row[0]: row[-1] for row in lake.sql("SHOW PROC '/tiered_cache_stats/lakelet/db/test_table'").rows()}
    assert table["TableMetadata"] == "current snapshot 1, schema 0"
    assert table["Partition"] == "loaded"
    lake.sql("CREATE TABLE db.other (id INT)")
    assert [row[2] for row in lake.sql("SHOW PROC '/tiered_cache_stats/lakelet/db/other'").rows()] == [0, 0, 0, 0]


@pytest.mark.parametrize("path", ["/tiered_cache_stat", "tiered_cache_stats", "/tiered_cache_stats//db", "/x/a/b/c/d"])
def test_an_unknown_path_is_refused(lake: Lake, path: str) -> None:
    with pytest.raises(InvalidError, match="expected '/tiered_cache_stats'"):
        lake.sql(f"SHOW PROC '{path}'")


def test_unknown_names_in_a_path_suggest_the_nearest(lake: Lake) -> None:
    with pytest.raises(NotFoundError, match="'lakelet'"):
        lake.sql("SHOW PROC '/tiered_cache_stats/lakelt'")
    with pytest.raises(NotFoundError, match="did you mean test_table"):
        lake.sql("SHOW PROC '/tiered_cache_stats/lakelet/db/test_tabel'")


def test_tables_and_catalogs_are_invalidated(lake: Lake) -> None:
    for statement in (
        """ADMIN SET FRONTEND CONFIG ("invalidate_table_cache" = "lakelet.db.test_table")""",
        "ADMIN SET FRONTEND CONFIG ('invalidate_catalog_cache' = 'lakelet')",
    ):
        count(lake)
        assert lake.cache.is_in_cache("db.test_table", CacheLevel.SNAPSHOT)
        lake.sql(statement)
        assert not any(lake.cache.is_in_cache("db.test_table", level) for level in CacheLevel)


def test_tables_are_warmed_up_and_one_that_fails_stops_no_other(lake: Lake, tmp_path: Path) -> None:
    fresh = opened(tmp_path)
    told = fresh.sql(
        """ADMIN SET FRONTEND CONFIG ("warmup_tables" = "lakelet.db.gone,lakelet.db.test_table")"""
    ).rows()[0][0]
    assert told.startswith("loaded lakelet.db.test_table; lakelet.db.gone was not loaded: ")
    loaded = [level for level in CacheLevel if fresh.cache.is_in_cache("db.test_table", level)]
    assert loaded == [CacheLevel.TABLE_METADATA, CacheLevel.SNAPSHOT, CacheLevel.SCHEMA]


def test_settings_are_changed_while_the_lake_is_open(lake: Lake) -> None:
    lake.sql("""ADMIN SET FRONTEND CONFIG ("iceberg_table_metadata_cache_max_size" = "20000")""")
    assert lake.cache.tiers[CacheLevel.TABLE_METADATA].limits.max_entries == 20_000
    lake.sql("ADMIN SET FRONTEND CONFIG ('enable_tiered_cache' = 'false')")
    before = lake.cache.get_all_metrics()
    assert count(lake) == 2
    assert lake.cache.get_all_metrics().level_stats == before.level_stats


def test_what_is_wrong_changes_nothing(lake: Lake) -> None:
    before = lake.cache.settings
    for wrong in (
        "'cache.staleness' = 'manual', 'iceberg_snapshot_cache_max_sise' = '1'",
        "'cache.staleness' = 'manual', 'iceberg_snapshot_cache_max_size' = 'many'",
        "'cache.staleness' = 'manual', 'invalidate_catalog_cache' = 'nowhere'",
    ):
        with pytest.raises((InvalidError, NotFoundError)):
            lake.sql(f"ADMIN SET FRONTEND CONFIG ({wrong})")
        assert lake.cache.settings == before
    with pytest.raises(InvalidError, match="did you mean iceberg_snapshot_cache_max_size"):
        lake.sql("ADMIN SET FRONTEND CONFIG ('iceberg_snapshot_cache_max_sise' = '1')")


def test_a_refresh_of_a_table_that_is_not_there_names_the_nearest(lake: Lake) -> None:
    with pytest.raises(NotFoundError, match="test_table"):
        lake.sql("REFRESH TABLE db.test_tabel")


def test_the_hottest_tables_are_warmed_up(lake: Lake) -> None:
    lake.sql("CREATE TABLE db.other (id INT)")
    for _ in range(3):
        count(lake)
    lake.sql("SELECT * FROM db.other").rows()
    assert [name for name, _ in lake.cache.hottest_tables(1)] == ["lakelet.db.test_table"]
    lake.cache.clear()
    told = lake.sql("ADMIN SET FRONTEND CONFIG ('warmup_hot_tables' = '1')").rows()[0][0]
    assert told == "loaded lakelet.db.test_table"
    assert lake.cache.is_in_cache("db.test_table", CacheLevel.SCHEMA)
    assert not lake.cache.is_in_cache("db.other", CacheLevel.SCHEMA)
    with pytest.raises(InvalidError, match="expected a number of tables, found 'all'"):
        lake.sql("ADMIN SET FRONTEND CONFIG ('warmup_hot_tables' = 'all')")
    with pytest.raises(InvalidError, match="did you mean warmup_hot_tables"):
        lake.sql("ADMIN SET FRONTEND CONFIG ('warmup_hot_table' = '1')")


def test_a_session_goes_past_the_cache(lake: Lake, tmp_path: Path) -> None:
    stale = opened(tmp_path, {"cache.staleness": "manual"})
    assert count(stale) == 2
    lake.sql("INSERT INTO db.test_table VALUES (3, 'Charlie')")
    assert count(stale) == 2
    stale.sql("SET metadata-cache = off")
    before = stale.cache.get_all_metrics().level_stats
    assert count(stale) == 3
    assert stale.sql("SELECT count(*) FROM db.test_table$files").rows() == [(2,)]
    assert stale.cache.get_all_metrics().level_stats == before
    stale.sql("RESET metadata-cache")
    assert count(stale) == 2
    with pytest.raises(InvalidError, match="expected on or off, found 'maybe'"):
        stale.sql("SET metadata-cache = maybe")


def cache_line(lake: Lake, query: str) -> str:
    rows = dict(lake.sql(f"EXPLAIN {query}").rows())
    (found,) = (line for line in rows["db.test_table"].splitlines() if line.startswith("cache: "))
    return found.removeprefix("cache: ")


def test_explain_says_what_came_from_the_cache(lake: Lake, tmp_path: Path) -> None:
    lake.sql("INSERT INTO db.test_table VALUES (3, 'Charlie')")
    fresh = opened(tmp_path)
    query = "SELECT * FROM db.test_table"
    assert cache_line(fresh, query) == "pointer checked and read anew, manifests: 0 from the cache, 2 read, plan made"
    assert cache_line(fresh, query) == "pointer checked, manifests: 0 from the cache, 0 read, plan kept"
    assert "plan made" in cache_line(fresh, f"{query} WHERE id = 1")
    fresh.sql("ADMIN SET FRONTEND CONFIG ('cache.staleness' = 'manual')")
    cache_line(fresh, query)
    assert cache_line(fresh, query).startswith("pointer kept, ")
    lake.sql("INSERT INTO db.test_table VALUES (4, 'Dora')")
    fresh.sql("REFRESH TABLE db.test_table")
    assert ", 1 read, plan continued" in cache_line(fresh, query)
    fresh.sql("SET metadata-cache = off")
    assert cache_line(fresh, query) == "not used"


def test_troubleshooting_few_hits(tmp_path: Path, lake: Lake) -> None:
    small = opened(tmp_path, {"iceberg_snapshot_cache_max_size": "1"})
    for number in range(3):
        lake.sql(f"CREATE TABLE db.t{number} (id INT)")
        lake.sql(f"INSERT INTO db.t{number} VALUES (1)")
    for _ in range(40):
        for number in range(3):
            small.sql(f"SELECT * FROM db.t{number}").rows()
    rows = {row[0]: row for row in small.sql("SHOW PROC '/tiered_cache_stats'").rows()}
    evictions = rows["Snapshot"][-1]
    assert evictions > 0
    (alert,) = (one for one in small.cache.alerts() if one.metric == "cache_hit_ratio_level2")
    assert alert.option == "iceberg_snapshot_cache_max_size"
    small.sql(f"ADMIN SET FRONTEND CONFIG ('{alert.option}' = '1000')")
    for _ in range(3):
        small.sql("ADMIN SET FRONTEND CONFIG ('warmup_hot_tables' = '10')")
    rows = {row[0]: row for row in small.sql("SHOW PROC '/tiered_cache_stats'").rows()}
    assert rows["Snapshot"][-1] == evictions


def test_troubleshooting_much_memory(lake: Lake) -> None:
    count(lake)
    rows = {row[0]: row for row in lake.sql("SHOW PROC '/tiered_cache_stats'").rows()}
    assert rows["Partition"][6] > 0
    lake.sql("ADMIN SET FRONTEND CONFIG ('iceberg_partition_cache_max_size' = '0')")
    lake.sql("ADMIN SET FRONTEND CONFIG ('iceberg_partition_cache_expire_seconds' = '60', 'cache.max-bytes' = '1 mb')")
    assert count(lake) == 2
    rows = {row[0]: row for row in lake.sql("SHOW PROC '/tiered_cache_stats'").rows()}
    assert rows["Partition"][5:7] == (0, 0)
    lake.sql("ADMIN SET FRONTEND CONFIG ('invalidate_table_cache' = 'lakelet.db.test_table')")
    assert lake.cache.tiers.nbytes == 0


def test_troubleshooting_old_rows(lake: Lake, tmp_path: Path) -> None:
    stale = opened(tmp_path, {"cache.staleness": "manual"})
    count(stale)
    lake.sql("INSERT INTO db.test_table VALUES (3, 'Charlie')")
    shown = stale.sql("SHOW PROC '/tiered_cache_stats/lakelet/db/test_table'").rows()
    assert shown[0][-1] == "current snapshot 1, schema 0"
    stale.sql("SET metadata-cache = off")
    assert count(stale) == 3
    stale.sql("SET metadata-cache = on")
    stale.sql("REFRESH TABLE db.test_table")
    assert count(stale) == 3
    lake.sql("INSERT INTO db.test_table VALUES (4, 'Dora')")
    stale.sql("ADMIN SET FRONTEND CONFIG ('cache.staleness' = 'strict')")
    assert count(stale) == 4
    stale.sql("ADMIN SET FRONTEND CONFIG ('tiered_cache_compatibility_mode' = 'true')")
    assert count(stale) == 4
    assert stale.cache.get_all_metrics().differences == 0


def documented() -> list[str]:
    """The statements of the page on operation."""
    page = (Path(__file__).parents[4] / "docs" / "cache-operations.md").read_text(encoding="utf-8")
    blocks = page.split("```sql\n")[1:]
    return [line for block in blocks for line in block.split("```")[0].splitlines() if line]


def test_every_documented_statement_runs(tmp_path: Path) -> None:
    lake = opened(tmp_path)
    lake.sql("CREATE DATABASE shop")
    lake.sql("CREATE TABLE shop.orders (id INT)")
    statements = documented()
    assert len(statements) > 10
    for statement in statements:
        lake.sql(statement).rows()
        assert lake.sql("SELECT * FROM shop.orders").rows() == []


def test_a_join_has_its_other_table_prefetched_the_next_time(lake: Lake) -> None:
    lake.sql("CREATE TABLE db.other (id INT)")
    for _ in range(3):
        lake.sql("SELECT * FROM db.test_table JOIN db.other USING (id)").rows()
    lake.cache.clear()
    assert count(lake) == 2
    pool = lake.cache.upkeep._pool
    assert pool is not None
    pool.shutdown(wait=True)
    assert lake.cache.is_in_cache("db.other", CacheLevel.SCHEMA)
    assert lake.cache.upkeep.prefetch.failed == 0
