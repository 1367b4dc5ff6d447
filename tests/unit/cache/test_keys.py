"""Keys of the cache."""

import pickle

from lakelet.cache.keys import DerivedCacheKey, TableCacheKey

TABLE = TableCacheKey("c", "d", "t")


def test_a_key_is_hashed_once_and_equal_keys_alike() -> None:
    hashed: list[int] = []

    class Name:
        def __hash__(self) -> int:
            hashed.append(1)
            return 7

    key = DerivedCacheKey(TABLE, (Name(),))
    assert {key: 1}[key] == 1
    assert hash(key) == hash(key)
    assert hashed == [1]
    plain = DerivedCacheKey(TABLE, ("manifest", "m"))
    assert plain == DerivedCacheKey(TABLE, ("manifest", "m"))
    assert hash(plain) == hash(pickle.loads(pickle.dumps(plain)))
