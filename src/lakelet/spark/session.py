"""What a Spark session tells about itself, classic or Connect, and settings that hold for a moment."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

_FEW = 2


def is_connect(spark: SparkSession) -> bool:
    """Whether the session talks to a Spark Connect server, where neither JVM nor SparkContext can be reached."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def default_parallelism(spark: SparkSession) -> int:
    """How many tasks run at once, about."""
    if is_connect(spark):
        return max(_FEW, min(shuffle_partitions(spark), os.cpu_count() or _FEW))
    return max(_FEW, int(spark.sparkContext.defaultParallelism))


def shuffle_partitions(spark: SparkSession) -> int:
    """How many partitions a shuffle makes unless told."""
    return int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)


@contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Session settings for the time of a block; afterwards they are what they were."""
    before = {key: spark.conf.get(key, None) for key in values}
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def local_session(name: str = "lakelet", *, cores: int = 2, config: Mapping[str, str] | None = None) -> SparkSession:
    """A session on this machine that retries failed tasks and runs the same Python as the caller."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{cores},4]").appName(name)
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        **(config or {}),
    }
    for key, value in chosen.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
