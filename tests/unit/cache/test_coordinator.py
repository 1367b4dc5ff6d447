"""The coordinator over a loader that notes what it is asked: the flows of the four levels."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from lakelet.cache.bus import InProcessBus
from lakelet.cache.coordinator import Refreshed, TieredCacheCoordinator
from lakelet.cache.invalidation import InvalidationType
from lakelet.cache.keys import TableCacheKey
from lakelet.cache.level import CacheLevel, MetadataLevel
from lakelet.cache.settings import CacheSettings
from lakelet.errors import InvalidError, NotFoundError
from lakelet.options.staleness import MANUAL, Staleness
from tests.unit.cache.fake_loader import CATALOG, TABLE, FakeLoader, FakeTable, StoppedClock, fake_cache


def with_staleness(staleness: Staleness) -> CacheSettings:
    return replace(CacheSettings.of({}), staleness=staleness)


def test_tiered_cache_basic_flow() -> None:
    cache, loader = fake_cache()
    metadata = cache.get_table_metadata(TABLE)
    assert metadata.table_location == "hdfs://path/to/table"
    snapshot = cache.get_current_snapshot(TABLE)
    assert snapshot is not None
    assert snapshot.snapshot_id > 0
    schema = cache.get_schema(TABLE, snapshot.schema_id)
    assert schema.columns
    assert cache.get_table_metadata(TABLE) is metadata
    assert cache.get_current_snapshot(TABLE) is snapshot
    assert cache.get_schema(TABLE, snapshot.schema_id) is schema
    assert "partitions 100" not in loader.asked
    assert cache.get_partitions(TABLE) is cache.get_partitions(TABLE, 100)


def test_smart_invalidation() -> None:
    cache, _ = fake_cache()
    cache.get_complete_metadata(TABLE, include_partitions=True)
    cache.invalidate(TABLE, InvalidationType.DATA_CHANGE)
    assert cache.is_in_cache(TABLE, CacheLevel.TABLE_METADATA)
    assert not cache.is_in_cache(TABLE, CacheLevel.SNAPSHOT)
    assert not cache.is_in_cache(TABLE, CacheLevel.PARTITION)
    assert cache.is_in_cache(TABLE, CacheLevel.SCHEMA)


def test_incremental_update() -> None:
    cache, loader = fake_cache()
    cache.get_snapshot(TABLE, 100)
    cache.get_current_schema(TABLE)
    cache.get_partitions(TABLE, 100)
    loader.tables[TABLE] = FakeTable(101)
    loader.asked.clear()
    cache.on_new_snapshot(TABLE, 101)
    assert loader.asked == ["table", "snapshot 101", "partitions 101"]
    loader.asked.clear()
    new = cache.get_current_snapshot(TABLE)
    assert new is not None
    assert new.snapshot_id == 101
    partitions = cache.get_partitions(TABLE)
    assert partitions is not None
    assert partitions.snapshot_id == 101
    assert set(loader.asked) == {"table"}


def test_a_new_snapshot_loads_no_partitions_that_nobody_asked_for() -> None:
    cache, loader = fake_cache()
    cache.get_complete_metadata(TABLE)
    loader.tables[TABLE] = FakeTable(101, 1)
    loader.asked.clear()
    cache.on_new_snapshot(TABLE, 101)
    assert loader.asked == ["table", "snapshot 101", "schema 1"]


def test_levels_are_loaded_up_to_the_one_asked_for() -> None:
    for level, asked in (
        (MetadataLevel.TABLE_METADATA, []),
        (MetadataLevel.SNAPSHOT, ["snapshot 100"]),
        (MetadataLevel.SCHEMA, ["snapshot 100", "schema 0"]),
        (MetadataLevel.PARTITION, ["snapshot 100", "schema 0", "partitions 100"]),
    ):
        cache, loader = fake_cache()
        cache.get_table_metadata(TABLE, level)
        assert loader.asked == ["table", *asked]


def test_a_snapshot_id_that_was_used_again_is_another_snapshot() -> None:
    cache, loader = fake_cache()
    before = cache.get_snapshot(TABLE, 100)
    loader.tables[TABLE] = FakeTable(100, generation="b")
    after = cache.get_snapshot(TABLE, 100)
    assert after is not before
    assert after.delta_manifest_list == "list-b-100"
    assert cache.get_current_snapshot(TABLE) is after


def test_strict_checks_the_pointer_at_every_call() -> None:
    cache, loader = fake_cache()
    for _ in range(5):
        cache.get_table_metadata(TABLE)
    assert loader.asked == ["table"] * 5


def test_manual_sees_a_change_only_after_a_refresh() -> None:
    cache, loader = fake_cache(with_staleness(MANUAL))
    cache.get_complete_metadata(TABLE)
    loader.tables[TABLE] = FakeTable(101)
    old = cache.get_current_snapshot(TABLE)
    assert old is not None
    assert old.snapshot_id == 100
    assert cache.refresh_table(TABLE) == Refreshed(snapshot_changed=True, schema_changed=False)
    new = cache.get_current_snapshot(TABLE)
    assert new is not None
    assert new.snapshot_id == 101


def test_bounded_looks_again_when_the_time_is_over() -> None:
    clock = StoppedClock()
    cache, loader = fake_cache(with_staleness(Staleness(5000)), clock)
    cache.get_table_metadata(TABLE)
    loader.tables[TABLE] = FakeTable(101)
    clock.seconds = 5.0
    assert cache.get_table_metadata(TABLE).current_snapshot_id == 100
    clock.seconds = 5.1
    assert cache.get_table_metadata(TABLE).current_snapshot_id == 101
    assert loader.asked == ["table", "table"]


def test_a_change_forces_one_check_under_manual_staleness() -> None:
    cache, loader = fake_cache(with_staleness(MANUAL))
    cache.get_table_metadata(TABLE)
    loader.tables[TABLE] = FakeTable(101)
    cache.invalidate(TABLE, InvalidationType.DATA_CHANGE)
    loader.asked.clear()
    assert cache.get_table_metadata(TABLE).current_snapshot_id == 101
    cache.get_table_metadata(TABLE)
    assert loader.asked == ["table"]


def test_stricter_staleness_holds_for_what_was_cached_before() -> None:
    cache, loader = fake_cache(with_staleness(MANUAL))
    cache.get_table_metadata(TABLE)
    loader.tables[TABLE] = FakeTable(101)
    cache.configure(cache.settings.changed("cache.staleness", "bounded(100000)"))
    assert cache.get_table_metadata(TABLE).current_snapshot_id == 101


def test_a_refresh_does_only_what_has_changed() -> None:
    cache, loader = fake_cache()
    cache.get_complete_metadata(TABLE, include_partitions=True)
    loader.asked.clear()
    assert cache.refresh_table(TABLE) == Refreshed(snapshot_changed=False, schema_changed=False)
    assert loader.asked == ["table"]
    loader.tables[TABLE] = FakeTable(100, 1)
    assert cache.refresh_table(TABLE).schema_changed
    assert cache.get_current_schema(TABLE).schema_id == 1


def test_a_refresh_of_a_table_that_is_gone_says_so_and_keeps_nothing() -> None:
    cache, loader = fake_cache(with_staleness(MANUAL))
    cache.get_complete_metadata(TABLE, include_partitions=True)
    del loader.tables[TABLE]
    with pytest.raises(NotFoundError):
        cache.refresh_table(TABLE)
    assert not any(cache.is_in_cache(TABLE, level) for level in CacheLevel)


def test_a_database_or_a_catalog_is_refreshed_table_by_table() -> None:
    cache, loader = fake_cache(with_staleness(MANUAL))
    others = [TableCacheKey(CATALOG, "db", "gone"), TableCacheKey(CATALOG, "other", "table")]
    loader.tables.update({table: FakeTable() for table in others})
    for table in (TABLE, *others):
        cache.get_complete_metadata(table)
    loader.tables = {TABLE: FakeTable(101), others[1]: FakeTable(101)}
    assert cache.refresh_database(CATALOG, "db") == 2
    assert cache.get_table_metadata(TABLE).current_snapshot_id == 101
    assert cache.get_table_metadata(others[1]).current_snapshot_id == 100
    assert not cache.is_in_cache(others[0], CacheLevel.TABLE_METADATA)
    assert cache.refresh_catalog(CATALOG) == 2
    assert cache.get_table_metadata(others[1]).current_snapshot_id == 101


def test_an_invalidation_on_the_bus_reaches_the_others() -> None:
    bus = InProcessBus()
    caches = [TieredCacheCoordinator(with_staleness(MANUAL), bus=bus) for _ in range(2)]
    for cache in caches:
        loader = FakeLoader(cache, {TABLE: FakeTable()})
        cache.register(CATALOG, lambda loader=loader: loader)
        cache.get_table_metadata(TABLE)
        loader.tables[TABLE] = FakeTable(101)
    caches[0].invalidate(TABLE, InvalidationType.DATA_CHANGE)
    assert [cache.get_table_metadata(TABLE).current_snapshot_id for cache in caches] == [101, 101]


def test_all_levels_together_stay_within_one_limit() -> None:
    cache, loader = fake_cache(replace(CacheSettings.of({}), max_bytes=20_000))
    for number in range(100):
        table = TableCacheKey(CATALOG, "db", f"t{number}")
        loader.tables[table] = FakeTable()
        cache.get_complete_metadata(table, include_partitions=True)
        assert cache.tiers.nbytes <= 20_000
    metrics = cache.get_all_metrics()
    assert metrics.total_memory_usage_bytes <= 20_000
    assert sum(stats.eviction_count for stats in metrics.level_stats.values()) > 0


def test_metrics_have_the_names_they_are_exported_under() -> None:
    cache, _ = fake_cache()
    cache.get_complete_metadata(TABLE, include_partitions=True)
    named = cache.get_all_metrics().named()
    expected = {f"cache_hit_ratio_level{number}" for number in (1, 2, 3, 4)}
    expected |= {f"avg_load_time_level{number}_ms" for number in (1, 2, 3, 4)}
    assert set(named) == expected | {"cache_memory_usage_mb", "cache_eviction_rate"}
    status = cache.get_table_cache_status(TABLE)
    assert status.loaded_levels == tuple(CacheLevel)
    assert (status.snapshot_id, status.schema_id, status.snapshot_ids) == (100, 0, (100,))


def test_a_thousand_tables_are_hit_ten_thousand_times() -> None:
    cache, loader = fake_cache()
    tables = [TableCacheKey(CATALOG, "db", f"t{number}") for number in range(1000)]
    loader.tables.update({table: FakeTable() for table in tables})
    for number in range(10_000):
        cache.get_complete_metadata(tables[number % 1000])
    assert cache.get_all_metrics().overall_hit_ratio >= 0.9
    assert sum(question.startswith("snapshot") for question in loader.asked) == 1000


def test_concurrent_access() -> None:
    cache, loader = fake_cache()

    def ask(_: int) -> None:
        for _ in range(100):
            found = cache.get_complete_metadata(TABLE)
            assert found.snapshot is not None
            assert found.schema is not None

    with ThreadPoolExecutor(100) as pool:
        list(pool.map(ask, range(100)))
    assert loader.asked.count("snapshot 100") == 1


def test_a_table_is_named_in_words_too() -> None:
    cache, _ = fake_cache()
    assert cache.get_table_metadata("db.table") is cache.get_table_metadata(f"{CATALOG}.db.table")
    for wrong in ("table", "a.b.c.d", "db.", ""):
        with pytest.raises(InvalidError, match=r"database\.table"):
            cache.get_table_metadata(wrong)
    with pytest.raises(NotFoundError, match="did you mean iceberg_catalog"):
        cache.get_table_metadata("iceberg_catalgo.db.table")
