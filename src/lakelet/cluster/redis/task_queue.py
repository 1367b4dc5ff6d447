"""The queue of compaction tasks in Redis.

    compaction:tasks     LIST of tasks in base64, oldest first; expires when they are planned anew

A task is taken by whoever removes it from the list. A node that dies with one, like a Redis that loses them all, leaves files as
they were, which the next compaction finds.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Sequence

import redis.asyncio as redis_async

from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.cluster.redis.connection import REDIS_FAILURES, redis_problem

_LOG = logging.getLogger(__name__)


class RedisTaskQueue:
    """The queue of one cluster."""

    def __init__(self, client: redis_async.Redis, keys: ClusterKeys, url: str) -> None:
        self._client = client
        self._key = keys.compaction_tasks
        self._url = url
        self._is_failing = False

    async def offer(self, tasks: Sequence[bytes], seconds: float) -> bool:
        """Append tasks."""
        try:
            async with self._client.pipeline(transaction=True) as pipeline:
                pipeline.rpush(self._key, *(base64.b64encode(task).decode() for task in tasks))
                pipeline.pexpire(self._key, max(1, round(seconds * 1000)))
                await pipeline.execute()
        except REDIS_FAILURES as error:
            _LOG.warning("compaction tasks are not given to other nodes: %s", redis_problem(error, self._url))
            return False
        return True

    async def take(self) -> bytes | None:
        """Remove the oldest task. While Redis fails there is none."""
        try:
            found = await self._client.lpop(self._key)
        except REDIS_FAILURES as error:
            if not self._is_failing:
                _LOG.warning("compaction tasks of other nodes are not taken: %s", redis_problem(error, self._url))
            self._is_failing = True
            return None
        self._is_failing = False
        if found is None:
            return None
        try:
            return base64.b64decode(str(found), validate=True)
        except binascii.Error as error:
            _LOG.warning("an entry of %s is no task: %s", self._key, error)
            return b""
