"""One share of a query, as a task of Spark runs it: the text and the tables of a fragment, in a sandbox of the executor's own.

A task answers with its rows in Arrow's stream format, or with the error that one node would have given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakelet.clock import SystemClock
from lakelet.errors import UnavailableError
from lakelet.service.query.fragment_runs import FragmentRuns
from lakelet.service.query.query_limits import QueryLimitError, QueryLimits
from lakelet.sql.engine.duckdb_engine import ENGINE
from lakelet.sql.sandbox.sandbox import Sandbox
from lakelet.sql.sandbox.spread import Work


@dataclass(frozen=True, slots=True)
class SparkFragment:
    """The work of a query, of which each call does some splits; travels to executors.

    `engine` is the DuckDB of the node that asks: another one might give other values.
    """

    work: Work
    location: str
    limits: QueryLimits
    seconds: float
    most_bytes: int
    engine: str = ENGINE

    def __call__(self, splits: Sequence[str]) -> bytes:
        """The rows of some splits."""
        if self.engine != ENGINE:
            raise UnavailableError(f"executors have DuckDB {ENGINE}, the service {self.engine}")
        sandbox = Sandbox(self.location, self.limits.engine_settings())
        try:
            runs = FragmentRuns(sandbox, self.location, self.limits, SystemClock())
            running = runs.prepare(self.work.fragment(splits, has_memory=False), self.seconds)
            sink, given = pa.BufferOutputStream(), 0
            with pa.ipc.new_stream(sink, self.work.schema) as writer:
                for batch in running.batches():
                    given += batch.nbytes
                    if given > self.most_bytes:
                        raise QueryLimitError(f"a task gives more than {self.most_bytes} bytes")
                    writer.write_batch(batch)
            found: bytes = sink.getvalue().to_pybytes()
            return found
        finally:
            sandbox.close()
