"""Lakelet beside Iceberg's and Delta's connectors for Spark, in one session with bare Parquet.

It needs a Spark that both connectors are published for, which is not the one that Lakelet is locked to:

    LAKELET_BENCH_SPARK_PEERS   a Python with that pyspark and with what Lakelet needs
    LAKELET_BENCH_SPARK_JARS    a folder with iceberg-spark-runtime, delta-spark and delta-storage

Found to work together: pyspark 4.1.4, iceberg-spark-runtime-4.1_2.13 1.12.0, delta-spark_4.1_2.13 and delta-storage 4.4.0.
On Spark 4.3 neither these nor delta-spark_4.2_2.13 4.4.0 load: classes of Spark that they extend have changed. Paimon has no
connector for Spark 4 on Maven Central up to 1.4.2.
"""

from __future__ import annotations

import os
from pathlib import Path

from benchmark import Result, Scale
from measure_spark import compared
from rounds import ContenderError, run_task

ROWS = 1_000_000
UPSERT_ROWS = 200_000
BUCKETS = 2
PARQUET_IS = {"load": "parquet", "upsert": "parquet append", "scan": "parquet of all versions"}


def measure_spark_peers(scale: Scale) -> list[Result]:
    """A load of 1M rows, an upsert of 200,000, the scan after it: each table format against bare Parquet in the same session."""
    python, jars = os.environ.get("LAKELET_BENCH_SPARK_PEERS"), os.environ.get("LAKELET_BENCH_SPARK_JARS")
    if python is None or jars is None:
        raise ContenderError("LAKELET_BENCH_SPARK_PEERS and LAKELET_BENCH_SPARK_JARS are not set")
    shape = {
        "folder": str(scale.folder),
        "jars": sorted(map(str, Path(jars).glob("*.jar"))),
        "rows": scale.of(ROWS),
        "count": scale.of(UPSERT_ROWS),
        "buckets": BUCKETS,
        "rounds": scale.rounds,
    }
    found = run_task("spark_peer_tasks.py", "peers", shape, python)
    return [
        compared(f"Spark {step}, {name}, {PARQUET_IS[step]}", found[step][name], found[step]["parquet"], None)
        for step in PARQUET_IS
        for name in ("lakelet", "iceberg", "delta")
    ]
