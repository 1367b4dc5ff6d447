"""By this package Spark finds the source "lakelet-iceberg" without registration: it looks for packages named `pyspark_…`.

Spark imports all of them and fails if one cannot be imported, so that without pyiceberg there is just no such source.
"""

from importlib.util import find_spec

if find_spec("pyiceberg") is not None:
    from lakelet.spark.iceberg.data_source import IcebergDataSource as DefaultSource

    __all__ = ["DefaultSource"]
