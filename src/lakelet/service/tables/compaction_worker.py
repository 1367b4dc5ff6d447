"""Runs compaction tasks that a node of the cluster has planned: every node takes one after the other from their queue.

the node whose turn a table is ── tasks ── queue ── this node, and others ── files rewritten ── a commit each
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress

from lakelet.catalog.lake import Lake
from lakelet.cluster.task_queue import TaskQueue
from lakelet.errors import LakeletError
from lakelet.service.tables.duties import Maintained

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 2.0
_STOP_SECONDS = 10.0


class CompactionWorker:
    """Takes tasks while it runs; used on the event loop."""

    def __init__(
        self, lake: Lake, threads: Executor, queue: TaskQueue, note: Callable[[Maintained], None] | None = None
    ) -> None:
        self._lake = lake
        self._threads = threads
        self._queue = queue
        self._stop = threading.Event()
        self._stopped = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        # Told what was done, for the metrics.
        self._note = note

    def start(self) -> None:
        """Take tasks from now on, in the background."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="lakelet-compaction-worker")

    async def stop(self) -> None:
        """Take no more; one that runs is given up."""
        self._stop.set()
        self._stopped.set()
        if self._task is not None:
            with suppress(asyncio.CancelledError, TimeoutError):
                await asyncio.wait_for(self._task, _STOP_SECONDS)

    async def work(self) -> Maintained:
        """Run what is in the queue; how many tasks have made a snapshot, and how many failed."""
        total = Maintained()
        while not self._stop.is_set() and (data := await self._queue.take()) is not None:
            done = await asyncio.get_running_loop().run_in_executor(self._threads, self._ran, data)
            total += done
            if self._note is not None:
                self._note(done)
        return total

    def _ran(self, data: bytes) -> Maintained:
        from lakelet.operations.append_tasks import run_task  # noqa: PLC0415 - most nodes never run one.

        try:
            return Maintained(compactions=int(run_task(self._lake, data, self._stop) is not None))
        except LakeletError as error:
            # Planned again by the next round, where there is still something to do.
            _LOG.warning("a compaction task was not run: %s", error)
            return Maintained(failures=1)

    async def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                await self.work()
            except Exception:
                _LOG.exception("compaction tasks are not run")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), _LOOK_SECONDS)
