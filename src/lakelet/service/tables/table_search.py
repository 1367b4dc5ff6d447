"""Looks in the warehouse for what other processes have done to tables since they were opened here.

    unknown name   default.<name> is looked at, then all tables of the warehouse, for one may be attached under that name
    known table    looked at once a second: one that was dropped is released, one that was created again is opened anew

Strangers choose names. Looks for unknown ones may take a twentieth of the time, and two seconds at once: beyond that a name
that is unknown here does not exist. Each look runs once at a time, however many requests wait for it, and none of them waits
for a slow one: a store that is silent holds up nobody.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import Any, TypeVar

from lakelet.clock import Clock
from lakelet.errors import LakeletError, NotFoundError
from lakelet.service.tables.registry import TableRegistry
from lakelet.service.tables.table_config import is_table_name

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
# The share of the time that looks for unknown names may take, and the seconds that they may take at once.
_SHARE, _AT_ONCE = 0.05, 2.0
# Requests wait this long for a look.
_PATIENCE_SECONDS = 2.0


class TableSearch:
    """The looks of one service; used on the event loop alone. `leave` has waiting rows of a table that is to be released written,
    and forgets what is kept of it."""

    def __init__(
        self, tables: TableRegistry, threads: Executor, clock: Clock, leave: Callable[[str], Awaitable[None]]
    ) -> None:
        self._tables = tables
        self._threads = threads
        self._leave = leave
        self._names, self._scans = _TimeBudget(clock), _TimeBudget(clock)
        self._monotonic = clock.monotonic
        # What is looked for, and since when.
        self._looks: dict[str, tuple[asyncio.Task[Any], float]] = {}

    async def know(self, name: str) -> None:
        """Find a table that another process has created or attached, release one that it has dropped or detached."""
        opened = self._tables.try_open(name)
        if opened is not None:
            if opened.is_due():
                await self._look(f"served {name}", lambda: self._renew(name))
            return
        if not is_table_name(name) or self._tables.is_left_out(name):
            return
        if self._names.has_some:
            await self._look(f"name {name}", lambda: self._timed(self._names, self._tables.find_by_name, name))
        if self._tables.try_open(name) is None:
            await self.load_new()

    async def load_new(self) -> bool:
        """Serve all tables that other processes have created or attached; whether there is one."""
        if not self._scans.has_some and "scan" not in self._looks:
            return False
        return bool(await self._look("scan", lambda: self._timed(self._scans, self._tables.load_new)))

    async def refresh(self) -> bool:
        """Look at all served tables that were not looked at just now, and for new ones; whether there was a change."""
        before = [opened for opened in self._tables.all() if opened.is_due()]
        await asyncio.gather(*(self.know(opened.name) for opened in before))
        is_changed = any(self._tables.try_open(opened.name) is not opened for opened in before)
        return await self.load_new() or is_changed

    async def _renew(self, name: str) -> None:
        opened = self._tables.try_open(name)
        if opened is None or await self._in_thread(opened.look):
            return
        _LOG.info("table %s: another process has dropped or detached it", name)
        await self._leave(name)
        await self._in_thread(self._tables.release, opened)
        await self._in_thread(self._tables.find_by_name, name)

    async def _timed(self, budget: _TimeBudget, function: Callable[..., bool], *arguments: object) -> bool:
        started = budget.now()
        try:
            return await self._in_thread(function, *arguments)
        finally:
            budget.take(budget.now() - started)

    async def _look(self, what: str, work: Callable[[], Awaitable[T]]) -> T | None:
        """What a look finds, run once for all who ask meanwhile; None for one that takes too long, which goes on. A look that a
        slow store holds up is not waited for by those who come later."""
        known = self._looks.get(what)
        if known is None:
            task = asyncio.ensure_future(work())
            known = self._looks[what] = (task, self._monotonic())
            task.add_done_callback(lambda done: self._ended(what, done))
        running, started = known
        try:
            async with asyncio.timeout(max(0.0, started + _PATIENCE_SECONDS - self._monotonic())):
                found: T = await asyncio.shield(running)
                return found
        except (TimeoutError, NotFoundError):
            return None
        except (LakeletError, OSError) as error:
            _LOG.warning("tables of other processes cannot be looked for: %s", error)
            return None

    def _ended(self, what: str, look: asyncio.Task[Any]) -> None:
        self._looks.pop(what, None)
        if not look.cancelled():
            # Looked at, so that nobody is told of an error that nobody waits for.
            look.exception()

    async def _in_thread(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)


class _TimeBudget:
    """Seconds that may be spent: a share of those that pass, and some at once. It is overdrawn by what took longer."""

    def __init__(self, clock: Clock) -> None:
        self.now = clock.monotonic
        self._left = _AT_ONCE
        self._seen = clock.monotonic()

    @property
    def has_some(self) -> bool:
        """Whether there is something left to be spent."""
        now = self.now()
        self._left, self._seen = min(_AT_ONCE, self._left + (now - self._seen) * _SHARE), now
        return self._left > 0

    def take(self, seconds: float) -> None:
        """Spend."""
        self._left -= seconds
