"""Fragments of queries that other nodes were asked, or this one: their share of the work, run here.

They have turns of their own, beside those of queries: a query waits for its fragments on all nodes, a fragment for others
alone, so that two nodes never wait for one another.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from dataclasses import replace

import pyarrow as pa

from lakelet.clock import Clock
from lakelet.service.query.query_limits import QueryLimits
from lakelet.service.query.query_result import QueryResult
from lakelet.service.query.query_run import QueryRun
from lakelet.sql.sandbox.sandbox import Sandbox
from lakelet.sql.sandbox.spread import Fragment

_NO_LIMIT = 1 << 60
# How often a fragment that waits for its turn looks whether anybody still waits for it.
_LOOK_SECONDS = 0.2


class FragmentRuns:
    """Runs fragments, for any number of threads."""

    def __init__(self, sandbox: Sandbox, location: str, limits: QueryLimits, clock: Clock) -> None:
        self._sandbox = sandbox
        self._location = location
        self._limits = replace(limits, rows=_NO_LIMIT, bytes=_NO_LIMIT)
        self._clock = clock
        self._slots = threading.BoundedSemaphore(limits.running)
        self._lock = threading.Lock()
        self._running: set[RunningFragment] = set()

    def prepare(self, fragment: Fragment, seconds: float) -> RunningFragment:
        """A fragment that runs when its rows are read, for so many seconds at most."""
        return RunningFragment(self, fragment, QueryRun(fragment.sql, None, self._clock.monotonic(), seconds))

    def cancel_all(self) -> None:
        """Interrupt all fragments."""
        with self._lock:
            found = list(self._running)
        for one in found:
            one.cancel()

    def start(self, running: RunningFragment, fragment: Fragment, run: QueryRun) -> QueryResult:
        """Bind a fragment, once it is its turn."""
        run.start_clock(run.seconds)
        try:
            while not self._slots.acquire(timeout=_LOOK_SECONDS):
                run.check()
        except BaseException:
            run.finish()
            raise

        def finished(run: QueryRun, _: int, __: BaseException | None) -> None:
            if run.finish():
                with self._lock:
                    self._running.discard(running)
                self._slots.release()

        with self._lock:
            self._running.add(running)
        try:
            with run.errors(self._location):
                query = self._sandbox.start(fragment.sql, fragment, None, fragment.zone, run.attach)
        except BaseException as error:
            finished(run, 0, error)
            raise
        return QueryResult(query, run, self._limits, self._location, finished)


class RunningFragment:
    """One fragment."""

    def __init__(self, runs: FragmentRuns, fragment: Fragment, run: QueryRun) -> None:
        self._runs = runs
        self._fragment = fragment
        self._run = run

    def batches(self) -> Generator[pa.RecordBatch]:
        """The rows, which are read once."""
        self._run.check()
        with self._runs.start(self, self._fragment, self._run) as result:
            yield from result.batches()

    def cancel(self) -> None:
        """Interrupt it; any thread may call this."""
        self._run.cancel()
