"""Making the source "lakelet" known to a session by hand.

Where the package is installed Spark finds it by itself (`pyspark_lakelet`); this is for sessions that were started before, or
that get their code as a file.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from lakelet.spark.data_source import LakeletDataSource


def register(spark: SparkSession) -> None:
    """Lets the session know `format("lakelet")`; done twice, it stays the same."""
    spark.dataSource.register(LakeletDataSource)
