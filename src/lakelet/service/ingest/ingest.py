"""Rows of all tables on their way in: a lane for each table, and flushes by size and time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from lakelet.clock import Clock
from lakelet.cluster.hybrid_clock import HybridClock
from lakelet.errors import LakeletError, UnavailableError
from lakelet.service.ingest.batch_records import batch_records
from lakelet.service.ingest.ingest_lane import IngestLane
from lakelet.service.ingest.request_keys import UnitKey
from lakelet.service.ingest.table_ingest import TableIngest
from lakelet.service.ingest.write_unit import WriteUnit
from lakelet.service.settings import ServiceSettings
from lakelet.service.tables.registry import TableRegistry
from lakelet.service.values import BatchRequest, WriteResult

_LOG = logging.getLogger(__name__)
_WRITE_THREADS = 8
_FLUSH_THREADS = 4
_LOOK_SECONDS = 0.5


class Ingest:
    """The lanes of all tables; used on the event loop alone."""

    def __init__(
        self, tables: TableRegistry, settings: ServiceSettings, clock: Clock, order: HybridClock | None = None
    ) -> None:
        self._order = order or HybridClock(clock)
        self._tables = tables
        self._settings = settings
        self._clock = clock
        self._lanes: dict[str, IngestLane] = {}
        self._first_unflushed: dict[str, float] = {}
        self._flushing: set[str] = set()
        self._writers = ThreadPoolExecutor(_WRITE_THREADS, "lakelet-ingest")
        self._flushers = ThreadPoolExecutor(_FLUSH_THREADS, "lakelet-ingest-flush")
        self._timer: asyncio.Task[None] | None = None
        self._stopped = False
        # Called on the event loop with a table whose rows have been committed.
        self.when_flushed: Callable[[TableIngest], None] | None = None
        # Why the last write or flush of a table failed, where it did.
        self.failing: dict[str, str] = {}
        # Totals for the metrics.
        self.records_written = 0
        self.rest_values = 0
        self.flushes = 0
        self.failed_flushes = 0

    def start(self) -> None:
        """Begin to flush by time."""
        self._timer = asyncio.get_running_loop().create_task(self._flush_by_time())

    async def stop(self) -> None:
        """Take no more rows, and return when those that wait are written."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        for lane in list(self._lanes.values()):
            await lane.drained()
        await asyncio.get_running_loop().run_in_executor(None, self._shut_down)

    @property
    def records_waiting(self) -> int:
        """Records of all tables that are neither written nor refused."""
        return sum(lane.records_waiting for lane in self._lanes.values())

    async def write(self, table: str, unit: WriteUnit) -> WriteResult:
        """Write validated records of one table, all or none."""
        if not len(unit.records) and unit.key is None:
            return unit.result(0)
        lane = self.lane(table)
        try:
            result = await lane.submit_unit(unit)
        except UnavailableError as error:
            self.failing[table] = str(error)
            raise
        self.failing.pop(table, None)
        if not result.repeated:
            self.records_written += result.written
            self.rest_values += result.rest_values
        return result

    async def write_batch(self, request: BatchRequest, key: UnitKey | None) -> WriteResult:
        """Validate the records of a batch and write them; with `partial` those that are valid."""
        # Asked first: an unknown table is told before its records are.
        opened = self._tables.open(request.table)
        loop = asyncio.get_running_loop()
        records, refused = await loop.run_in_executor(self._writers, batch_records, opened, request)
        return await self.write(request.table, WriteUnit(records, key, refused, request.partial))

    def lane(self, table: str) -> IngestLane:
        """The lane of a table, made for its first request."""
        if self._stopped:
            raise UnavailableError("the service is stopping", nothing_done=True)
        opened = self._tables.open(table)
        found = self._lanes.get(table)
        if found is None or found.ingest.opened is not opened:
            most = self._settings.most_waiting_records
            found = self._lanes[table] = IngestLane(
                TableIngest(opened, self._clock, self._order), self._writers, most, self._written
            )
        return found

    async def leave(self, table: str) -> None:
        """Return when nothing of a table waits, and forget its lane: the table is about to be dropped."""
        lane = self._lanes.pop(table, None)
        if lane is not None:
            await lane.drained()
        self._first_unflushed.pop(table, None)
        self.failing.pop(table, None)

    # ------------------------------------------------------------------ flushes

    def _written(self, lane: IngestLane) -> None:
        """After a group: flush a table that has buffered as many records as it may."""
        opened = lane.ingest.opened
        self._first_unflushed.setdefault(opened.name, self._clock.monotonic())
        try:
            if opened.buffered_records >= lane.ingest.config.buffer_size:
                self._flush(lane)
        except LakeletError as error:
            _LOG.warning("table %s: %s", opened.name, error)

    async def _flush_by_time(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            now = self._clock.monotonic()
            for name, since in list(self._first_unflushed.items()):
                lane = self._lanes.get(name)
                if lane is None:
                    self._first_unflushed.pop(name, None)
                elif now - since >= lane.ingest.config.flush_interval_seconds:
                    self._flush(lane)

    def _flush(self, lane: IngestLane) -> None:
        name, writer = lane.ingest.opened.name, lane.ingest.opened.writer
        if name in self._flushing or writer is None:
            return
        self._flushing.add(name)
        self._first_unflushed.pop(name, None)
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._flushers, writer.flush)
        done.add_done_callback(lambda flush: self._flushed(lane, flush))

    def _flushed(self, lane: IngestLane, flush: asyncio.Future[None]) -> None:
        name = lane.ingest.opened.name
        self._flushing.discard(name)
        error = None if flush.cancelled() else flush.exception()
        if error is None:
            self.flushes += 1
            self.failing.pop(name, None)
            if self.when_flushed is not None:
                self.when_flushed(lane.ingest)
        else:
            self.failed_flushes += 1
            self.failing[name] = str(error)
            # The writer itself goes on trying; the next look asks it again.
            _LOG.warning("table %s: rows are in the log, their commit failed: %s", name, error)
            self._first_unflushed.setdefault(name, self._clock.monotonic())

    def _shut_down(self) -> None:
        self._writers.shutdown()
        self._flushers.shutdown()
