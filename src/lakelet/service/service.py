"""The operations of the service: one method for each, typed requests in, values out. Every edge calls these and decides nothing.

    edge ── Service.write ── ingest/ingest_lane ── ingest/table_ingest ── table.writer()
         ── Service.query ── query/query_engine
         ── Service.create_table, … ── tables/registry

All methods run on the event loop; work of disks and engines runs in threads. Each checks the rights of its caller first.
"""

from __future__ import annotations

import asyncio
import fnmatch
import logging
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from lakelet.catalog.lake import Lake
from lakelet.clock import Clock, SystemClock
from lakelet.cluster.hybrid_clock import HybridClock
from lakelet.errors import InvalidError, LakeletError, NotFoundError, OverloadedError, UnavailableError
from lakelet.service.access.caller import ADMIN, EVERY_TABLE, READ, WRITE, Caller
from lakelet.service.ingest.flush_callbacks import FlushCallback, FlushCallbacks
from lakelet.service.ingest.ingest import Ingest
from lakelet.service.ingest.request_keys import unit_key
from lakelet.service.ingest.table_ingest import TableIngest
from lakelet.service.ingest.write_unit import WriteUnit
from lakelet.service.query.query_limits import QueryLimits
from lakelet.service.query_answer import arrow_parts, close_parts, json_answer
from lakelet.service.service_spark import ServiceSpark
from lakelet.service.settings import ServiceSettings
from lakelet.service.tables.maintenance import Maintenance
from lakelet.service.tables.readable_tables import ReadableTables
from lakelet.service.tables.registry import TableRegistry
from lakelet.service.tables.row_access import delete_records, find_records
from lakelet.service.tables.served_table import OpenTable
from lakelet.service.tables.table_search import TableSearch
from lakelet.service.tables.table_stats import StoredStatsCache
from lakelet.service.timestamps import timestamp_text
from lakelet.service.values import (
    AlterTableRequest,
    BackupCheck,
    BackupInfo,
    BackupRequest,
    BackupResult,
    BatchRequest,
    CreateTableRequest,
    DescribedTable,
    DropTableRequest,
    DropTableResult,
    Health,
    Node,
    RowRequest,
    ServiceStats,
    TableInfo,
    WriteRequest,
    WriteResult,
)

if TYPE_CHECKING:
    from lakelet.service.backup.served_backups import ServedBackups
    from lakelet.service.peers.shared_tables import SharedTables
    from lakelet.service.query.query_engine import QueryEngine, QueryRequest
    from lakelet.service.query.served_table import ServedTables

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_THREADS = 16
# Threads for each query that may run, and queries that may run or wait for each: fewer, so that some threads are always free.
_QUERY_THREADS, _MOST_STARTING = 4, 3


