"""The ring in Redis: replaced as a whole by the holder of the lease `ring`, with the next epoch."""

from __future__ import annotations

import redis.asyncio as redis_async
import redis.exceptions as redis_errors

from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.cluster.hash_ring import HashRing
from lakelet.cluster.lease import Lease
from lakelet.cluster.redis.leases import FENCED
from lakelet.errors import CorruptionError

RING_LEASE = "ring"

_REPLACE = (
    FENCED
    + """
local stored = tonumber(redis.call('GET', KEYS[3]) or '0') or 0
local epoch = string.format('%.0f', math.max(stored, tonumber(ARGV[2])) + 1)
redis.call('DEL', KEYS[2])
for at = 3, #ARGV, 2 do redis.call('ZADD', KEYS[2], ARGV[at + 1], ARGV[at]) end
redis.call('SET', KEYS[3], epoch)
return tonumber(epoch)
"""
)


class RingStore:
    """Reads and replaces the stored ring."""

    def __init__(self, client: redis_async.Redis, keys: ClusterKeys) -> None:
        self._client = client
        self._keys = keys
        self._replace = client.register_script(_REPLACE)

    async def size(self) -> tuple[int, int]:
        """The stored epoch and the number of points, which say whether the ring is another one; 0 for what nobody can read."""
        async with self._client.pipeline(transaction=True) as pipeline:
            pipeline.get(self._keys.epoch)
            pipeline.zcard(self._keys.hash_ring)
            epoch, points = await pipeline.execute(raise_on_error=False)
        return _epoch(epoch), points if isinstance(points, int) else 0

    async def load(self) -> tuple[int, HashRing] | None:
        """The epoch and its ring; None where there is none, or one that nobody can read."""
        try:
            async with self._client.pipeline(transaction=True) as pipeline:
                pipeline.get(self._keys.epoch)
                pipeline.zrange(self._keys.hash_ring, 0, -1, withscores=True)
                epoch, points = await pipeline.execute()
            if not _epoch(epoch):
                return None
            return _epoch(epoch), HashRing({str(member): int(position) for member, position in points})
        except CorruptionError:
            return None
        except redis_errors.ResponseError as error:
            if "WRONGTYPE" in str(error):
                return None
            raise

    async def replace(self, lease: Lease, ring: HashRing, *, above: int) -> int | None:
        """Store a ring under an epoch that is above this one and the stored one; None if the lease was lost."""
        keys = [self._keys.lease(lease.name), self._keys.hash_ring, self._keys.epoch]
        points = [part for point in ring.points.items() for part in point]
        epoch = int(await self._replace(keys=keys, args=[lease.value, above, *points]))
        return None if epoch < 0 else epoch


def _epoch(value: object) -> int:
    return int(value) if isinstance(value, str) and value.isdecimal() else 0
