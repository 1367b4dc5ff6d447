"""Tasks of streams into tables: the body of a trigger, the whole trigger beside it, and a run that goes on.

The body is what the sink does in foreachBatch; the trigger is what Spark reports of the batch. The peer writes the batch by
`df.write.parquet` in foreachBatch, as an append to one folder.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import lakelet
import lakelet.spark as ls
from benchmarks.contender import serve
from benchmarks.process_tree import TreeBytes, tree_bytes
from benchmarks.spark.spark_turns import live_heap_bytes, session, write_parquet
from lakelet.spark.stream.write import query as sink

COLUMNS = [("id", "BIGINT NOT NULL"), ("ts", "TIMESTAMP(6)"), ("amount", "DOUBLE"), ("note", "STRING")]
TABLES: dict[str, dict[str, Any]] = {
    "fixed": {"primary_key": ["id"], "options": {"bucket": "2"}},
    "append": {},
    "dynamic": {"primary_key": ["id"], "options": {"bucket": "-1"}},
}
_WARM_UP = 5
# The parts of a run after which the heap is looked at.
_HEAP_PARTS = (0.25, 0.25, 0.25, 0.25)


def triggers(folder: str, rows: int, batches: int) -> dict[str, Any]:
    """Batches of as many rows each into every kind of table, and as Parquet files."""
    with session(folder) as spark:
        found = {name: _triggers(spark, folder, name, rows, batches) for name in TABLES}
        found["parquet"] = _parquet(spark, folder, rows, batches)
    return found


def sustained(folder: str, name: str, rows: int, seconds: float, keys: int) -> dict[str, Any]:
    """A stream of batches without a pause for some time: rows a second, times and memory at the beginning and at the end.

    With `keys` the ids repeat from that number on. What the JVM has resident grows until its heap is as large as it may be; what
    a collection leaves in it tells whether something is kept.
    """
    with session(folder) as spark:
        _make(folder, name)
        bodies: list[float] = []
        memory: list[TreeBytes] = []
        stream = _rate(spark, rows, keys)

        def body(batch: DataFrame, batch_id: int) -> None:
            begin = time.perf_counter()
            ls.write_batch(batch, batch_id, folder, f"shop.{name}", mode=_mode(name), compaction="background")
            bodies.append(time.perf_counter() - begin)
            memory.append(tree_bytes())

        query = stream.writeStream.foreachBatch(body).option("checkpointLocation", f"{folder}/cp-{name}").start()
        begin = time.perf_counter()
        heaps = []
        for part in _HEAP_PARTS:
            query.awaitTermination(seconds * part)  # type: ignore[arg-type]
            heaps.append(live_heap_bytes(spark))
        took = time.perf_counter() - begin
        progress = [one.durationMs["triggerExecution"] / 1000 for one in query.recentProgress if one.numInputRows]
        query.stop()
        ls.wait_for_compactions()
        fifth = max(1, len(bodies) // 5)
        return {
            "seconds": took,
            "batches": len(bodies),
            "rows_per_second": rows * len(bodies) / took,
            "first_body_seconds": median(bodies[fifth : 2 * fifth]),
            "last_body_seconds": median(bodies[-fifth:]),
            "trigger_seconds": median(progress),
            "first_python_bytes": median(one.python for one in memory[fifth : 2 * fifth]),
            "last_python_bytes": median(one.python for one in memory[-fifth:]),
            "first_jvm_bytes": median(one.jvm for one in memory[fifth : 2 * fifth]),
            "last_jvm_bytes": median(one.jvm for one in memory[-fifth:]),
            "live_heap_bytes": heaps,
            "compactions_failed": len(ls.compaction_failures()),
            "files": len(list(Path(folder, "shop.db", name).rglob("data-*"))),
        }


def _triggers(spark: SparkSession, folder: str, name: str, rows: int, batches: int) -> dict[str, Any]:
    _make(folder, name)
    bodies: list[float] = []
    plain = sink._StreamSink.__call__

    def timed(self: Any, batch: DataFrame, batch_id: int) -> None:
        begin = time.perf_counter()
        plain(self, batch, batch_id)
        bodies.append(time.perf_counter() - begin)

    sink._StreamSink.__call__ = timed  # type: ignore[method-assign]
    try:
        query = ls.write_stream(
            _rate(spark, rows, 0),
            folder,
            f"shop.{name}",
            checkpoint=f"{folder}/cp-{name}",
            mode=_mode(name),
            trigger={"processingTime": "0 seconds"},
        )
        return _finished(query, bodies, batches)
    finally:
        sink._StreamSink.__call__ = plain  # type: ignore[method-assign]


def _parquet(spark: SparkSession, folder: str, rows: int, batches: int) -> dict[str, Any]:
    bodies: list[float] = []

    def body(batch: DataFrame, _: int) -> None:
        begin = time.perf_counter()
        write_parquet(batch, f"{folder}/parquet", "append")
        bodies.append(time.perf_counter() - begin)

    writer = _rate(spark, rows, 0).writeStream.foreachBatch(body)
    return _finished(writer.option("checkpointLocation", f"{folder}/cp-parquet").start(), bodies, batches)


def _finished(query: Any, bodies: list[float], batches: int) -> dict[str, Any]:
    while len(bodies) < batches + _WARM_UP and query.isActive:
        query.awaitTermination(0.2)
    progress = [one.durationMs["triggerExecution"] / 1000 for one in query.recentProgress if one.numInputRows]
    if not query.isActive and query.exception() is not None:
        raise RuntimeError(str(query.exception()))
    query.stop()
    counted = bodies[_WARM_UP : _WARM_UP + batches]
    return {
        "seconds": median(counted),
        "least_seconds": min(counted),
        "most_seconds": max(counted),
        "trigger_seconds": median(progress[_WARM_UP : _WARM_UP + batches]),
        "batches": len(counted),
    }


def _make(folder: str, name: str) -> None:
    lake = lakelet.connect(folder)
    lake.create_database("shop", if_not_exists=True)
    lake.create_table(f"shop.{name}", COLUMNS, **TABLES[name])


def _mode(name: str) -> str:
    return "append" if name == "append" else "upsert"


def _rate(spark: SparkSession, rows: int, keys: int) -> DataFrame:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).option("numPartitions", 2)
    key = f"pmod(value * 2654435761, {keys})" if keys else "value"
    return source.load().selectExpr(
        f"{key} AS id",
        "CAST(timestamp AS TIMESTAMP_NTZ) AS ts",
        "value / 7 AS amount",
        "concat('note ', value % 97) AS note",
    )


if __name__ == "__main__":
    serve(triggers, sustained)
