"""Measure Lakelet, Iceberg's and Delta's connectors on Spark, each against bare Parquet.

The connectors need an older Spark than Lakelet does. So there are two sessions, and Parquet takes its turns in both of them: the
ratios to Parquet are compared.

    LAKELET_BENCH_SPARK_PEERS   a Python with that pyspark and with what Lakelet needs
    LAKELET_BENCH_SPARK_JARS    a folder with iceberg-spark-runtime, delta-spark and delta-storage

Found to work together: pyspark 4.1.4, iceberg-spark-runtime-4.1_2.13 1.12.0, delta-spark_4.1_2.13 and delta-storage 4.4.0.
On Spark 4.3 neither these nor delta-spark_4.2_2.13 4.4.0 load: classes of Spark that they extend have changed. Paimon has no
connector for Spark 4 on Maven Central up to 1.4.2.
"""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.benchmark import Result, Scale
from benchmarks.rounds import ContenderError, run_task
from benchmarks.spark.measure_spark import compared

ROWS = 1_000_000
UPSERT_ROWS = 200_000
TASKS = "spark/spark_peer_tasks.py"
BUCKETS = 2
PARQUET_IS = {"load": "parquet", "upsert": "parquet append", "scan": "parquet of all versions"}


def measure_spark_peers(scale: Scale) -> list[Result]:
    """A load of 1M rows, an upsert of 200,000, the scan after it: each format against bare Parquet in the same session."""
    python, jars = os.environ.get("LAKELET_BENCH_SPARK_PEERS"), os.environ.get("LAKELET_BENCH_SPARK_JARS")
    if python is None or jars is None:
        raise ContenderError("LAKELET_BENCH_SPARK_PEERS and LAKELET_BENCH_SPARK_JARS are not set")
    shape = {
        "rows": scale.of(ROWS),
        "count": scale.of(UPSERT_ROWS),
        "buckets": BUCKETS,
        "rounds": scale.rounds,
    }
    theirs = {"formats": ["parquet", "iceberg", "delta"], "jars": sorted(map(str, Path(jars).glob("*.jar")))}
    ours = {"formats": ["parquet", "lakelet"], "jars": []}
    sessions = [
        run_task(TASKS, "compare", {**shape, **ours, "folder": str(scale.folder / "ours")}),
        run_task(TASKS, "compare", {**shape, **theirs, "folder": str(scale.folder / "theirs")}, python),
    ]
    return [
        compared(f"Spark {step}, {name}, {PARQUET_IS[step]}", measured, found[step]["parquet"], None)
        for step in PARQUET_IS
        for found in sessions
        for name, measured in found[step].items()
        if name != "parquet"
    ]
