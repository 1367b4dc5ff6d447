"""Iceberg tables on Spark: inserts into many partitions beside `repartition` and `partitionBy().parquet`, in one session.

Both the clock and the processor time of the whole tree of processes are compared; the target holds for the clock.
"""

from __future__ import annotations

from benchmarks.benchmark import Result, Scale
from benchmarks.rounds import run_task
from benchmarks.spark.measure_spark import compared

ROWS = (1_000_000, 10_000_000)
PARTITIONS = (100, 1_000)
LIMIT = 1.15
TASKS = "spark/iceberg_spark_tasks.py"


def measure_iceberg_spark(scale: Scale) -> list[Result]:
    """1M and 10M rows into 100 and 1,000 partitions; and 1M rows by buckets of a number and of a text, without a target."""
    results = []
    for rows in ROWS:
        for partitions in PARTITIONS:
            results.append(_inserted(scale, scale.of(rows), partitions, "identity", LIMIT))
    for transform in ("bucket", "text"):
        results.append(_inserted(scale, scale.of(ROWS[0]), PARTITIONS[0], transform, None))
    return results


def _inserted(scale: Scale, rows: int, partitions: int, transform: str, limit: float | None) -> Result:
    folder = str(scale.folder / f"iceberg-spark-{rows}-{partitions}-{transform}")
    shape = {"rows": rows, "partitions": partitions, "transform": transform, "rounds": scale.rounds}
    found = run_task(TASKS, "partitioned_write", {"folder": folder, **shape})
    ours, peer = found["lakelet"], found["parquet"]
    name = f"Spark insert of {rows:,} rows into {partitions:,} partitions by {transform}"
    return compared(f"{name}, {ours['files']:,} files, parquet with {peer['files']:,}", ours, peer, limit)
