"""The Spark session that a pipeline runs in: this machine, a cluster, or a Spark Connect server."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakelet.errors import UnavailableError
from lakelet.spark.jobs.quiet_session import quiet_session


@contextmanager
def pipeline_session(
    name: str, master: str | None, remote: str | None, settings: Mapping[str, str]
) -> Iterator[SparkSession]:
    """A session for the time of a block; UnavailableError where there is none to be had."""
    # PySpark writes a trace of every refused query to standard error, which our own line is told instead of.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    if remote is not None:
        yield from _connected(name, remote, settings)
        return
    chosen = {
        "spark.master": master or f"local[{os.cpu_count() or 2},4]",
        # Listing results of a small pipeline in 200 pieces takes longer than computing them.
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 2)),
        **settings,
    }
    with quiet_session(f"lakelet pipeline {name}", config=chosen) as spark:
        yield spark


def _connected(name: str, remote: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    try:
        spark = SparkSession.builder.remote(remote).appName(f"lakelet pipeline {name}").getOrCreate()
        for key, value in settings.items():
            spark.conf.set(key, value)
    except (PySparkException, ImportError) as error:
        shown = " ".join(str(error).split())[:300]
        raise UnavailableError(f"Spark Connect at {remote} cannot be reached: {shown}") from None
    try:
        yield spark
    finally:
        spark.stop()
