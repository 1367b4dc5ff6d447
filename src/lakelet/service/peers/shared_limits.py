"""Limits of callers that hold for all nodes together: every node takes what was used on the others from its own buckets.

    a quarter of a second ── used here ── totals in Redis ── used elsewhere ── taken from the buckets here

So a caller may send what a second gives to every node at once, and waits for it afterwards: over a few seconds it gets its limit,
wherever it sends. Without Redis each node limits what it is sent itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from lakelet.cluster.redis.connection import REDIS_FAILURES
from lakelet.cluster.usage import Usage
from lakelet.service.access.rate_limits import RateLimits

_LOG = logging.getLogger(__name__)
_SECONDS = 0.25

Exchange = Callable[[Mapping[str, Usage]], Awaitable[dict[str, Usage]]]


class SharedLimits:
    """Exchanges usage in the background; used on the event loop."""

    def __init__(self, limits: RateLimits, exchange: Exchange) -> None:
        self._limits = limits
        self._exchange = exchange
        self._is_known = False
        self._is_failing = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Exchange from now on."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="lakelet-limits")

    def stop(self) -> None:
        """Exchange no more."""
        if self._task is not None:
            self._task.cancel()

    async def exchange(self) -> None:
        """Tell and learn once. What is used while Redis is away is told to nobody."""
        used = self._limits.take_usage()
        if not used and not self._is_known:
            return
        self._is_known = bool(used)
        try:
            elsewhere = await self._exchange(used)
        except REDIS_FAILURES as error:
            if not self._is_failing:
                _LOG.warning("limits hold for each node alone: %s", error)
            self._is_failing = True
            return
        self._is_failing = False
        self._limits.charge_elsewhere(elsewhere)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_SECONDS)
            try:
                await self.exchange()
            except Exception:
                _LOG.exception("limits of callers are not exchanged")