class Service:
    """The service over one lake; `start` it on the event loop that calls it, and `stop` it there."""

    def __init__(
        self,
        lake: Lake,
        settings: ServiceSettings,
        clock: Clock | None = None,
        *,
        open_backup: Callable[[], Lake] | None = None,
        callbacks: Mapping[str, FlushCallback] | None = None,
    ) -> None:
        self.lake = lake
        self.settings = settings
        self.clock = clock or SystemClock()
        self.tables = TableRegistry(lake, settings.wal_folder, self.clock)
        self.stored_stats = StoredStatsCache()
        self.threads = ThreadPoolExecutor(_THREADS, "lakelet-service")
        # By which writes of this node are ordered among those of all nodes.
        self.order = HybridClock(self.clock)
        self.ingest = Ingest(self.tables, settings, self.clock, self.order)
        self.search = TableSearch(self.tables, self.threads, self.clock, self._release)
        self.spark = ServiceSpark(settings.spark)
        self.maintenance = Maintenance(self.tables, self.threads, self.clock, self._have_copied, settings, self.spark)
        self.backups: ServedBackups | None = None
        if open_backup is not None:
            from lakelet.service.backup.served_backups import ServedBackups  # noqa: PLC0415 - others do without what it loads.

            self.backups = ServedBackups(lake, open_backup, self.tables, settings.wal_folder, self.clock)
        self.callbacks = FlushCallbacks(callbacks or {})
        self.ingest.when_flushed = self._flushed
        # Queries have threads of their own: those that wait for their turn hold up no rows, nor results that are being read.
        self._query_threads = ThreadPoolExecutor(settings.query_running * _QUERY_THREADS, "lakelet-query")
        self.starting_queries = 0
        self._engine: QueryEngine | None = None
        self._engine_made = threading.Lock()
        self._started = self._stopping = self._committed = False
        # The side that other nodes see; None where there are none.
        self.shared: SharedTables | None = None

    # ------------------------------------------------------------------ life

    def join(self, shared: SharedTables) -> None:
        """Be a node of a cluster, from the start on."""
        self.shared = shared

    async def start(self) -> None:
        """Load the served tables; rows that a crash left in logs are committed."""
        if self.backups is not None:
            await self.in_thread(self.backups.finish_restorations)
        await self.in_thread(self.tables.load)
        if self.callbacks:
            await self.in_thread(self._catch_up)
        self.ingest.start()
        self.maintenance.start()
        if self.backups is not None:
            await self.in_thread(self.backups.start)
        if self.shared is not None:
            self.shared.start()
        self._started = True

    async def commit_all(self) -> None:
        """Take no more rows, write those that wait, and commit all; queries are still answered. What cannot be committed stays in
        logs for the next start."""
        if self._committed:
            return
        self._committed = True
        if self.shared is not None:
            self.shared.stop()
        await self.maintenance.stop()
        await self.ingest.stop()
        for name, error in await self.in_thread(self.tables.close):
            _LOG.error("table %s: its last rows are in the log and not committed: %s", name, error)

    async def stop(self) -> None:
        """Take no more rows, write those that wait, and commit all. What cannot be committed stays in logs for the next start."""
        if self._stopping:
            return
        self._stopping = True
        await self.commit_all()
        if self.callbacks:
            await self.in_thread(self._catch_up)
        if self.backups is not None:
            await self.in_thread(self.backups.stop)
        if self._engine is not None:
            await self.in_thread(self._engine.close)
        await self.in_thread(self.spark.close)
        self._query_threads.shutdown(wait=False)
        self.threads.shutdown(wait=False)

    # ------------------------------------------------------------------ rows

    async def write(self, request: WriteRequest, caller: Caller) -> WriteResult:
        """Write one record; it is durable and visible to queries when this returns."""
        caller.check(WRITE, request.table)
        self._check_running()
        await self.know(request.table)
        if self.shared is not None:
            return await self.shared.write(request, caller.name)
        return await self.write_owned(request, caller.name)

    async def write_owned(self, request: WriteRequest, caller: str) -> WriteResult:
        """Write one record here, for a caller by name who has the right to."""
        self._check_running()
        await self.know(request.table)
        unit = WriteUnit([request.record], unit_key(caller, request.idempotency_key))
        write = self.ingest.write if self.shared is None else self.shared.write_unit
        return await write(request.table, unit)

    async def write_batch(self, request: BatchRequest, caller: Caller) -> WriteResult:
        """Write records of one table, all or none; with `partial` those that are valid."""
        caller.check(WRITE, request.table)
        self._check_running()
        await self.know(request.table)
        key = unit_key(caller.name, request.idempotency_key)
        write = self.ingest.write_batch if self.shared is None else self.shared.write_batch
        return await write(request, key)

    async def get_rows(self, request: RowRequest, caller: Caller) -> list[dict[str, Any]]:
        """The records of an id as JSON values, those that are buffered included."""
        caller.check(READ, request.table)
        await self.know(request.table)
        opened = self.tables.open(request.table)
        others = None if self.shared is None else self.shared.buffers
        return await self.in_thread(find_records, opened, request.id, others)

    async def delete_rows(self, request: RowRequest, caller: Caller) -> int:
        """Delete the records of an id; how many there were."""
        caller.check(WRITE, request.table)
        self._check_running()
        await self.know(request.table)
        ingest = self.ingest.lane(request.table).ingest
        if self.shared is not None:
            # A deletion finds what is committed: rows that other nodes have acknowledged are to go, too.
            await self.shared.flush_elsewhere(request.table)

        async def delete() -> int:
            return await self.in_thread(delete_records, ingest, request.id)

        deleted = await (delete() if self.shared is None else self.shared.in_order(request.table, delete))
        self._flushed(ingest)
        return deleted

    # ------------------------------------------------------------------ queries

    async def query_json(self, request: QueryRequest, caller: Caller) -> str:
        """The answer to a SELECT as the text of a JSON array of objects."""
        return await self.answer(json_answer, request, caller)

    async def answer(
        self, made: Callable[[QueryEngine, QueryRequest, ServedTables], T], request: QueryRequest, caller: Caller
    ) -> T:
        """What is made of a SELECT over the tables that the caller may read, buffered rows included."""
        engine = await self.started_engine()
        readable = ReadableTables(self.tables, caller)
        return await self._with_new_tables(lambda: self._start_query(made, engine, request, readable))

    async def query_arrow(self, request: QueryRequest, caller: Caller) -> AsyncGenerator[bytes]:
        """The answer to a SELECT as the bytes of an Arrow IPC stream. The first of them are there, or the error is raised, when
        this returns."""
        engine = await self.started_engine()
        readable = ReadableTables(self.tables, caller)

        async def start() -> tuple[bytes, Iterator[bytes]]:
            parts = arrow_parts(engine, request, readable)
            return await self._start_query(next, parts), parts

        return self._streamed(*await self._with_new_tables(start))

    async def cancel_query(self, request_id: str) -> None:
        """Interrupt the query of a request, where one runs."""
        if self._engine is not None:
            await self.in_thread(self._engine.cancel, request_id)

    # ------------------------------------------------------------------ tables

    async def create_table(self, request: CreateTableRequest, caller: Caller) -> tuple[TableInfo, bool]:
        """Create a table, or attach one; what it is, and whether it is new."""
        caller.check(ADMIN, request.table_name)
        self._check_running()
        await self.know(request.table_name)
        return await self.in_thread(self._create, request)

    async def list_tables(self, pattern: str, caller: Caller) -> list[DescribedTable]:
        """The tables that the caller may read, whose names match a pattern of `*` and `?`; all for an empty one."""
        await self.search.refresh()
        return await self.in_thread(self._list, pattern, caller)

    async def describe_table(self, name: str, caller: Caller) -> DescribedTable:
        """A table with its configuration and statistics."""
        caller.check(READ, name)
        await self.know(name)
        return await self.in_thread(self.stored_stats.described, self.tables.open(name))

    async def alter_table(self, request: AlterTableRequest, caller: Caller) -> TableInfo:
        """Change the configuration or status of a table."""
        caller.check(ADMIN, request.table_name)
        self._check_running()
        await self.know(request.table_name)
        info = await self.in_thread(lambda: self.stored_stats.info(self.tables.alter(request)))
        if info.config.backup_enabled:
            self._have_copied(self.tables.open(request.table_name))
        return info

    async def drop_table(self, request: DropTableRequest, caller: Caller) -> DropTableResult:
        """Stop serving a table; with `cascade` delete its files."""
        caller.check(ADMIN, request.table_name)
        self._check_running()
        await self.know(request.table_name)
        await self._release(request.table_name)
        leave = None if self.shared is None else self.shared.leaving(request.table_name)
        answer = await self.in_thread(self.tables.drop, request, leave)
        self.stored_stats.forget(request.table_name)
        return answer

    # ------------------------------------------------------------------ backups

    async def trigger_backup(self, request: BackupRequest, caller: Caller) -> BackupResult:
        """Copy a table to the backup store, or what of it may hold an id or a day; buffered rows are committed first."""
        caller.check(ADMIN, request.table)
        self._check_running()
        return await self.in_thread(self._existing_backups().trigger, request)

    async def recover(self, request: BackupRequest, caller: Caller) -> BackupResult:
        """Restore missing and damaged files of a table from its backup, or the whole of a table that is gone."""
        caller.check(ADMIN, request.table)
        self._check_running()
        done = await self.in_thread(self._existing_backups().recover, request)
        self.stored_stats.forget(request.table)
        return done

    async def list_backups(self, caller: Caller) -> list[BackupInfo]:
        """The backups of the tables that the caller may read."""
        found = await self.in_thread(self._existing_backups().list)
        return [
            BackupInfo(
                name,
                one.source_snapshot,
                timestamp_text(one.time_ms * 1000) if one.time_ms else "",
                one.records,
                one.is_complete,
            )
            for name, one in found
            if caller.may(READ, name)
        ]

    async def verify_backup(self, table: str, caller: Caller) -> BackupCheck:
        """Read all files of a table's backup and compare them with their checksums."""
        caller.check(ADMIN, table)
        found = await self.in_thread(self._existing_backups().verify, table)
        return BackupCheck(found.files, found.bytes, found.problems)

    # ------------------------------------------------------------------ the service itself

    async def health(self) -> Health:
        """Whether requests are taken and rows are committed."""
        details = {"tables": str(len(self.tables.names())), "buffered_records": str(self._buffered())}
        failing = {
            f"flush.{opened.name}": error
            for opened in self.tables.all()
            if (writer := opened.writer) is not None and (error := writer.status().last_error) is not None
        }
        silent = {one.name: why for one in self.tables.all() if (why := one.store_silence) is not None}
        failing.update({f"store.{name}": why for name, why in silent.items()})
        failing.update({f"rows.{name}": error for name, error in self.ingest.failing.items()})
        # Requests for other tables are answered as ever.
        details.update({f"table.{name}": error for name, error in self.tables.left_out().items()})
        if self.shared is not None and (problem := await self.in_thread(self.shared.problem)) is not None:
            details["cluster"] = problem
        failing.update({} if self.shared is None else self.shared.replicas.problems())
        if self.backups is not None:
            # Rows are safe where they are: a backup that is late takes no request away.
            details.update({f"backup.{name}": error for name, error in self.backups.worker.failing().items()})
        if self._stopping or not self._started:
            return Health("stopping" if self._stopping else "starting", {**details, **failing})
        return Health("degraded" if failing else "ok", {**details, **failing})

    async def stats(self, table: str, caller: Caller) -> ServiceStats:
        """Totals over the tables that the caller may read, or of one table."""
        if table:
            caller.check(READ, table)
            found = [(await self.describe_table(table, caller)).stats]
        else:
            found = [one.stats for one in await self.list_tables("", caller)]
        return ServiceStats(
            tables=len(found),
            records=sum(one.record_count for one in found),
            files=sum(one.file_count for one in found),
            bytes=sum(one.size_bytes for one in found),
            buffered_records=sum(one.buffered_records for one in found),
        )

    async def nodes(self, caller: Caller) -> list[Node]:
        """The nodes of the cluster."""
        caller.check(READ, EVERY_TABLE)
        if self.shared is not None:
            return await self.in_thread(self.shared.nodes)
        settings = self.settings
        status = "stopping" if self._stopping else "active"
        return [Node("local", f"{settings.host}:{settings.port}", status, self.clock.now_ms() * 1000)]

    def load(self) -> dict[str, float]:
        """How much this node has to do, for other nodes and people."""
        queries = self._engine.load if self._engine else 0
        return {"tables": len(self.tables.names()), "buffered_records": self._buffered(), "queries": queries}

    async def know(self, table: str) -> None:
        """Find a table that another process has created meanwhile, release one that it has dropped."""
        await self.search.know(table)

    async def _release(self, table: str) -> None:
        await self.ingest.leave(table)
        self.stored_stats.forget(table)

    async def in_thread(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.threads, function, *arguments)

    async def _in_query_thread(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._query_threads, function, *arguments)

    async def _start_query(self, function: Callable[..., T], *arguments: object) -> T:
        """Run what starts a query; OverloadedError where too many wait for their turn."""
        if self.starting_queries >= self.settings.query_running * _MOST_STARTING:
            raise OverloadedError(f"{self.starting_queries} queries are running or waiting already; try again later")
        self.starting_queries += 1
        try:
            return await self._in_query_thread(function, *arguments)
        finally:
            self.starting_queries -= 1

    async def _with_new_tables(self, start: Callable[[], Awaitable[T]]) -> T:
        """Start a query, once more where it names a table that another process has created or dropped meanwhile."""
        try:
            return await start()
        except NotFoundError:
            if not await self.search.refresh():
                raise
            return await start()

    async def started_engine(self) -> QueryEngine:
        """What runs queries; it is made by the first of them."""
        self._check_running()
        if self._engine is None:
            return await self.in_thread(self._new_engine)
        return self._engine

    async def _streamed(self, first: bytes, parts: Iterator[bytes]) -> AsyncGenerator[bytes]:
        part: bytes | None = first
        try:
            while part is not None:
                yield part
                part = await self._in_query_thread(next, parts, None)
        finally:
            # Closing the generator ends the query, also where the client went away.
            await self._in_query_thread(close_parts, parts)

    @property
    def has_started(self) -> bool:
        """Whether what a crash left in logs is committed."""
        return self._started

    @property
    def is_running(self) -> bool:
        """Whether rows are taken."""
        return self._started and not self._committed

    def _check_running(self) -> None:
        if self._stopping or not self._started:
            state = "stopping" if self._stopping else "starting"
            raise UnavailableError(f"the service is {state}", nothing_done=True)

    def _existing_backups(self) -> ServedBackups:
        if self.backups is None:
            raise InvalidError("the service was started without a backup store (lakelet serve --backup)")
        return self.backups

    def _flushed(self, ingest: TableIngest) -> None:
        """After a commit: have callbacks called, and the table copied, if it is to be. Called on the event loop, which waits for
        neither."""
        if self.callbacks:
            self.threads.submit(self.callbacks.run, ingest.opened)
        if ingest.config.backup_enabled:
            self._have_copied(ingest.opened)

    def _catch_up(self) -> None:
        """Call callbacks for the snapshots that they missed."""
        for opened in self.tables.all():
            try:
                self.callbacks.begin(opened)
                self.callbacks.run(opened)
            except LakeletError as error:
                _LOG.warning("table %s: its callbacks could not be called: %s", opened.name, error)

    def _have_copied(self, opened: OpenTable) -> None:
        if self.backups is not None:
            self.backups.note(opened)

    def _new_engine(self) -> QueryEngine:
        from lakelet.service.query.query_engine import QueryEngine  # noqa: PLC0415 - DuckDB is loaded by the first query.

        with self._engine_made:
            if self._engine is None:
                shared, limits, spark = self.shared, QueryLimits.of(self.settings), self.spark
                others, workers = (None, None) if shared is None else (shared.buffers, shared.workers)
                self._engine = QueryEngine(self.lake, self.tables, limits, others=others, workers=workers, spark=spark)
            return self._engine

    def _create(self, request: CreateTableRequest) -> tuple[TableInfo, bool]:
        opened, is_new = self.tables.create(request)
        if is_new:
            # Before any row: a crash after the first flush must not make its snapshot look older than the callback.
            self.callbacks.begin(opened)
        return self.stored_stats.info(opened), is_new

    def _list(self, pattern: str, caller: Caller) -> list[DescribedTable]:
        readable = (opened for opened in self.tables.all() if caller.may(READ, opened.name))
        return self.stored_stats.all_described(
            opened for opened in readable if not pattern or fnmatch.fnmatchcase(opened.name, pattern)
        )

    def _buffered(self) -> int:
        return sum(opened.buffered_records for opened in self.tables.all())
