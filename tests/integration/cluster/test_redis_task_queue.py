"""The queue of compaction tasks, on a real Redis."""

import asyncio

from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.cluster.redis.connection import RedisTimes, connect_redis
from lakelet.cluster.redis.task_queue import RedisTaskQueue
from tests.services.redis import RedisService

QUICK = RedisTimes(connect_seconds=0.5, answer_seconds=0.5, repeats=0)


def test_every_task_is_taken_once_oldest_first(redis_service: RedisService) -> None:
    async def run() -> None:
        keys = ClusterKeys("queue:")
        async with connect_redis(redis_service.url, QUICK) as client:
            one, two = (RedisTaskQueue(client, keys, redis_service.url) for _ in range(2))
            assert await one.take() is None
            tasks = [bytes([0, 255, number]) for number in range(20)]
            assert await one.offer(tasks, 60)
            found = [await queue.take() for _ in range(10) for queue in (one, two)]
            assert found == tasks
            assert await two.take() is None
            await client.rpush(keys.compaction_tasks, "no task!")
            assert await one.take() == b""
            await one.offer(tasks, 0.001)
            while await client.exists(keys.compaction_tasks):
                pass
            redis_service.kill()
            try:
                assert not await one.offer(tasks, 60)
                assert await one.take() is None
            finally:
                redis_service.start()
            assert await one.offer(tasks, 60)
            assert await one.take() == tasks[0]

    asyncio.run(run())
