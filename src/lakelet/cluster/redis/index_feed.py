"""Keeps the tables' keys in Redis up to date with the commits of this process.

    a commit, drop or change of options ── event: the table is dirty ── the feed's task: `RedisTableIndex.update` or `remove`

Events only name the table; what changed is read from its snapshots. So that any number of commits wait in the space of one
name, commits of other processes are caught up with the next one, and nothing is lost while Redis is away: the names stay
dirty, and are tried again at an interval, as are tables that another node was at. Once a minute all tables are looked at, which
rebuilds the keys of a Redis that was flushed.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

from lakelet.cluster.redis.connection import REDIS_FAILURES
from lakelet.cluster.redis.table_index import RedisTableIndex
from lakelet.cluster.table_record import served_name
from lakelet.errors import LakeletError, NotFoundError
from lakelet.events import (
    Committed,
    FastForwarded,
    OptionsChanged,
    RolledBack,
    Subscription,
    TableCreated,
    TableDropped,
    TableEvent,
    TableRenamed,
    TableReplaced,
    subscribe,
)
from lakelet.table import Table

_LOG = logging.getLogger(__name__)
_KINDS = (
    Committed,
    RolledBack,
    FastForwarded,
    OptionsChanged,
    TableCreated,
    TableDropped,
    TableRenamed,
    TableReplaced,
)
_MAIN = "main"
_FAILURES: tuple[type[Exception], ...] = (*REDIS_FAILURES, LakeletError)


class IndexFeed:
    """Updates the index in the background. Belongs to the event loop that starts it; commits are noticed in any thread."""

    def __init__(
        self,
        index: RedisTableIndex,
        open_table: Callable[[str], Table],
        warehouse: str,
        *,
        seconds: float = 5.0,
        check_seconds: float = 60.0,
    ) -> None:
        self._index = index
        self._open_table = open_table
        self._warehouse = warehouse
        self._seconds = seconds
        self._check_seconds = check_seconds
        self._lock = threading.Lock()
        self._dirty: set[str] = set()
        # By which name a table was served when it was last indexed, so that its keys are found when it is not any longer.
        self._served: dict[str, str] = {}
        self._woken = asyncio.Event()
        self._is_stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._subscription: Subscription | None = None

    async def start(self, tables: tuple[str, ...] = ()) -> None:
        """Listen to commits; these tables, full names, are brought up to date at once."""
        self._loop = asyncio.get_running_loop()
        self._is_stopped = False
        self._subscription = subscribe(self._notice)
        self._dirty.update(tables)
        self._woken.set()
        self._task = asyncio.create_task(self._run(), name="lakelet-index-feed")

    async def stop(self) -> None:
        """Try once more what is dirty, and stop listening."""
        if self._subscription is not None:
            self._subscription.close()
        self._is_stopped = True
        self._woken.set()
        if self._task is not None:
            await asyncio.wait({self._task})

    def _notice(self, event: TableEvent) -> None:
        if not isinstance(event, _KINDS) or event.branch != _MAIN or event.table.warehouse != self._warehouse:
            return
        with self._lock:
            self._dirty.add(event.table.identifier)
            if isinstance(event, TableRenamed):
                self._dirty.add(event.new.identifier)
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._woken.set)

    async def _run(self) -> None:
        while True:
            is_last = self._is_stopped
            self._woken.clear()
            await self.flush()
            if is_last:
                return
            if not self._is_stopped:
                await self._wait()

    async def _wait(self) -> None:
        is_idle = not self._dirty
        try:
            await asyncio.wait_for(self._woken.wait(), self._check_seconds if is_idle else self._seconds)
        except TimeoutError:
            if is_idle:
                # Keys that Redis lost, and commits of other processes, are noticed here.
                with self._lock:
                    self._dirty.update(self._served)

    async def flush(self) -> None:
        """Bring all dirty tables up to date; those that fail stay dirty."""
        with self._lock:
            names, self._dirty = self._dirty, set()
        for name in sorted(names):
            try:
                is_done = await self._update(name)
            except _FAILURES as error:
                _LOG.warning("the index of %s is not up to date: %s", name, error)
                is_done = False
            if not is_done:
                with self._lock:
                    self._dirty.add(name)

    async def _update(self, full_name: str) -> bool:
        known = self._served.get(full_name)
        try:
            table = await asyncio.to_thread(self._open_table, full_name)
            served = await asyncio.to_thread(served_name, table)
        except NotFoundError:
            table, served = None, None
        if known is not None and known != served:
            if not await self._index.remove(known):
                return False
            del self._served[full_name]
        if table is None or served is None:
            return True
        self._served[full_name] = served
        return await self._index.update(table, served)
