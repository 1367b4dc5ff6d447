"""The 80/50 % rules."""

import logging
from dataclasses import replace

import pytest

from lakelet.cache.level import CacheLevel
from lakelet.cache.settings import CacheSettings
from lakelet.cache.upkeep.adaptive_size import LEAST_SHARE, AdaptiveSize, adapted_share
from lakelet.cache.upkeep.memory_use import MemoryUse
from tests.unit.cache.fake_loader import StoppedClock, fake_cache


@pytest.mark.parametrize(
    ("share", "used", "expected"),
    [
        (1.0, 0.81, 0.8),
        (0.5, 0.99, 0.4),
        (1.0, 0.8, 1.0),
        (0.5, 0.5, 0.5),
        (0.5, 0.49, 0.6),
        (0.9, 0.1, 1.0),
        (1.0, 0.1, 1.0),
        (LEAST_SHARE, 0.99, LEAST_SHARE),
    ],
)
def test_the_share_follows_the_memory_in_use(share: float, used: float, expected: float) -> None:
    assert adapted_share(share, used) == pytest.approx(expected)


def test_it_shrinks_to_a_tenth_and_grows_back_no_further_than_configured(caplog: pytest.LogCaptureFixture) -> None:
    shares: list[float] = []
    used = [95]
    size = AdaptiveSize(shares.append, lambda: MemoryUse(used[0], 100))
    with caplog.at_level(logging.INFO):
        for _ in range(30):
            size.adjust()
        assert size.share == LEAST_SHARE
        used[0] = 10
        for _ in range(30):
            size.adjust()
    assert size.share == 1.0
    assert max(shares) == 1.0
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_unknown_memory_changes_nothing() -> None:
    size = AdaptiveSize(lambda _: pytest.fail("resized"), lambda: None)
    assert size.adjust() == 1.0


def test_the_tiers_follow_and_values_leave() -> None:
    clock = StoppedClock()
    settings = replace(CacheSettings.of({"cache.max-bytes": "1000", "cache.schema.max-bytes": "1000"}))
    cache, _ = fake_cache(settings, clock)
    tier = cache.tiers[CacheLevel.SCHEMA]
    for number in range(10):
        tier.put(cache.key(f"d.t{number}"), number, 100)
    assert cache.tiers.nbytes == 1000
    cache.upkeep.adaptive._look = lambda: MemoryUse(9, 10)
    cache.upkeep.look()
    assert cache.tiers.max_bytes == 1000
    clock.seconds += 11
    cache.upkeep.look()
    assert cache.tiers.max_bytes == 800
    assert tier.limits.max_bytes == 800
    assert cache.tiers.nbytes == 800
    cache.upkeep.look()
    assert cache.tiers.max_bytes == 800
    cache.configure(cache.settings.changed("cache.adaptive-size", "false"))
    assert cache.tiers.max_bytes == 1000
    clock.seconds += 11
    cache.upkeep.look()
    assert cache.tiers.max_bytes == 1000
