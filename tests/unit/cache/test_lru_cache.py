"""What a cache keeps, and the order of eviction."""

import os

from lakelet.cache.lru_cache import LruCache


def test_the_least_recently_used_goes_first() -> None:
    cache: LruCache[object] = LruCache()
    for name in "abc":
        cache.put(name, name.upper(), 10, limit=30)
    assert cache.get("a") == "A"
    cache.put("d", "D", 10, limit=30)
    assert [cache.get(name) for name in "abcd"] == ["A", None, "C", "D"]
    assert cache.weight == 30


def test_a_value_in_place_of_another_is_counted_once() -> None:
    cache: LruCache[object] = LruCache()
    cache.put("a", 1, 10, limit=30)
    cache.put("a", 2, 20, limit=30)
    assert (cache.get("a"), cache.weight) == (2, 20)


def test_what_is_too_large_is_not_kept_and_drops_nothing() -> None:
    cache: LruCache[object] = LruCache()
    cache.put("a", 1, 10, limit=30)
    cache.put("b", 2, 31, limit=30)
    assert (cache.get("a"), cache.get("b"), cache.weight) == (1, None, 10)


def test_a_smaller_limit_makes_room() -> None:
    cache: LruCache[object] = LruCache()
    for name in "abc":
        cache.put(name, name, 10, limit=100)
    cache.put("d", "d", 10, limit=20)
    assert [cache.get(name) for name in "abcd"] == [None, None, "c", "d"]


def test_a_value_is_made_once_while_it_is_kept() -> None:
    cache: LruCache[str] = LruCache()
    made = []

    def make() -> str:
        made.append(1)
        return "x"

    for _ in range(3):
        assert cache.load("k", make, len, limit=5) == "x"
    assert len(made) == 1
    cache.clear()
    assert (cache.load("k", make, len, limit=0), len(made), cache.weight) == ("x", 2, 0)
    cache.load("k", make, len, limit=0)
    assert len(made) == 3


def test_values_weigh_one_each_unless_it_is_told() -> None:
    cache: LruCache[str] = LruCache()
    for name in "abc":
        assert cache.load(name, lambda name=name: name.upper(), limit=2) == name.upper()  # type: ignore[misc]
    assert [cache.get(name) for name in "abc"] == [None, "B", "C"]


def test_a_forked_process_starts_with_an_empty_cache_and_a_free_lock() -> None:
    cache: LruCache[str] = LruCache()
    cache.put("a", "x", 5, limit=10)
    # Held as by a thread that the child will not have.
    with cache._lock:
        child = os.fork()
        if child == 0:
            free = cache._lock.acquire(blocking=False)
            if free:
                cache._lock.release()
            os._exit(0 if free and cache.get("a") is None and cache.weight == 0 else 1)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert (cache.get("a"), cache.weight) == ("x", 5)
