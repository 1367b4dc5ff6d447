"""Turns of several nodes, on a real Redis."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.cluster.redis.connection import RedisTimes, connect_redis
from lakelet.cluster.redis.turns import RedisTurns
from lakelet.cluster.turn import NotNow, Turn
from tests.services.redis import RedisService

_NUMBERS = itertools.count()
QUICK = RedisTimes(connect_seconds=0.5, answer_seconds=0.5, repeats=0)


@asynccontextmanager
async def nodes(service: RedisService, *, lease_seconds: float = 30.0) -> AsyncIterator[tuple[RedisTurns, RedisTurns]]:
    keys = ClusterKeys(f"turns-{next(_NUMBERS)}:")
    async with connect_redis(service.url, QUICK) as client:
        one, two = (RedisTurns(client, keys, id, service.url, lease_seconds=lease_seconds) for id in ("one", "two"))
        yield one, two


def test_one_node_at_a_time_and_no_other_before_it_is_due(redis_service: RedisService) -> None:
    async def run() -> None:
        async with nodes(redis_service) as (one, two):
            turn = await one.begin("work")
            assert isinstance(turn, Turn)
            assert isinstance(await two.begin("work"), NotNow)
            # Nor by the same one twice.
            assert isinstance(await one.begin("work"), NotNow)
            await one.end(turn, due_in_seconds=0.3)
            found = await two.begin("work")
            assert isinstance(found, NotNow)
            assert 0 < found.seconds <= 0.3
            early = await two.begin("work", when_due=False)
            assert isinstance(early, Turn)
            await two.end(early)
            while isinstance(turn := await two.begin("work"), NotNow):
                pass
            await two.end(turn)
            again = await one.begin("work")
            assert isinstance(again, Turn)
            await one.end(again)

    asyncio.run(run())


def test_a_turn_is_renewed_while_its_work_runs_and_lost_with_its_lease(redis_service: RedisService) -> None:
    async def run() -> None:
        async with nodes(redis_service, lease_seconds=0.15) as (one, two):
            turn = await one.begin("work")
            assert isinstance(turn, Turn)
            for _ in range(10):
                await asyncio.sleep(0.05)
                assert isinstance(await two.begin("work"), NotNow)
            assert not turn.lost.is_set()
            async with connect_redis(redis_service.url, QUICK) as client:
                await client.flushall()
            other = await two.begin("work")
            assert isinstance(other, Turn)
            while not turn.lost.is_set():
                await asyncio.sleep(0.01)
            # The end of a lost turn says nothing of the work.
            await one.end(turn, due_in_seconds=1000)
            await two.end(other)
            last = await two.begin("work")
            assert isinstance(last, Turn)
            await two.end(last)

    asyncio.run(run())


def test_without_redis_nobody_can_tell(redis_service: RedisService) -> None:
    async def run() -> None:
        async with nodes(redis_service) as (one, _):
            turn = await one.begin("other")
            assert isinstance(turn, Turn)
            redis_service.kill()
            try:
                found = await one.begin("work")
                assert isinstance(found, NotNow)
                assert found.problem is not None
                await one.end(turn, due_in_seconds=10)
            finally:
                redis_service.start()
            turn = await one.begin("work")
            assert isinstance(turn, Turn)
            await one.end(turn)

    asyncio.run(run())
