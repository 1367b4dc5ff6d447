"""By this package Spark finds the source "lakelet" without registration: it looks for packages named `pyspark_…`."""

from lakelet.spark.source.data_source import LakeletDataSource as DefaultSource

__all__ = ["DefaultSource"]
