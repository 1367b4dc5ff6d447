"""The tasks of `measure_query`: a served table of rows of one day, and the same queries by the service and by DuckDB alone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import lakelet
from benchmarks.contender import serve
from lakelet.service.query.query_engine import QueryEngine, QueryRequest

_COLUMNS = [
    ("id", "STRING NOT NULL"),
    ("timestamp", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
    ("payload", "ROW<age BIGINT, score DOUBLE, name STRING, active BOOLEAN>"),
    ("payload_rest", "STRING"),
    ("dt", "DATE"),
]
_PIECE = 1_000_000
_FIRST_US = 1_769_853_600_000_000
_QUERIES = {
    "count": "SELECT count(*) AS n FROM events WHERE payload.age > 30",
    "group": "SELECT payload.age AS age, count(*) AS n, avg(payload.score) AS mean FROM events GROUP BY 1 ORDER BY 1",
    "text": "SELECT payload.name AS name, sum(payload.age) AS total FROM events GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 100",
    "one": "SELECT id, payload.age AS age, payload.score AS score FROM events WHERE id = '0000000000000777'",
}


def make(folder: str, rows: int) -> dict[str, Any]:
    """Write the table."""
    lake = lakelet.connect(str(Path(folder, "lake")))
    lake.create_database("default", if_not_exists=True)
    table = lake.create_table(
        "default.events", _COLUMNS, partitioned_by=["dt"], options={"bucket": "2", "bucket-key": "id"}
    )
    for begin in range(0, rows, _PIECE):
        table.write(_rows(begin, min(_PIECE, rows - begin)))
    return {"rows": rows}


def turns(folder: str, repeats: int) -> dict[str, Any]:
    """The least processor time of each query by each of both."""
    lake = lakelet.connect(str(Path(folder, "lake")))
    engine = QueryEngine(lake, Served(lake.table("default.events")))
    # The writes have compacted files away, which are still there.
    files = [str(Path(folder, "lake", path)) for path, _ in lake.table("default.events").files()]
    alone = duckdb.connect()
    alone.execute("SET parquet_metadata_cache = true")
    alone.execute(f"CREATE VIEW events AS FROM read_parquet({files!r}, hive_partitioning = false)")
    found: dict[str, Any] = {"seconds": 0.0, "queries": _QUERIES}
    for name, sql in _QUERIES.items():
        ours: list[Any] = []
        theirs: list[Any] = []
        for _ in range(repeats + 1):
            ours.append(_timed(lambda sql=sql: json.loads(engine.run(QueryRequest(sql)).json())))
            theirs.append(_timed(lambda sql=sql: alone.execute(sql).fetchall()))
        assert len(ours[0][1]) == len(theirs[0][1])
        # The first of each loads footers.
        found[f"{name}_service_seconds"] = min(seconds for seconds, _ in ours[1:])
        found[f"{name}_duckdb_seconds"] = min(seconds for seconds, _ in theirs[1:])
        found["seconds"] += found[f"{name}_service_seconds"]
    return found


@dataclass(frozen=True)
class Served:
    """The only served table, which nobody writes."""

    table: Any
    name: str = "events"
    writer: None = None
    hides_day: bool = True

    def names(self) -> list[str]:
        """Its name."""
        return [self.name]

    def open(self, _name: str) -> Served:
        """The table."""
        return self


def _timed(action: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.process_time()
    answer = action()
    return time.process_time() - begin, answer


def _rows(begin: int, count: int) -> pa.Table:
    numbers = np.arange(begin, begin + count)
    payload = pa.StructArray.from_arrays(
        [
            pa.array(numbers % 90),
            pa.array(numbers % 1000 + 0.5),
            pa.array([f"name {number}" for number in (numbers % 10_000).tolist()]),
            pa.array(numbers % 2 == 0),
        ],
        names=["age", "score", "name", "active"],
    )
    moments = pa.array(_FIRST_US + numbers % 40_000_000 * 1000).cast(pa.timestamp("us", "UTC"))
    return pa.table(
        {
            "id": pa.array([f"{number:016}" for number in numbers.tolist()]),
            "timestamp": moments,
            "payload": payload,
            "payload_rest": pa.nulls(count, pa.string()),
            "dt": pa.array([date(2026, 1, 31)] * count),
        }
    )


if __name__ == "__main__":
    serve(make, turns)
