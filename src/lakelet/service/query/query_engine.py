"""Run queries of the service: the sandbox, and limits on time, rows, bytes and concurrency around it.

    engine = QueryEngine(lake, served)
    engine.run(QueryRequest("SELECT count(*) FROM users")).json()        b'[{"count_star()":2}]'
    engine.run(QueryRequest("FROM users")).batches()                     Arrow, batch by batch
    engine.cancel("request-7")                                           from any thread

A query reads the newest version of each of its tables, buffered rows included, as it is when the query starts. Its rows are read
once, in one of the two forms, and its slot is free when they have been read or the result is closed.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field

from lakelet.catalog.lake import Lake
from lakelet.clock import Clock, SystemClock
from lakelet.errors import InvalidError, OverloadedError
from lakelet.service.query.fragment_runs import FragmentRuns
from lakelet.service.query.gathered_fragments import WorkerNodes
from lakelet.service.query.query_limits import QueryLimits
from lakelet.service.query.query_result import QueryResult
from lakelet.service.query.query_run import QueryRun
from lakelet.service.query.query_spread import QuerySpread
from lakelet.service.query.served_table import OtherWriters, ServedTables
from lakelet.service.query.served_version import ServedVersions
from lakelet.service.query.spark_spread import SizedSpread, SparkSpread
from lakelet.service.service_spark import ServiceSpark
from lakelet.sql.sandbox.sandbox import Sandbox
from lakelet.sql.statement import Params

_LOG = logging.getLogger("lakelet.service.query")
_SHOWN_TEXT = 2_000
_LOCAL, _SPARK = "local", "spark"


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """One SELECT, or EXPLAIN [ANALYZE] of one. `params` are values for `$name`, or for `?` and `$1`; `request_id` is the one it
    can be cancelled by; `time_zone` is that of texts without one, UTC by default; `timeout_seconds` may shorten the limit.
    `engine` is where it runs: on Spark (`spark`), on this node alone (`local`), or, by default, where its size asks for.
    `warnings` gets why the answer may lack rows, before its first row is there."""

    sql: str
    params: Params = None
    request_id: str | None = None
    time_zone: str | None = None
    timeout_seconds: float | None = None
    engine: str | None = None
    warnings: list[str] = field(default_factory=list)


class QueryEngine:
    """Runs queries over served tables, for any number of threads."""

    def __init__(
        self,
        lake: Lake,
        served: ServedTables,
        limits: QueryLimits | None = None,
        clock: Clock | None = None,
        others: OtherWriters | None = None,
        workers: WorkerNodes | None = None,
        spark: ServiceSpark | None = None,
    ) -> None:
        self._workers = workers
        self._spark = None if spark is None or spark.address is None else spark
        self._lake = lake
        self._others = others
        self._served = served
        self._limits = limits or QueryLimits()
        self._clock = clock or SystemClock()
        self._sandbox = Sandbox(lake.location, self._limits.engine_settings())
        self.fragments = FragmentRuns(self._sandbox, lake.location, self._limits, self._clock, workers)
        self._slots = threading.BoundedSemaphore(self._limits.running)
        self._lock = threading.Lock()
        self._runs: set[QueryRun] = set()

    def run(self, request: QueryRequest, served: ServedTables | None = None) -> QueryResult:
        """Start a query over the tables that the caller may read, all by default; its rows are read from the result."""
        self._check(request)
        seconds = min(self._limits.seconds, request.timeout_seconds or self._limits.seconds)
        run = QueryRun(request.sql, request.request_id, self._clock.monotonic(), seconds)
        self._take_slot(run)
        try:
            with run.errors(self._lake.location):
                run.start_clock(seconds - (self._clock.monotonic() - run.started))
                tables = ServedVersions(self._served if served is None else served, self._others, request.warnings)
                spread = self._spread(run, request.engine)
                attach = run.attach if spread is None else lambda space: run.attach(spread.beside(space))
                query = self._sandbox.start(request.sql, tables, request.params, request.time_zone, attach, spread)
        except BaseException as error:
            self._finish(run, 0, error)
            raise
        return QueryResult(query, run, self._limits, self._lake.location, self._finish)

    @property
    def load(self) -> int:
        """How many queries and shares of those of other nodes run or wait."""
        with self._lock:
            return len(self._runs) + self.fragments.count

    def cancel(self, request_id: str) -> bool:
        """Interrupt the queries of a request; False where none runs."""
        with self._lock:
            found = [run for run in self._runs if run.request_id == request_id]
        for run in found:
            run.cancel()
        return bool(found)

    def close(self) -> None:
        """Interrupt all queries and close the sandbox."""
        with self._lock:
            found = list(self._runs)
        for run in found:
            run.cancel()
        self.fragments.cancel_all()
        self._sandbox.close()

    def _spread(self, run: QueryRun, engine: str | None) -> QuerySpread | SparkSpread | SizedSpread | None:
        """The other nodes, and Spark, as one query may use them."""
        if engine == _LOCAL:
            return None
        most = self._limits.gathered_bytes

        def seconds_left() -> float:
            return run.started + run.seconds - self._clock.monotonic()

        nodes = None
        if self._workers is not None and engine is None:
            nodes = QuerySpread(
                self._workers,
                self.fragments.prepare,
                least_bytes=self._limits.spread_bytes,
                most_gathered_bytes=most,
                seconds_left=seconds_left,
                own_load=lambda: self.load - 1,
            )
        if self._spark is None:
            return nodes
        spark = SparkSpread(
            self._spark,
            self.fragments.prepare,
            self._lake.location,
            self._limits,
            most_gathered_bytes=most,
            seconds_left=seconds_left,
            required=engine == _SPARK,
        )
        return spark if engine == _SPARK else SizedSpread(nodes, spark)

    def _check(self, request: QueryRequest) -> None:
        size = len(request.sql.encode(errors="surrogatepass"))
        if size > self._limits.sql_bytes:
            raise InvalidError(f"sql: expected at most {self._limits.sql_bytes} bytes, found {size}")
        if request.timeout_seconds is not None and not request.timeout_seconds > 0:
            raise InvalidError(f"timeout_seconds: expected a number above 0, found {request.timeout_seconds!r}")
        if request.engine not in (None, _LOCAL, _SPARK):
            raise InvalidError(f"engine: expected {_LOCAL} or {_SPARK}, found {request.engine!r}")
        if request.engine == _SPARK and self._spark is None:
            raise InvalidError("engine: this service has no Spark; start it with --spark")

    def _take_slot(self, run: QueryRun) -> None:
        with self._lock:
            self._runs.add(run)
        if not self._slots.acquire(timeout=min(self._limits.wait_seconds, run.seconds)):
            with self._lock:
                self._runs.discard(run)
            raise OverloadedError(f"{self._limits.running} queries are running already; try again later")

    def _finish(self, run: QueryRun, rows: int, error: BaseException | None) -> None:
        """Free the slot of a query, once, and log it if it was slow."""
        if not run.finish():
            return
        with self._lock:
            self._runs.discard(run)
        self._slots.release()
        seconds = self._clock.monotonic() - run.started
        if seconds >= self._limits.slow_seconds:
            ended = f"{rows} rows" if error is None else type(error).__name__
            _LOG.warning("slow query %s: %.3f s, %s: %s", run.request_id, seconds, ended, run.sql[:_SHOWN_TEXT])
