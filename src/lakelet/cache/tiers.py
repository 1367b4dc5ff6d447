"""The four tiers together, with one limit on the bytes of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from lakelet.cache.keys import PartitionCacheKey, SchemaCacheKey, SnapshotCacheKey, TableCacheKey
from lakelet.cache.level import CacheLevel
from lakelet.cache.settings import CacheSettings
from lakelet.cache.stats import CacheStats, TableCacheStatus, TieredCacheMetrics
from lakelet.cache.tier import Tier
from lakelet.clock import Clock

_RATE_SECONDS = 1.0


class Tiers:
    """The tiers by level."""

    def __init__(self, settings: CacheSettings, clock: Clock) -> None:
        self._clock = clock
        self._max_bytes = settings.max_bytes
        # Called with the table of every value that is put.
        self.on_put: Callable[[TableCacheKey], None] = lambda _: None
        self._tiers: dict[CacheLevel, Tier[Any]] = {
            level: Tier(level, settings.limits[level], clock, self._was_put) for level in CacheLevel
        }
        self._counted = (clock.monotonic(), 0)
        self._rate = 0.0

    def __getitem__(self, level: CacheLevel) -> Tier[Any]:
        return self._tiers[level]

    @property
    def nbytes(self) -> int:
        """The weight of all values."""
        return sum(tier.nbytes for tier in self._tiers.values())

    @property
    def max_bytes(self) -> int:
        """The limit on it."""
        return self._max_bytes

    def reset(self) -> None:
        """Start anew in a forked process."""
        for tier in self._tiers.values():
            tier.reset()

    def resize(self, settings: CacheSettings, share: float = 1.0) -> None:
        """Other limits from now on: this share of the bytes that the settings allow."""
        self._max_bytes = int(settings.max_bytes * share)
        for level, tier in self._tiers.items():
            limits = settings.limits[level]
            tier.resize(replace(limits, max_bytes=int(limits.max_bytes * share)))
        self._enforce()

    def remove(self, levels: Iterable[CacheLevel], matches: Callable[[TableCacheKey], bool]) -> None:
        """Drop these levels of the tables that match."""
        for level in levels:
            self._tiers[level].remove_matching(matches)

    def stats(self, matches: Callable[[TableCacheKey], bool] | None = None) -> dict[CacheLevel, CacheStats]:
        """The counts of each level, of all tables or of those that match."""
        return {level: tier.stats(matches) for level, tier in self._tiers.items()}

    def status(self, table: TableCacheKey, snapshot_id: int | None, schema_id: int | None) -> TableCacheStatus:
        """What is cached of a table whose current snapshot and schema are these, as far as they are known."""
        keys = {level: tier.live_keys(table) for level, tier in self._tiers.items()}
        snapshots = {key.snapshot_id for key in keys[CacheLevel.SNAPSHOT] if hasattr(key, "snapshot_id")}
        schemas = {key.schema_id for key in keys[CacheLevel.SCHEMA] if hasattr(key, "schema_id")}
        return TableCacheStatus(
            tuple(level for level in CacheLevel if keys[level]),
            snapshot_id,
            schema_id,
            tuple(sorted(snapshots)),
            tuple(sorted(schemas)),
            self.stats(lambda other: other == table),
        )

    def metrics(self, *, counts_values: bool = True) -> TieredCacheMetrics:
        """The counts over all levels; evictions per second over a second at least, since they were last computed. Without
        `counts_values` the numbers of snapshots, schemas and partitions, for which all values are looked at, are 0."""
        snapshots = self._tiers[CacheLevel.SNAPSHOT].values_of(SnapshotCacheKey) if counts_values else ()
        schemas = self._tiers[CacheLevel.SCHEMA].values_of(SchemaCacheKey) if counts_values else ()
        partitions = self._tiers[CacheLevel.PARTITION].values_of(PartitionCacheKey) if counts_values else ()
        stats = self.stats()
        hits = sum(one.hit_count for one in stats.values())
        requests = hits + sum(one.miss_count for one in stats.values())
        evictions, now = sum(one.eviction_count for one in stats.values()), self._clock.monotonic()
        then, before = self._counted
        if now - then >= _RATE_SECONDS:
            # Over less time the rate would say nothing, and whoever asks first would take it away from the others.
            self._counted, self._rate = (now, evictions), (evictions - before) / (now - then)
        return TieredCacheMetrics(
            stats,
            len(self._tiers[CacheLevel.TABLE_METADATA].tables()),
            len(snapshots),
            len(schemas),
            sum(len(value.partitions) for value in partitions),
            hits / requests if requests else 1.0,
            self.nbytes,
            self._rate,
        )

    def _was_put(self, table: TableCacheKey) -> None:
        self._enforce()
        self.on_put(table)

    def _enforce(self) -> None:
        """Evict from the heaviest tier until all are within the limit."""
        while self.nbytes > self._max_bytes:
            heaviest = max(self._tiers.values(), key=lambda tier: tier.nbytes)
            if not heaviest.evict_oldest():
                return
