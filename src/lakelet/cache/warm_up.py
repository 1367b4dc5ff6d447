"""Warm-up: load levels 1 to 3 of named tables, or of the hottest, several at a time, before a query asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lakelet.cache.coordinator import TableLike, TieredCacheCoordinator

_THREADS = 10


@dataclass(frozen=True, slots=True)
class WarmedUp:
    """The tables that were loaded, and for those that were not the reason."""

    loaded: tuple[str, ...]
    failed: tuple[tuple[str, str], ...]


def warm_up_hottest(cache: TieredCacheCoordinator, number: int) -> WarmedUp:
    """Load the tables that queries asked for most often in the last 24 hours."""
    return warm_up(cache, [table for table, _ in cache.upkeep.hottest(number)])


def warm_up(cache: TieredCacheCoordinator, tables: Sequence[TableLike]) -> WarmedUp:
    """Load the tables; one that fails keeps no other from being loaded. Partitions are too heavy to be loaded unasked."""
    keys = [cache.key(table) for table in tables]
    if not keys:
        return WarmedUp((), ())

    def load(place: int) -> str | None:
        try:
            cache.get_complete_metadata(keys[place])
        except Exception as error:
            # Whatever it is, the other tables are loaded.
            return str(error) or type(error).__name__
        return None

    with ThreadPoolExecutor(min(_THREADS, len(keys)), thread_name_prefix="lakelet-warm-up") as pool:
        results = list(pool.map(load, range(len(keys))))
    pairs = list(zip(keys, results, strict=True))
    return WarmedUp(
        tuple(str(key) for key, error in pairs if error is None),
        tuple((str(key), error) for key, error in pairs if error is not None),
    )
