"""Alerts: metrics of the cache beyond their thresholds, each with the option that helps.

hit ratio      level 1 < 90 %   level 2 < 80 %    level 3 < 95 %   level 4 < 70 %     of at least 100 requests
average load   level 1 > 50 ms  level 2 > 100 ms  level 3 > 50 ms  level 4 > 500 ms
memory > 10 GB, evictions > 100 a second
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

from lakelet.cache.level import CacheLevel
from lakelet.cache.stats import TieredCacheMetrics
from lakelet.options.cache import CACHE_LOAD_THREADS, CACHE_MAX_BYTES, TIER_OPTIONS

_LOG = logging.getLogger(__name__)
_LEAST_HITS = {
    CacheLevel.TABLE_METADATA: 0.90,
    CacheLevel.SNAPSHOT: 0.80,
    CacheLevel.SCHEMA: 0.95,
    CacheLevel.PARTITION: 0.70,
}
_MOST_LOAD_MS = {
    CacheLevel.TABLE_METADATA: 50.0,
    CacheLevel.SNAPSHOT: 100.0,
    CacheLevel.SCHEMA: 50.0,
    CacheLevel.PARTITION: 500.0,
}
_MOST_BYTES = 10 << 30
_MOST_EVICTIONS = 100.0
# A cache that was just opened has few hits; fewer requests than these say nothing about its size.
LEAST_REQUESTS = 100
_OPTIONS = dict(zip(CacheLevel, TIER_OPTIONS, strict=True))


@dataclass(frozen=True, slots=True)
class Alert:
    """A metric beyond its threshold: its value, the threshold, the option to change, and all of it as a sentence."""

    metric: str
    value: float
    threshold: float
    option: str
    message: str


def alerts_of(metrics: TieredCacheMetrics) -> tuple[Alert, ...]:
    """The alerts that these metrics give, in the order of the levels."""
    found = []
    named = metrics.named()
    for level, stats in metrics.level_stats.items():
        expire, entries, _ = _OPTIONS[level]
        requests, least = stats.hit_count + stats.miss_count, _LEAST_HITS[level] * 100
        metric = f"cache_hit_ratio_level{level.number}"
        if requests >= LEAST_REQUESTS and named[metric] < least:
            option = entries.name if stats.eviction_count else expire.name
            found.append(_alert(metric, named[metric], least, option, f"{level.value}: few hits", "%"))
        metric, most = f"avg_load_time_level{level.number}_ms", _MOST_LOAD_MS[level]
        if named[metric] > most:
            found.append(
                _alert(metric, named[metric], most, CACHE_LOAD_THREADS.name, f"{level.value}: slow loads", " ms")
            )
    if metrics.total_memory_usage_bytes > _MOST_BYTES:
        used, most = metrics.total_memory_usage_bytes / (1 << 20), _MOST_BYTES / (1 << 20)
        found.append(_alert("cache_memory_usage_mb", used, most, CACHE_MAX_BYTES.name, "much memory", " MB"))
    if metrics.eviction_rate > _MOST_EVICTIONS:
        rate = metrics.eviction_rate
        found.append(
            _alert(
                "cache_eviction_rate", rate, _MOST_EVICTIONS, CACHE_MAX_BYTES.name, "values leave early", " a second"
            )
        )
    return tuple(found)


def _alert(metric: str, value: float, threshold: float, option: str, what: str, unit: str) -> Alert:
    return Alert(
        metric,
        value,
        threshold,
        option,
        f"{what}: {metric} is {value:.1f}{unit}, the threshold is {threshold:g}{unit}; see {option}",
    )


class AlertLog:
    """Logs an alert when it begins and when it ends, and not in between."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active: frozenset[str] = frozenset()

    def tell(self, alerts: tuple[Alert, ...]) -> None:
        """Log what has changed since the last call."""
        now = frozenset(alert.metric for alert in alerts)
        with self._lock:
            before, self._active = self._active, now
        for alert in alerts:
            if alert.metric not in before:
                _LOG.info("metadata cache: %s", alert.message)
        for metric in sorted(before - now):
            _LOG.info("metadata cache: %s is within its threshold again", metric)
