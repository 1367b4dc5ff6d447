"""Leases in Redis: a key with an expiry, its value the holder and a fencing token.

A token is higher than every one given before, also after all keys were lost: it is the server's time in microseconds, or the
last token + 1 where that is more. A holder whose lease has expired writes nothing, because scripts that write under a lease
compare the key's value first (`FENCED`).
"""

from __future__ import annotations

import redis.asyncio as redis_async

from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.cluster.lease import Lease

# The first line of a script that writes under a lease: KEYS[1] is the lease, ARGV[1] the value that its holder knows.
FENCED = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end\n"

_ACQUIRE = """
local held = redis.call('GET', KEYS[1])
if held then
  local holder, fence = string.match(held, '^(.*) (%d+)$')
  if holder ~= ARGV[1] then return '' end
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return fence
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local last = tonumber(redis.call('GET', KEYS[2]) or '0') or 0
local fence = string.format('%.0f', math.max(now, last + 1))
redis.call('SET', KEYS[2], fence)
redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. fence, 'PX', ARGV[2])
return fence
"""
_RENEW = FENCED + "return redis.call('PEXPIRE', KEYS[1], ARGV[2])"
_RELEASE = FENCED + "return redis.call('DEL', KEYS[1])"


class RedisLeases:
    """The leases of one holder."""

    def __init__(self, client: redis_async.Redis, keys: ClusterKeys, holder: str) -> None:
        self._keys = keys
        self._holder = holder
        self._acquire = client.register_script(_ACQUIRE)
        self._renew = client.register_script(_RENEW)
        self._release = client.register_script(_RELEASE)

    async def acquire(self, name: str, seconds: float) -> Lease | None:
        """The lease, unless another holder has it."""
        keys = [self._keys.lease(name), self._keys.fence(name)]
        fence = await self._acquire(keys=keys, args=[self._holder, _milliseconds(seconds)])
        return Lease(name, self._holder, int(fence)) if fence else None

    async def renew(self, lease: Lease, seconds: float) -> bool:
        """Hold the lease for longer, unless it was lost."""
        done = await self._renew(keys=[self._keys.lease(lease.name)], args=[lease.value, _milliseconds(seconds)])
        return bool(done == 1)

    async def release(self, lease: Lease) -> None:
        """Give the lease back."""
        await self._release(keys=[self._keys.lease(lease.name)], args=[lease.value])


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
