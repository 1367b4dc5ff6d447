"""Drops days whose retention has passed, of tables that nobody writes to: where rows come, their commits do it.

start, then every hour ── each table with partition.expiration-time ── one commit that drops its expired days
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor

from lakelet.errors import LakeletError
from lakelet.options import PARTITION_EXPIRATION_TIME, TableOptions
from lakelet.service.tables.registry import TableRegistry
from lakelet.service.tables.served_table import OpenTable

_LOG = logging.getLogger(__name__)
_PERIOD_SECONDS = 3600.0


class RetentionSweep:
    """The sweep over all served tables; used on the event loop. `committed` is called there with a table that lost days and is
    to be backed up."""

    def __init__(self, tables: TableRegistry, threads: Executor, committed: Callable[[OpenTable], None]) -> None:
        self._tables = tables
        self._threads = threads
        self._committed = committed
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Sweep now, in the background, and from time to time."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """Sweep no more."""
        if self._task is not None:
            self._task.cancel()

    async def sweep(self) -> int:
        """Look at every table once; how many days were dropped."""
        loop, days = asyncio.get_running_loop(), 0
        for opened in self._tables.all():
            dropped, is_backed_up = await loop.run_in_executor(self._threads, drop_expired_days, opened)
            days += dropped
            if dropped and is_backed_up:
                self._committed(opened)
        return days

    async def _run(self) -> None:
        while True:
            await self.sweep()
            await asyncio.sleep(_PERIOD_SECONDS)


def drop_expired_days(opened: OpenTable) -> tuple[int, bool]:
    """Drop the expired days of a table; how many, and whether the table is backed up. A failure is logged, and the next sweep
    tries again."""
    try:
        schema = opened.schema
        if not schema.partition_keys or TableOptions(schema.options).get(PARTITION_EXPIRATION_TIME) is None:
            return 0, False
        dropped = opened.table.expire_partitions().partitions
        return len(dropped), bool(dropped) and opened.config.backup_enabled
    except LakeletError as error:
        _LOG.warning("table %s: days whose retention has passed are still there: %s", opened.name, error)
        return 0, False
