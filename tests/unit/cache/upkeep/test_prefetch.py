"""Prefetch: companions that are not cached are loaded in the background, and no failure reaches a query."""

from collections.abc import Callable

from lakelet.cache.keys import TableCacheKey
from lakelet.cache.level import CacheLevel
from lakelet.cache.settings import CacheSettings
from tests.unit.cache.fake_loader import CATALOG, FakeTable, StoppedClock, fake_cache

A, B, GONE = (TableCacheKey(CATALOG, "db", name) for name in ("a", "b", "gone"))


def usual(options: dict[str, str] | None = None) -> tuple[object, ...]:
    """A cache in which a, b and gone were asked for three times together, with nothing cached, and what is to run."""
    clock = StoppedClock()
    cache, loader = fake_cache(CacheSettings.of(options or {}), clock)
    loader.tables = {A: FakeTable(), B: FakeTable()}
    later: list[Callable[[], None]] = []
    cache.upkeep.prefetch._submit = later.append
    for _ in range(3):
        for table in (A, B, GONE):
            cache.upkeep.asked(table)
        clock.seconds += 60
    later.clear()
    cache.upkeep.prefetch.reset()
    return cache, loader, later


def test_companions_are_loaded() -> None:
    cache, _, later = usual()
    cache.upkeep.asked(A)
    cache.upkeep.asked(B)
    assert len(later) == 2
    for run in later:
        run()
    assert all(cache.is_in_cache(B, level) for level in list(CacheLevel)[:3])
    assert not cache.is_in_cache(B, CacheLevel.PARTITION)
    assert (cache.upkeep.prefetch.loaded, cache.upkeep.prefetch.failed) == (1, 1)
    later.clear()
    cache.upkeep._clock.seconds += 59
    cache.upkeep.asked(A)
    assert later == []
    cache.upkeep._clock.seconds += 59
    cache.upkeep.asked(A)
    assert len(later) == 1


def test_it_can_be_switched_off() -> None:
    cache, _, later = usual()
    cache.configure(cache.settings.changed("cache.prefetch", "false"))
    cache.upkeep.asked(A)
    assert later == []


def test_a_full_cache_is_left_alone() -> None:
    cache, _, later = usual()
    for number in range(100):
        cache.tiers[CacheLevel.PARTITION].put(cache.key(f"d.t{number}"), number, cache.tiers.max_bytes // 100)
    cache.upkeep.asked(A)
    assert later == []


def test_tables_that_are_not_served_are_not_loaded() -> None:
    cache, _, later = usual()
    cache.configure(cache.settings.changed("tiered_cache_rollout_percentage", "0"))
    cache.upkeep.asked(A)
    assert later == []


def test_the_background_thread_does_it() -> None:
    cache, _, _ = usual()
    cache.upkeep.prefetch._submit = cache.upkeep._submit
    cache.upkeep.asked(A)
    pool = cache.upkeep._pool
    assert pool is not None
    pool.shutdown(wait=True)
    assert cache.is_in_cache(B, CacheLevel.SCHEMA)
    # Whatever comes after the end of its threads is not done, and fails nobody.
    cache.invalidate_table(B)
    cache.upkeep.asked(A)
