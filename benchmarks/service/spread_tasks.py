"""The task of `measure_spread`: queries that three workers of one process run together, and DuckDB alone with as many threads.

A worker is a query engine with one thread. Fragments are handed over without a network; their rows are put aside and combined as
in a cluster.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

import lakelet
from benchmarks.contender import serve
from benchmarks.service.query_tasks import Served, make
from lakelet.service.query.gathered_fragments import FragmentStream
from lakelet.service.query.query_engine import QueryEngine, QueryRequest
from lakelet.service.query.query_limits import QueryLimits
from lakelet.sql.sandbox.spread import Fragment

_WORKERS = ("a", "b", "c")
_QUERIES = {
    "group": "SELECT payload.age AS age, count(*) AS n, avg(payload.score) AS mean FROM events GROUP BY 1 ORDER BY 1",
    "text": "SELECT payload.name AS name, sum(payload.age) AS total FROM events GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 100",
    "distinct": "SELECT count(DISTINCT payload.name) AS names, count(*) AS n FROM events",
    "top": "SELECT id, payload.score AS score FROM events WHERE payload.age > 80 ORDER BY score DESC, id LIMIT 100",
}


class _Workers:
    """Three workers, of which the first is the node that is asked."""

    own: str | None = "a"

    def __init__(self) -> None:
        self.engines: dict[str, QueryEngine] = {}

    def ids(self) -> Sequence[str]:
        """All of them."""
        return _WORKERS

    def loads(self) -> Mapping[str, float]:
        """None of them has anything else to do."""
        return {}

    def start(self, node: str, fragment: Fragment, seconds: float) -> FragmentStream:
        """Have one run a fragment."""
        return self.engines[node].fragments.prepare(fragment, seconds)


def turns(folder: str, repeats: int) -> dict[str, Any]:
    """The least time of each query by each of both."""
    lake = lakelet.connect(str(Path(folder, "lake")))
    served, workers = Served(lake.table("default.events")), _Workers()
    limits = QueryLimits(spread_bytes=0, threads=1)
    for name in _WORKERS:
        known = workers if name == workers.own else None
        workers.engines[name] = QueryEngine(lake, served, limits, workers=known)
    engine = workers.engines["a"]
    # The writes have compacted files away, which are still there.
    files = [str(Path(folder, "lake", path)) for path, _ in lake.table("default.events").files()]
    alone = duckdb.connect()
    alone.execute(f"SET parquet_metadata_cache = true; SET threads = {len(_WORKERS)}")
    alone.execute(f"CREATE VIEW events AS FROM read_parquet({files!r}, hive_partitioning = false)")
    found: dict[str, Any] = {"seconds": 0.0, "queries": _QUERIES}
    for name, sql in _QUERIES.items():
        assert json.loads(engine.run(QueryRequest(f"EXPLAIN {sql}")).json())[0]["explain_key"] == "distribution"
        ours = [_timed(lambda sql=sql: engine.run(QueryRequest(sql)).json()) for _ in range(repeats + 1)]
        theirs = [_timed(lambda sql=sql: alone.execute(sql).fetchall()) for _ in range(repeats + 1)]
        # The first of each loads footers.
        for whose, times in (("service", ours[1:]), ("duckdb", theirs[1:])):
            found[f"{name}_{whose}_seconds"] = min(clock for clock, _ in times)
            found[f"{name}_{whose}_processor"] = min(used for _, used in times)
        found["seconds"] += found[f"{name}_service_seconds"]
    return found


def _timed(action: Callable[[], Any]) -> tuple[float, float]:
    begin, used = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - begin, time.process_time() - used


if __name__ == "__main__":
    serve(make, turns)
