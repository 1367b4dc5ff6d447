"""Turns of a cluster: a lease that is renewed while the work runs, and a key that expires when the work is due again.

    lease:{name}     "node-1 1800000000000000"     renewed three times before it expires
    turn:{name}      "node-1"                      expires when the work is due again

A node that dies keeps others from the work for as long as a lease lives. After a FLUSHALL the work is due, and one that runs
finds at its next renewal that its turn is lost.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import redis.asyncio as redis_async

from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.cluster.redis.connection import REDIS_FAILURES, redis_problem
from lakelet.cluster.redis.leases import FENCED, RedisLeases
from lakelet.cluster.turn import NotNow, Turn

_LOG = logging.getLogger(__name__)
_LEASE_SECONDS = 30.0
_BUSY_SECONDS, _AWAY_SECONDS = 5.0, 30.0
_DONE = FENCED + "redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])\nreturn redis.call('DEL', KEYS[1])"


class RedisTurns:
    """The turns of one node; used on the event loop alone."""

    def __init__(
        self,
        client: redis_async.Redis,
        keys: ClusterKeys,
        holder: str,
        url: str,
        *,
        lease_seconds: float = _LEASE_SECONDS,
    ) -> None:
        self._client = client
        self._keys = keys
        self._holder = holder
        self._url = url
        self._seconds = lease_seconds
        self._leases = RedisLeases(client, keys, holder)
        self._done = client.register_script(_DONE)
        # A holder may acquire its own lease again: what runs here is known here.
        self._running: set[str] = set()
        self._renewals: dict[str, asyncio.Task[None]] = {}

    async def begin(self, name: str, *, when_due: bool = True) -> Turn | NotNow:
        """Begin some work, unless another node does it, or it is not due."""
        if name in self._running:
            return NotNow(_BUSY_SECONDS)
        self._running.add(name)
        try:
            found = await self._begun(name, when_due=when_due)
        except REDIS_FAILURES as error:
            found = NotNow(_AWAY_SECONDS, redis_problem(error, self._url))
        except BaseException:
            self._running.discard(name)
            raise
        if isinstance(found, NotNow):
            self._running.discard(name)
            return found
        self._renewals[name] = asyncio.create_task(self._renew(found), name=f"lakelet-turn-{name}")
        return found

    async def end(self, turn: Turn, *, due_in_seconds: float = 0.0) -> None:
        """End it. What Redis does not take expires by itself."""
        renewal = self._renewals.pop(turn.name, None)
        self._running.discard(turn.name)
        if renewal is not None:
            renewal.cancel()
            with suppress(asyncio.CancelledError):
                await renewal
        try:
            if due_in_seconds > 0:
                keys = [self._keys.lease(turn.name), self._keys.turn(turn.name)]
                await self._done(keys=keys, args=[turn.lease.value, self._holder, round(due_in_seconds * 1000)])
            else:
                await self._leases.release(turn.lease)
        except REDIS_FAILURES as error:
            _LOG.warning("the end of %s could not be told: %s", turn.name, redis_problem(error, self._url))

    async def _begun(self, name: str, *, when_due: bool) -> Turn | NotNow:
        lease = await self._leases.acquire(name, self._seconds)
        if lease is None:
            return NotNow(_BUSY_SECONDS)
        # Looked at under the lease: nobody can be doing the work, and have it done in between.
        left = await self._client.pttl(self._keys.turn(name)) if when_due else 0
        if left > 0:
            await self._leases.release(lease)
            return NotNow(left / 1000)
        return Turn(lease)

    async def _renew(self, turn: Turn) -> None:
        loop = asyncio.get_running_loop()
        held_until = loop.time() + self._seconds
        while True:
            await asyncio.sleep(self._seconds / 3)
            started = loop.time()
            try:
                is_held = await self._leases.renew(turn.lease, self._seconds)
            except REDIS_FAILURES as error:
                is_held = started < held_until
                _LOG.warning("the lease of %s was not renewed: %s", turn.name, redis_problem(error, self._url))
            else:
                held_until = started + self._seconds
            if not is_held:
                _LOG.warning("%s: another node may do this work by now, it is given up here", turn.name)
                turn.lost.set()
                return
