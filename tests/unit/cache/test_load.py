"""Many tables, many threads: hit ratios and loads on counts, bytes under the limit. The full form is in tests/soak."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from lakelet.cache.keys import TableCacheKey
from lakelet.cache.level import CacheLevel
from lakelet.cache.settings import CacheSettings
from lakelet.ids import seeded_numbers
from tests.unit.cache.fake_loader import CATALOG, FakeLoader, FakeTable, fake_cache


def tables(loader: FakeLoader, number: int) -> list[TableCacheKey]:
    keys = [TableCacheKey(CATALOG, "db", f"table_{one}") for one in range(number)]
    loader.tables.update({key: FakeTable() for key in keys})
    return keys


def test_cache_performance() -> None:
    """The seed's 1,000 tables × 10,000 look-ups, cold and hot: the hot ones load nothing."""
    cache, loader = fake_cache()
    keys = tables(loader, 1000)
    for number in range(10_000):
        cache.get_complete_metadata(keys[number % 1000])
    cold = [question for question in loader.asked if question != "table"]
    assert len(cold) == 2 * 1000
    loader.asked.clear()
    for number in range(10_000):
        cache.get_complete_metadata(keys[number % 1000])
    assert set(loader.asked) == {"table"}
    assert cache.get_all_metrics().overall_hit_ratio > 0.9


def test_zipf_over_a_thousand_tables_hits_95_percent() -> None:
    cache, loader = fake_cache()
    keys = tables(loader, 1000)
    numbers = seeded_numbers(4)
    chosen = numbers.zipf(1.2, 40_000)
    for number in chosen[chosen <= 1000].tolist():
        cache.get_complete_metadata(keys[number - 1])
    for level in list(CacheLevel)[:3]:
        assert cache.get_cache_stats(level).hit_ratio >= 0.95


@pytest.mark.parametrize("max_bytes", [20_000, 200_000])
def test_memory_stays_under_the_configured_bytes(max_bytes: int) -> None:
    cache, loader = fake_cache(CacheSettings.of({"cache.max-bytes": str(max_bytes)}))
    keys = tables(loader, 300)
    for number in seeded_numbers(1).integers(0, 300, 2000).tolist():
        cache.get_complete_metadata(keys[number], include_partitions=True)
        assert cache.tiers.nbytes <= max_bytes
    assert cache.get_all_metrics().total_memory_usage_bytes <= max_bytes
    assert sum(stats.eviction_count for stats in cache.tiers.stats().values()) > 0


def run_clients(table_count: int, clients: int, queries: int, options: dict[str, str]) -> FakeLoader:
    """Clients that ask for random tables, each in a thread of its own; none may fail."""
    cache, loader = fake_cache(CacheSettings.of(options))
    keys = tables(loader, table_count)

    def client(number: int) -> int:
        for one in seeded_numbers(number).integers(0, table_count, queries).tolist():
            found = cache.get_complete_metadata(keys[one])
            assert found.snapshot is not None
            cache.upkeep.asked(keys[one])
        return queries

    with ThreadPoolExecutor(clients) as pool:
        assert sum(pool.map(client, range(clients))) == clients * queries
    assert sum(cache.upkeep.history.counts().values()) == clients * queries
    assert cache.tiers.nbytes <= cache.tiers.max_bytes
    return loader


def test_many_tables_and_clients() -> None:
    loader = run_clients(1_000, 20, 50, {})
    assert len(loader.asked) >= 1000


def test_clients_of_a_cache_that_is_too_small() -> None:
    run_clients(200, 20, 50, {"cache.max-bytes": "20 kb"})
