"""Fragments of queries that other nodes were asked, or this one: their share of the work, run here.

They have turns of their own, beside those of queries: a query waits for its fragments on all nodes, a fragment for others
alone, so that two nodes never wait for one another.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping
from dataclasses import replace

import pyarrow as pa

from lakelet.clock import Clock
from lakelet.errors import UnavailableError
from lakelet.service.query.gathered_fragments import FragmentGathering, WorkerNodes
from lakelet.service.query.gathered_rows import GatheredRows
from lakelet.service.query.query_limits import QueryLimits
from lakelet.service.query.query_result import QueryResult
from lakelet.service.query.query_run import QueryRun
from lakelet.sql.sandbox.sandbox import Sandbox
from lakelet.sql.sandbox.spread import Fragment, SpreadFailedError, rows_of

_NO_LIMIT = 1 << 60
# How often a fragment that waits for its turn looks whether anybody still waits for it.
_LOOK_SECONDS = 0.2


class FragmentRuns:
    """Runs fragments, for any number of threads."""

    def __init__(
        self, sandbox: Sandbox, location: str, limits: QueryLimits, clock: Clock, nodes: WorkerNodes | None = None
    ) -> None:
        """`nodes` run the fragments whose rows a fragment reads."""
        self._nodes = nodes
        self._gathered_bytes = limits.gathered_bytes
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

    @property
    def count(self) -> int:
        """How many run."""
        with self._lock:
            return len(self._running)

    def cancel_all(self) -> None:
        """Interrupt all fragments."""
        with self._lock:
            found = list(self._running)
        for one in found:
            one.cancel()

    def start(self, running: RunningFragment, fragment: Fragment, run: QueryRun) -> QueryResult:
        """Bind a fragment, once the rows are there that it reads, and it is its turn."""
        run.start_clock(run.seconds)
        given: dict[str, GatheredRows] = {}
        try:
            # Without a turn: it waits for other nodes, which may wait for this one.
            self._gather(fragment, run, given)
            while not self._slots.acquire(timeout=_LOOK_SECONDS):
                run.check()
        except BaseException:
            _close(given)
            run.finish()
            raise

        def finished(run: QueryRun, _: int, __: BaseException | None) -> None:
            if run.finish():
                _close(given)
                with self._lock:
                    self._running.discard(running)
                self._slots.release()

        with self._lock:
            self._running.add(running)
        try:
            with run.errors(self._location):
                rows = {one.name: rows_of(one.schema, given[one.name]) for one in fragment.given}
                query = self._sandbox.start(fragment.sql, fragment, None, fragment.zone, run.attach, given=rows)
        except BaseException as error:
            finished(run, 0, error)
            raise
        return QueryResult(query, run, self._limits, self._location, finished)

    def _gather(self, fragment: Fragment, run: QueryRun, given: dict[str, GatheredRows]) -> None:
        """The rows of other fragments that one reads."""
        if not fragment.given:
            return
        if self._nodes is None:
            raise UnavailableError("this node has no others to ask")
        gathering = FragmentGathering(
            self._nodes,
            self.prepare,
            most_bytes=self._gathered_bytes,
            seconds_left=lambda: run.started + run.seconds - self._clock.monotonic(),
        )
        run.attach(gathering)
        with run.errors(self._location):
            for one in fragment.given:
                try:
                    given[one.name] = gathering.gathered(one.schema, one.shares)
                except SpreadFailedError as error:
                    raise UnavailableError(str(error)) from error


def _close(given: Mapping[str, GatheredRows]) -> None:
    for one in given.values():
        one.close()


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
