"""Rollout: which tables a cache serves that is switched on for a percentage of them."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

from lakelet.cache.keys import TableCacheKey

_WHOLE = 100


def in_rollout(table: TableCacheKey, percentage: int) -> bool:
    """Whether the cache serves a table. The answer is the same in every process, and on all branches of a table; a greater
    percentage takes in more tables and loses none."""
    return percentage >= _WHOLE or place(table) < percentage


@lru_cache(maxsize=20_000)
def place(table: TableCacheKey) -> int:
    """The percentage, 0 to 99, above which a table is taken in."""
    text = "\0".join((table.catalog, table.database, table.table))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") % _WHOLE
