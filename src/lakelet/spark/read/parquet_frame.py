"""Read Parquet files with Spark's own reader, for any kind of table.

No session setting and no partition folder changes the result: columns are read by the names and types that they
have in the files, field ids are never given to Spark, and partition discovery is off.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.errors import NotFoundError
from lakelet.model.types import FLOATS, Atomic, DataType, Kind, Row
from lakelet.spark.column_names import column_named
from lakelet.spark.session import is_connect, settings
from lakelet.spark.types import spark_type

_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_MILLI = 3
_READ_OPTIONS = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "mergeSchema": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    # Turns Spark's partition discovery off, as its documentation says.
    "recursiveFileLookup": "true",
}


def parquet_frame(
    spark: SparkSession, paths: Sequence[str], stored: T.StructType, extra: Mapping[str, str] | None = None
) -> DataFrame:
    """The columns `stored` of files that are all known by name, read under `extra` settings of the session; NotFoundError where
    one of them is missing."""
    # Otherwise Spark starts a job to list the files; those of S3 are listed by such a job, many at once.
    listed = {} if paths[0].startswith("s3a:") or _listed_here(spark, len(paths)) else {_THRESHOLD: str(len(paths) + 1)}
    with settings(spark, {**listed, **(extra or {})}):
        try:
            frame = spark.read.schema(stored).options(**_READ_OPTIONS).parquet(*paths)
            if is_connect(spark):
                # A Connect session lists the files when the plan is first analysed, and caches the listing.
                _ = frame.schema
        except AnalysisException as error:
            raise NotFoundError(str(error)) from error
    return frame


def _listed_here(spark: SparkSession, paths: int) -> bool:
    """Whether Spark lists as many paths without a job, by the session's settings."""
    threshold = str(spark.conf.get(_THRESHOLD))
    return threshold.isdecimal() and int(threshold) >= paths


def read_as(name: str, stored: T.DataType | None, target: T.DataType) -> Column:
    """The stored column of this name cast to the type asked for; NULL where the files have none."""
    if stored is None:
        return F.lit(None).cast(target)
    return column_named(name) if stored == target else column_named(name).cast(target)


def takes_any_name(spark: SparkSession) -> bool:
    """Whether Spark finds local files whose names are not ASCII; in a plain POSIX locale its JVM does not."""
    if is_connect(spark):
        return False
    return str(jvm(spark).java.lang.System.getProperty("sun.jnu.encoding", "")).upper() in ("UTF-8", "UTF8")


def jvm(spark: SparkSession) -> Any:
    """The gateway to the driver's JVM; a Connect session has none."""
    return spark.sparkContext._jvm


def shielded(column: Column, data_type: DataType) -> Column:
    """A column on which Spark pushes no predicate into files where that would lose rows: dictionaries tell -0.0
    from 0.0, statistics of some writers know nothing of NaN, and where files hold milliseconds `t < '00:00:01.0005'` becomes
    `t < '00:00:01.000'`."""
    if isinstance(data_type, Atomic) and data_type.kind in FLOATS:
        return F.nanvl(column, F.lit(math.nan).cast(spark_type(data_type)))
    if in_millis(data_type):
        return F.timestamp_micros(F.unix_micros(column))
    if isinstance(data_type, Row) and needs_shield(data_type):
        inner = [shielded(column.getField(field.name), field.type).alias(field.name) for field in data_type.fields]
        return F.when(column.isNotNull(), F.struct(*inner))
    return column


def needs_shield(data_type: DataType) -> bool:
    """Whether a field of a ROW needs a shield, however deep."""
    if isinstance(data_type, Row):
        return any(needs_shield(field.type) for field in data_type.fields)
    return in_millis(data_type) or (isinstance(data_type, Atomic) and data_type.kind in FLOATS)


def in_millis(data_type: DataType) -> bool:
    """Whether files hold instants in milliseconds; Spark pushes nothing on timestamps without a zone."""
    return isinstance(data_type, Atomic) and data_type.kind is Kind.TIMESTAMP_LTZ and data_type.precision <= _MILLI
