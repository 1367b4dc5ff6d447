"""Maintains the served tables: each is compacted, and loses expired days and snapshots, once in a period, by one node of all.

    start      expired days are dropped
    a minute   every table whose period is over ── its turn ── its duties, in a thread ── the turn ends, due in a period

Tables that are written to do most of it with their commits; this is for those that nobody writes to, that are `write-only`, or
whose small files were left by many writers. A round takes one table after the other.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress

from lakelet.clock import Clock
from lakelet.cluster.embedded.turns import EmbeddedTurns
from lakelet.cluster.task_queue import TaskQueue
from lakelet.cluster.turn import NotNow, Turns
from lakelet.errors import LakeletError
from lakelet.service.service_spark import ServiceSpark
from lakelet.service.settings import ServiceSettings
from lakelet.service.tables.duties import Elsewhere, Maintained, maintain
from lakelet.service.tables.registry import TableRegistry
from lakelet.service.tables.served_table import OpenTable

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 60.0
# A table whose duties failed is tried again sooner than one whose duties are done.
_FAILED_SECONDS = 300.0
_STOP_SECONDS = 10.0


class Maintenance:
    """The maintenance of all served tables; used on the event loop. `committed` is called there with a table that has a new
    snapshot and is to be backed up."""

    def __init__(
        self,
        tables: TableRegistry,
        threads: Executor,
        clock: Clock,
        committed: Callable[[OpenTable], None],
        settings: ServiceSettings,
        spark: ServiceSpark,
    ) -> None:
        self._tables = tables
        self._threads = threads
        self._monotonic = clock.monotonic
        self._committed = committed
        self._every = float(settings.maintenance_seconds)
        # Whose turn it is: this node's, until it joins others.
        self.turns: Turns = EmbeddedTurns(clock)
        # Where compaction tasks are put for all nodes; None where there are no others.
        self.queue: TaskQueue | None = None
        # Where tables are compacted instead; None where nodes do it.
        self._elsewhere: Elsewhere | None = spark.compact if settings.maintenance_engine == "spark" else None
        # Tables that were asked for, and are not due before.
        self._due: dict[str, float] = {}
        self._stop = threading.Event()
        self._stopped = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        # Totals for the metrics.
        self.rounds = 0
        self.done = Maintained()

    def start(self) -> None:
        """Maintain tables from now on, in the background."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Maintain no more; a compaction that runs is given up."""
        self._stop.set()
        self._stopped.set()
        if self._task is None:
            return
        # A duty that runs ends by itself, and gives its turn back; what takes longer loses it when its lease expires.
        with suppress(asyncio.CancelledError, TimeoutError):
            await asyncio.wait_for(self._task, _STOP_SECONDS)

    def note(self, done: Maintained) -> None:
        """Add what was done here for other nodes to the totals."""
        self.done += done

    async def sweep(self, *, when_due: bool = False, only_days: bool = False) -> Maintained:
        """Maintain every table once, or those that are due; what was done."""
        total = Maintained()
        for opened in self._tables.all():
            if self._stop.is_set():
                break
            if not when_due or self._due.get(opened.name, 0.0) <= self._monotonic():
                total += await self._maintain(opened, when_due=when_due, only_days=only_days)
        self.rounds += 1
        self.done += total
        return total

    async def _maintain(self, opened: OpenTable, *, when_due: bool, only_days: bool) -> Maintained:
        turn = await self.turns.begin(f"maintenance:{opened.name}", when_due=when_due)
        if isinstance(turn, NotNow):
            self._due[opened.name] = self._monotonic() + turn.seconds
            if turn.problem is not None:
                _LOG.warning("table %s is not maintained now: %s", opened.name, turn.problem)
            return Maintained()
        seconds = 0.0
        try:
            done = await self._in_thread(opened, turn.lost, only_days=only_days)
            if not only_days and not turn.lost.is_set():
                seconds = self._every if not done.failures else min(_FAILED_SECONDS, self._every)
        finally:
            self._due[opened.name] = self._monotonic() + seconds
            await self.turns.end(turn, due_in_seconds=seconds)
        if done.has_committed and self._is_backed_up(opened):
            self._committed(opened)
        return done

    async def _in_thread(self, opened: OpenTable, lost: threading.Event, *, only_days: bool) -> Maintained:
        def stopped() -> bool:
            return self._stop.is_set() or lost.is_set()

        loop = asyncio.get_running_loop()
        queue = self.queue

        def offer(tasks: list[bytes]) -> bool:
            assert queue is not None
            return asyncio.run_coroutine_threadsafe(queue.offer(tasks, self._every), loop).result()

        offered = None if queue is None else offer
        return await loop.run_in_executor(
            self._threads,
            lambda: maintain(opened, stopped, only_days=only_days, offer=offered, elsewhere=self._elsewhere),
        )

    async def _run(self) -> None:
        await self._round(only_days=True)
        while not await self._stopped_after(min(_LOOK_SECONDS, self._every)):
            await self._round(only_days=False)

    async def _round(self, *, only_days: bool) -> None:
        try:
            await self.sweep(when_due=not only_days, only_days=only_days)
        except Exception as error:
            # A maintenance that ends silently would be missed much later.
            _LOG.exception("tables are not maintained: %s", error)

    async def _stopped_after(self, seconds: float) -> bool:
        """Wait that long, or until the maintenance is stopped; whether it is."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), seconds)
        return self._stopped.is_set()

    def _is_backed_up(self, opened: OpenTable) -> bool:
        try:
            return opened.config.backup_enabled
        except LakeletError:
            return False
