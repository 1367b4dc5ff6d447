"""Leases and their fencing on a real Redis."""

import asyncio
import itertools

import pytest

from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.cluster.hash_ring import HashRing
from lakelet.cluster.redis.connection import connect_redis
from lakelet.cluster.redis.leases import RedisLeases
from lakelet.cluster.redis.ring_store import RING_LEASE, RingStore
from tests.services.redis import RedisService

_PREFIXES = itertools.count()


@pytest.fixture
def keys() -> ClusterKeys:
    return ClusterKeys(f"leases-{next(_PREFIXES)}:")


def test_one_holder_at_a_time_and_the_later_has_the_higher_token(
    redis_service: RedisService, keys: ClusterKeys
) -> None:
    async def run() -> None:
        async with connect_redis(redis_service.url) as client:
            one, other = RedisLeases(client, keys, "one"), RedisLeases(client, keys, "other one")
            first = await one.acquire("compact", 60)
            assert first is not None
            assert await other.acquire("compact", 60) is None
            assert await one.acquire("compact", 60) == first
            assert await one.renew(first, 60)
            await client.flushall()
            second = await other.acquire("compact", 60)
            assert second is not None
            assert second.fence > first.fence
            assert not await one.renew(first, 60)
            await one.release(first)
            assert await other.renew(second, 60)
            # A clock that goes back gives no token twice.
            await client.set(keys.fence("compact"), second.fence + 10**9)
            await other.release(second)
            third = await one.acquire("compact", 60)
            assert third is not None
            assert third.fence == second.fence + 10**9 + 1

    asyncio.run(run())


def test_whoever_lost_the_lease_writes_no_ring(redis_service: RedisService, keys: ClusterKeys) -> None:
    async def run() -> None:
        async with connect_redis(redis_service.url) as client:
            old = await RedisLeases(client, keys, "old").acquire(RING_LEASE, 0.001)
            assert old is not None
            while await client.exists(keys.lease(RING_LEASE)):
                await asyncio.sleep(0.001)
            new = await RedisLeases(client, keys, "new").acquire(RING_LEASE, 60)
            assert new is not None
            rings = RingStore(client, keys)
            assert await rings.replace(new, HashRing.of(["new"]), above=6) == 7
            assert await rings.replace(old, HashRing.of(["old"]), above=100) is None
            found = await rings.load()
            assert found is not None
            assert (found[0], found[1].nodes) == (7, {"new"})
            assert found[1].points == HashRing.of(["new"]).points
            assert await rings.replace(new, HashRing.of([]), above=0) == 8
            assert await rings.size() == (8, 0)

    asyncio.run(run())


def test_of_many_that_race_one_holds(redis_service: RedisService, keys: ClusterKeys) -> None:
    async def run() -> None:
        async with connect_redis(redis_service.url) as client:
            holders = [RedisLeases(client, keys, f"n{number}") for number in range(20)]
            won = await asyncio.gather(*(one.acquire("x", 60) for one in holders))
            assert len([lease for lease in won if lease]) == 1

    asyncio.run(run())
