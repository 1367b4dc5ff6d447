"""One tier: its limits, its expiry, its counters, and loading once for many threads."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lakelet.cache.keys import SchemaCacheKey, TableCacheKey
from lakelet.cache.level import CacheLevel
from lakelet.cache.tier import Tier, TierLimits
from lakelet.errors import UnavailableError
from tests.unit.cache.fake_loader import StoppedClock

TABLE = TableCacheKey("c", "d", "t")


def key(number: int, table: TableCacheKey = TABLE) -> SchemaCacheKey:
    return SchemaCacheKey(table, number)


def tier(entries: int = 100, nbytes: int = 1000, seconds: float = 60.0) -> tuple[Tier[str], StoppedClock]:
    clock = StoppedClock()
    return Tier(CacheLevel.SCHEMA, TierLimits(entries, nbytes, seconds), clock), clock


def test_the_least_recently_used_leave_first() -> None:
    cache, _ = tier(entries=2)
    cache.put(key(1), "one", 1)
    cache.put(key(2), "two", 1)
    assert cache.get(key(1)) == "one"
    cache.put(key(3), "three", 1)
    assert [cache.peek(key(number)) for number in (1, 2, 3)] == ["one", None, "three"]
    assert cache.stats().eviction_count == 1


def test_bytes_are_limited_and_a_value_over_the_limit_is_not_kept() -> None:
    cache, _ = tier(nbytes=10)
    cache.put(key(1), "one", 6)
    cache.put(key(2), "two", 6)
    cache.put(key(3), "huge", 11)
    assert [cache.peek(key(number)) for number in (1, 2, 3)] == [None, "two", None]
    assert cache.nbytes == 6


def test_a_value_put_again_counts_once() -> None:
    cache, _ = tier()
    cache.put(key(1), "one", 6)
    cache.put(key(1), "other", 4)
    assert (cache.peek(key(1)), cache.nbytes, cache.stats().entries) == ("other", 4, 1)


def test_values_expire() -> None:
    cache, clock = tier(seconds=60)
    cache.put(key(1), "one", 1)
    clock.seconds = 59.9
    assert cache.get(key(1)) == "one"
    assert cache.live_keys(TABLE) == [key(1)]
    clock.seconds = 60.0
    assert cache.live_keys(TABLE) == []
    assert cache.get(key(1)) is None
    assert cache.nbytes == 0


def test_a_tier_without_entries_keeps_nothing() -> None:
    cache, _ = tier(entries=0)
    assert cache.load(key(1), lambda: "one", lambda _: 1) == "one"
    assert cache.peek(key(1)) is None


def test_hits_misses_and_load_times_are_counted_in_total_and_by_table() -> None:
    cache, clock = tier()
    other = TableCacheKey("c", "d", "other")

    def slow() -> str:
        clock.seconds += 0.5
        return "one"

    for _ in range(3):
        cache.load(key(1), slow, lambda _: 5)
    cache.load(key(1, other), lambda: "two", lambda _: 7)
    total, one = cache.stats(), cache.stats(lambda table: table == TABLE)
    assert (total.hit_count, total.miss_count, total.load_count, total.entries, total.nbytes) == (2, 2, 2, 2, 12)
    assert (one.hit_count, one.miss_count, one.entries, one.nbytes) == (2, 1, 1, 5)
    assert one.average_load_ms == 500
    assert one.hit_ratio == 2 / 3


def test_a_hundred_threads_that_miss_one_key_load_it_once() -> None:
    cache, _ = tier()
    loads, start = [], threading.Barrier(100)

    def load() -> str:
        loads.append(1)
        return "one"

    def ask(_: int) -> str:
        start.wait()
        return cache.load(key(1), load, lambda _: 1)

    with ThreadPoolExecutor(100) as pool:
        assert set(pool.map(ask, range(100))) == {"one"}
    assert len(loads) == 1


def test_a_failure_is_given_to_all_who_wait_and_is_not_kept() -> None:
    cache, _ = tier()
    entered, go_on = threading.Event(), threading.Event()

    def fail() -> str:
        entered.set()
        go_on.wait()
        raise UnavailableError("the store is down")

    def ask() -> str:
        return cache.load(key(1), fail, lambda _: 1)

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(ask)
        entered.wait()
        others = [pool.submit(ask) for _ in range(2)]
        while cache._flights.waiting(key(1)) < 2:
            pass
        go_on.set()
        for asked in (first, *others):
            with pytest.raises(UnavailableError, match="is down"):
                asked.result()
    assert cache.stats().load_failure_count == 1
    assert cache.load(key(1), lambda: "there again", lambda _: 1) == "there again"


def test_all_of_a_table_or_of_a_database_can_be_dropped() -> None:
    cache, _ = tier()
    beside, elsewhere = TableCacheKey("c", "d", "beside"), TableCacheKey("c", "other", "t")
    for table in (TABLE, beside, elsewhere):
        cache.put(key(1, table), "one", 1)
        cache.put(key(2, table), "two", 1)
    cache.remove_table(TABLE)
    assert set(cache.tables()) == {beside, elsewhere}
    cache.remove_matching(lambda table: table.database == "d")
    assert cache.tables() == [elsewhere]
    assert cache.nbytes == 2


def test_smaller_limits_evict_at_once() -> None:
    cache, _ = tier()
    for number in range(10):
        cache.put(key(number), "one", 1)
    cache.resize(TierLimits(3, 1000, 60))
    assert [number for number in range(10) if cache.peek(key(number))] == [7, 8, 9]


def test_a_release_inside_of_another_call_waits_for_nothing() -> None:
    cache, _ = tier()
    cache.put(key(1), "one", 1)

    def collect(_: TableCacheKey) -> bool:
        """Releases inside of a call that holds the lock, as the garbage collector may."""
        cache.release()
        return False

    cache.remove_matching(collect)
    assert cache.get(key(1)) == "one"
    cache.release()
    assert cache.get(key(1)) is None
    assert (cache.nbytes, cache.tables()) == (0, [])
