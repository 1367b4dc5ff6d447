"""Contenders that share one Spark session and take turns in it.

A JVM gets faster while it runs and starting one takes seconds, so that a process for every measurement would measure that. Here
every contender works some rounds that are not counted, then all take turns; beside wall-clock time the processor time of the
whole process tree is measured, JVM and Python workers included. The minimum of the rounds is reported, with the medians.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.process_tree import processor_seconds
from lakelet.spark.session import local_session

CORES = 2
WARM_UP = 2
ZSTD_LEVEL = "1"
"""What Lakelet writes with; Spark's own default is 3."""


@dataclass(frozen=True)
class Turn:
    """What a contender does in one round; `before` prepares the round by its number and is not counted."""

    action: Callable[[int], object]
    before: Callable[[int], object] | None = None


@contextmanager
def session(folder: str, config: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session of two cores and 4 GB that keeps its files in a folder."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.driver.memory": "4g",
        "spark.local.dir": f"{folder}/spark",
        "spark.sql.warehouse.dir": f"{folder}/spark-warehouse",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "8",
        **(config or {}),
    }
    spark = local_session("lakelet-bench", cores=CORES, config=settings)
    try:
        yield spark
    finally:
        spark.stop()


def take_turns(rounds: int, turns: Mapping[str, Turn], warm_up: int = WARM_UP) -> dict[str, dict[str, Any]]:
    """The times of every contender."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in turns}
    for number in range(warm_up + rounds):
        for name, turn in turns.items():
            if turn.before is not None:
                turn.before(number)
            gc.collect()
            begin, processor = time.perf_counter(), processor_seconds()
            turn.action(number)
            one = time.perf_counter() - begin, processor_seconds() - processor
            if number >= warm_up:
                taken[name].append(one)
    return {name: _summary(runs) for name, runs in taken.items()}


def _summary(runs: list[tuple[float, float]]) -> dict[str, Any]:
    clock, processor = zip(*runs, strict=True)
    return {
        "seconds": min(clock),
        "processor_seconds": min(processor),
        "median_seconds": median(clock),
        "median_processor_seconds": median(processor),
        "rounds": len(runs),
    }


def live_heap_bytes(spark: SparkSession) -> int:
    """What is in the JVM's heap right after a collection."""
    java: Any = spark._jvm
    java.System.gc()
    return int(java.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed())


def consume(frame: DataFrame) -> None:
    """Makes Spark compute every row and discard it."""
    frame.write.format("noop").mode("overwrite").save()


def write_parquet(frame: DataFrame, folder: str | Path, mode: str = "overwrite") -> None:
    """Spark's own Parquet files, compressed as Lakelet's are."""
    writer = frame.write.mode(mode).option("compression", "zstd")
    writer.option("parquet.compression.codec.zstd.level", ZSTD_LEVEL).parquet(str(folder))
