"""Alerts: every threshold of the design, the option that helps, and one line of the log for each change."""

import logging

import pytest

from lakelet.cache.level import CacheLevel
from lakelet.cache.stats import CacheStats, TieredCacheMetrics
from lakelet.cache.upkeep.alerts import AlertLog, alerts_of
from lakelet.options.cache import CACHE_OPTIONS

FINE = CacheStats(1000, 0, 10, 0, 0.0, 0, 1, 1)


def metrics(
    level: CacheLevel = CacheLevel.SCHEMA, stats: CacheStats = FINE, nbytes: int = 0, rate: float = 0.0
) -> TieredCacheMetrics:
    return TieredCacheMetrics({**dict.fromkeys(CacheLevel, FINE), level: stats}, 1, 1, 1, 1, 1.0, nbytes, rate)


@pytest.mark.parametrize(("level", "percent"), list(zip(CacheLevel, (90, 80, 95, 70), strict=True)))
def test_few_hits(level: CacheLevel, percent: int) -> None:
    at, below = (CacheStats(number, 1000 - number, 1, 0, 0.0, 0, 1, 1) for number in (percent * 10, percent * 10 - 1))
    assert alerts_of(metrics(level, at)) == ()
    (found,) = alerts_of(metrics(level, below))
    assert (found.metric, found.threshold) == (f"cache_hit_ratio_level{level.number}", percent)
    assert found.option.endswith("expire_seconds")
    evicted = CacheStats(1, 999, 1, 0, 0.0, 5, 1, 1)
    (found,) = alerts_of(metrics(level, evicted))
    assert found.option.endswith("max_size")
    assert found.option in found.message


def test_a_cache_that_was_hardly_used_alerts_nobody() -> None:
    assert alerts_of(metrics(CacheLevel.SNAPSHOT, CacheStats(0, 99, 99, 0, 0.0, 0, 1, 1))) == ()


@pytest.mark.parametrize(("level", "most"), list(zip(CacheLevel, (50, 100, 50, 500), strict=True)))
def test_slow_loads(level: CacheLevel, most: int) -> None:
    assert alerts_of(metrics(level, CacheStats(1000, 0, 10, 0, most / 100, 0, 1, 1))) == ()
    (found,) = alerts_of(metrics(level, CacheStats(1000, 0, 10, 0, most / 100 + 0.1, 0, 1, 1)))
    assert (found.metric, found.threshold) == (f"avg_load_time_level{level.number}_ms", most)


def test_memory_and_evictions() -> None:
    assert alerts_of(metrics(nbytes=10 << 30, rate=100.0)) == ()
    memory, evictions = alerts_of(metrics(nbytes=(10 << 30) + 1, rate=100.1))
    assert (memory.metric, evictions.metric) == ("cache_memory_usage_mb", "cache_eviction_rate")
    assert {memory.option, evictions.option} <= {option.name for option in CACHE_OPTIONS}


def test_an_alert_is_logged_when_it_begins_and_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    log = AlertLog()
    with caplog.at_level(logging.INFO):
        for rate in (0.0, 200.0, 300.0, 200.0, 0.0, 0.0, 200.0):
            log.tell(alerts_of(metrics(rate=rate)))
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO", "INFO"]
    assert "cache.max-bytes" in caplog.text
