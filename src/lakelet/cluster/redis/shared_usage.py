"""What callers have used of their limits on all nodes: totals in Redis that every node adds to and reads.

    usage:{caller}     HASH, expires a minute after the last request     requests, bytes

A node adds what was used there since it last did, and learns what others have: the difference of the total to the one it saw
before, less its own. A total that is lower than before begins anew: Redis has lost it, and nothing is known of the others.
"""

from __future__ import annotations

from collections.abc import Mapping

import redis.asyncio as redis_async

from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.cluster.usage import Usage

_KEPT_MS = 60_000
_COMMANDS = 3


class RedisUsage:
    """The totals of all callers; used on one event loop."""

    def __init__(self, client: redis_async.Redis, keys: ClusterKeys) -> None:
        self._client = client
        self._keys = keys
        self._totals: dict[str, Usage] = {}

    async def exchange(self, used: Mapping[str, Usage]) -> dict[str, Usage]:
        """Add what callers have used here since the last exchange; what they have used on other nodes meanwhile. Callers that are
        left out are forgotten."""
        if not used:
            self._totals = {}
            return {}
        async with self._client.pipeline(transaction=False) as pipeline:
            for caller, own in used.items():
                key = self._keys.usage(caller)
                pipeline.hincrby(key, "requests", own.requests)
                pipeline.hincrby(key, "bytes", own.bytes)
                pipeline.pexpire(key, _KEPT_MS)
            found = await pipeline.execute()
        answers = zip(found[::_COMMANDS], found[1::_COMMANDS], strict=True)
        totals = {caller: Usage(*answer) for caller, answer in zip(used, answers, strict=True)}
        elsewhere = {
            caller: _elsewhere(self._totals.get(caller), total, used[caller]) for caller, total in totals.items()
        }
        self._totals = totals
        return elsewhere


def _elsewhere(before: Usage | None, total: Usage, own: Usage) -> Usage:
    if before is None or total.requests < before.requests or total.bytes < before.bytes:
        return Usage()
    return Usage(
        max(0, total.requests - before.requests - own.requests), max(0, total.bytes - before.bytes - own.bytes)
    )
