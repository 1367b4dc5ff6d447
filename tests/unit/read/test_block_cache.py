"""What the cache of blocks keeps, and what goes first."""

from lakelet.read.block_cache import BlockCache


def test_the_least_recently_used_goes_first() -> None:
    cache = BlockCache()
    for name in "abc":
        cache.put(name, name.upper(), 10, limit_bytes=30)
    assert cache.get("a") == "A"
    cache.put("d", "D", 10, limit_bytes=30)
    assert [cache.get(name) for name in "abcd"] == ["A", None, "C", "D"]
    assert cache.nbytes == 30


def test_a_value_in_place_of_another_is_counted_once() -> None:
    cache = BlockCache()
    cache.put("a", 1, 10, limit_bytes=30)
    cache.put("a", 2, 20, limit_bytes=30)
    assert (cache.get("a"), cache.nbytes) == (2, 20)


def test_what_is_too_large_is_not_kept_and_drops_nothing() -> None:
    cache = BlockCache()
    cache.put("a", 1, 10, limit_bytes=30)
    cache.put("b", 2, 31, limit_bytes=30)
    assert (cache.get("a"), cache.get("b"), cache.nbytes) == (1, None, 10)


def test_a_smaller_limit_makes_room() -> None:
    cache = BlockCache()
    for name in "abc":
        cache.put(name, name, 10, limit_bytes=100)
    cache.put("d", "d", 10, limit_bytes=20)
    assert [cache.get(name) for name in "abcd"] == [None, None, "c", "d"]


def test_a_value_is_made_once_while_it_is_kept() -> None:
    cache, made = BlockCache(), []

    def make() -> str:
        made.append(1)
        return "x"

    for _ in range(3):
        assert cache.load("k", make, len, limit_bytes=5) == "x"
    assert len(made) == 1
    cache.clear()
    assert (cache.load("k", make, len, limit_bytes=0), len(made), cache.nbytes) == ("x", 2, 0)
    cache.load("k", make, len, limit_bytes=0)
    assert len(made) == 3
