"""Counters of the cache: hits, misses, load times and evictions per level and table, and the totals over all levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakelet.cache.level import CacheLevel

_MEGABYTE = 1 << 20


@dataclass(slots=True)
class Counters:
    """Counts that grow; changed under the lock of their owner."""

    hits: int = 0
    misses: int = 0
    loads: int = 0
    load_failures: int = 0
    load_seconds: float = 0.0
    evictions: int = 0


@dataclass(frozen=True, slots=True)
class CacheStats:
    """The counts of a level, of all tables or of some."""

    hit_count: int
    miss_count: int
    load_count: int
    load_failure_count: int
    total_load_seconds: float
    eviction_count: int
    entries: int
    nbytes: int

    @property
    def hit_ratio(self) -> float:
        """Hits among all requests; 1 where there was none."""
        requests = self.hit_count + self.miss_count
        return self.hit_count / requests if requests else 1.0

    @property
    def average_load_ms(self) -> float:
        """The average time of a load."""
        return self.total_load_seconds * 1000 / self.load_count if self.load_count else 0.0

    @staticmethod
    def of(counters: Counters, entries: int, nbytes: int) -> CacheStats:
        """The counts at this moment."""
        return CacheStats(
            counters.hits,
            counters.misses,
            counters.loads,
            counters.load_failures,
            counters.load_seconds,
            counters.evictions,
            entries,
            nbytes,
        )


@dataclass(frozen=True, slots=True)
class TieredCacheMetrics:
    """The counts of all levels."""

    level_stats: Mapping[CacheLevel, CacheStats]
    total_cached_tables: int
    total_cached_snapshots: int
    total_cached_schemas: int
    total_cached_partitions: int
    overall_hit_ratio: float
    total_memory_usage_bytes: int
    eviction_rate: float = 0.0
    comparisons: int = 0
    differences: int = 0

    def named(self) -> dict[str, float]:
        """The metrics by the names under which they are exported; ratios in percent."""
        found: dict[str, float] = {}
        for level, stats in self.level_stats.items():
            found[f"cache_hit_ratio_level{level.number}"] = stats.hit_ratio * 100
            found[f"avg_load_time_level{level.number}_ms"] = stats.average_load_ms
        found["cache_memory_usage_mb"] = self.total_memory_usage_bytes / _MEGABYTE
        found["cache_eviction_rate"] = self.eviction_rate
        return found

    def counters(self) -> dict[str, float]:
        """All counts and totals by name, for exporters of metrics: of each level, and over all levels."""
        found: dict[str, float] = {}
        for level, stats in self.level_stats.items():
            found[f"cache_hit_count_level{level.number}"] = stats.hit_count
            found[f"cache_miss_count_level{level.number}"] = stats.miss_count
            found[f"cache_load_count_level{level.number}"] = stats.load_count
            found[f"cache_load_failure_count_level{level.number}"] = stats.load_failure_count
            found[f"cache_load_time_level{level.number}_ms"] = stats.total_load_seconds * 1000
            found[f"cache_eviction_count_level{level.number}"] = stats.eviction_count
            found[f"cache_entries_level{level.number}"] = stats.entries
            found[f"cache_bytes_level{level.number}"] = stats.nbytes
        found["total_cached_tables"] = self.total_cached_tables
        found["total_cached_snapshots"] = self.total_cached_snapshots
        found["total_cached_schemas"] = self.total_cached_schemas
        found["total_cached_partitions"] = self.total_cached_partitions
        found["overall_hit_ratio"] = self.overall_hit_ratio
        found["total_memory_usage_bytes"] = self.total_memory_usage_bytes
        found["compatibility_comparisons"] = self.comparisons
        found["compatibility_differences"] = self.differences
        return {**self.named(), **found}


@dataclass(frozen=True, slots=True)
class TableCacheStatus:
    """What is cached of a table: the levels, the current snapshot and schema as far as they are known, and the counts."""

    loaded_levels: tuple[CacheLevel, ...]
    snapshot_id: int | None
    schema_id: int | None
    snapshot_ids: tuple[int, ...] = ()
    schema_ids: tuple[int, ...] = ()
    level_stats: Mapping[CacheLevel, CacheStats] = field(default_factory=dict)
