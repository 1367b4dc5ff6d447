"""Limits of callers over several nodes, on a real Redis."""

import asyncio
import itertools

import pytest

from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.cluster.redis.connection import RedisTimes, connect_redis
from lakelet.cluster.redis.shared_usage import RedisUsage
from lakelet.errors import OverloadedError
from lakelet.service.access.caller import Caller
from lakelet.service.access.rate_limits import RateLimit, RateLimits
from lakelet.service.peers.shared_limits import SharedLimits
from tests.services.redis import RedisService
from tests.unit.moving_clock import MovingClock

_NUMBERS = itertools.count()
QUICK = RedisTimes(connect_seconds=0.5, answer_seconds=0.5, repeats=0)
SHOP = Caller("shop", key_id="k1")


def taken(limits: RateLimits, size: int = 0) -> int:
    """How many requests are taken until one is refused."""
    count = 0
    while True:
        try:
            limits.take(SHOP, size)
        except OverloadedError:
            return count
        count += 1


@pytest.mark.parametrize(("limit", "size"), [(RateLimit(10, 0), 0), (RateLimit(0, 1000), 100)])
def test_nodes_together_take_what_one_would(redis_service: RedisService, limit: RateLimit, size: int) -> None:
    async def run() -> None:
        clock, keys = MovingClock(), ClusterKeys(f"limits-{next(_NUMBERS)}:")
        async with connect_redis(redis_service.url, QUICK) as client:
            limits = [RateLimits(limit, clock) for _ in range(3)]
            shared = [SharedLimits(one, RedisUsage(client, keys).exchange) for one in limits]
            total = 0
            for _ in range(120):
                total += sum(taken(one, size) for one in limits)
                for one in (*shared, *shared):
                    await one.exchange()
                clock.move(minutes=0.25 / 60)
            # Ten a second for half a minute, and at first what a second gives to each node.
            assert 290 <= total <= 335
            # An idle caller costs nothing.
            clock.move(minutes=1)
            for one in (*shared, *shared):
                await one.exchange()
            await client.delete(keys.usage("k1"))
            for one in shared:
                await one.exchange()
            assert not await client.exists(keys.usage("k1"))

    asyncio.run(run())


def test_without_redis_each_node_limits_alone(redis_service: RedisService) -> None:
    async def run() -> None:
        clock, keys = MovingClock(), ClusterKeys(f"limits-{next(_NUMBERS)}:")
        async with connect_redis(redis_service.url, QUICK) as client:
            limits = [RateLimits(RateLimit(10, 0), clock) for _ in range(2)]
            shared = [SharedLimits(one, RedisUsage(client, keys).exchange) for one in limits]
            redis_service.kill()
            try:
                for _ in range(3):
                    assert [taken(one) for one in limits] == [10, 10]
                    for one in shared:
                        await one.exchange()
                    clock.move(minutes=1 / 60)
            finally:
                redis_service.start()
            # Nobody pays for what was taken in the outage; from now on both share a limit again.
            total = 0
            for _ in range(80):
                total += sum(taken(one) for one in limits)
                for one in shared:
                    await one.exchange()
                clock.move(minutes=0.25 / 60)
            assert 190 <= total <= 230

    asyncio.run(run())
