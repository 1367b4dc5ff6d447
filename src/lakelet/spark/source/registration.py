"""Register the data sources "lakelet" and "lakelet-iceberg" with a session by hand.

Where the package is installed Spark finds them by itself (`pyspark_lakelet`, `pyspark_lakelet_iceberg`); this is for sessions
that were started before, or that get their code as a file.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from pyspark.sql import SparkSession

from lakelet.spark.source.data_source import LakeletDataSource
from lakelet.spark.workers import prepare_workers


def register(spark: SparkSession) -> None:
    """Registers `format("lakelet")` and, where pyiceberg is installed, `format("lakelet-iceberg")` with the session;
    idempotent."""
    prepare_workers(spark)
    spark.dataSource.register(LakeletDataSource)
    if find_spec("pyiceberg") is not None:
        spark.dataSource.register(import_module("lakelet.spark.iceberg.data_source").IcebergDataSource)
