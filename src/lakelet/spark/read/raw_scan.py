"""Files that Spark's own Parquet reader reads: the fast part of a scan.

Files of one schema version make one frame, read by the names and types that the columns have in these files; the plan then
renames and widens them by field id to the schema that is read. No setting of the session and no partition folder has a say
in it: field ids are never given to Spark, and its guessing of partition columns is off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakelet.errors import NotFoundError
from lakelet.format.data.parquet_file import NAME as PARQUET
from lakelet.model.schema import TableSchema
from lakelet.model.types import FLOATS, Atomic, DataType, Field, Kind, Row
from lakelet.predicate.tree import Predicate
from lakelet.read.split_files import SplitFile, naming
from lakelet.spark.column_names import column_named
from lakelet.spark.read.deleted_rows import without_deleted
from lakelet.spark.read.predicate_expression import spark_condition
from lakelet.spark.session import is_connect, settings
from lakelet.spark.types import spark_schema, spark_type
from lakelet.storage.home import TableHome

THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_FIRST_API = "spark.sql.sources.useV1SourceList"
_MILLI = 3
_S3A = "spark.lakelet.s3a"
_S3A_SETTINGS = "spark.hadoop.fs.s3a."
_S3A_CLASS = "org.apache.hadoop.fs.s3a.S3AFileSystem"
READ_OPTIONS = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "mergeSchema": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    # Turns Spark's guessing of partition columns off, as its documentation says.
    "recursiveFileLookup": "true",
}


def spark_location(spark: SparkSession, home: TableHome) -> str | None:
    """The root of the store as Spark's file systems name it; None where Spark cannot reach it."""
    location = home.store.location.rstrip("/")
    if location.startswith("/"):
        return f"file://{location}"
    parts = urlsplit(location)
    if parts.scheme != "s3" or not _has_s3a(spark):
        return None
    return f"s3a://{parts.netloc}{parts.path}"


def _has_s3a(spark: SparkSession) -> bool:
    """Whether Hadoop's S3 client is on the class path and set up, which options of ours cannot do; a setting may say so, too."""
    told = str(spark.conf.get(_S3A, "") or "").lower()
    if told or is_connect(spark):
        return told == "true"
    if not any(key.startswith(_S3A_SETTINGS) for key, _ in spark.sparkContext.getConf().getAll()):
        return False
    try:
        # Jars of --jars and --packages are known to the thread's loader alone.
        java = _jvm(spark).java.lang
        java.Class.forName(_S3A_CLASS, False, java.Thread.currentThread().getContextClassLoader())
    except Exception as error:
        if "ClassNotFoundException" not in str(error):
            raise
        return False
    return True


def takes_any_name(spark: SparkSession) -> bool:
    """Whether Spark finds local files whose names are not ASCII; in a plain POSIX locale its JVM does not."""
    if is_connect(spark):
        return False
    return str(_jvm(spark).java.lang.System.getProperty("sun.jnu.encoding", "")).upper() in ("UTF-8", "UTF8")


def _jvm(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm


@dataclass(frozen=True, slots=True)
class RawScan:
    """Reads columns of files by Spark, filtered. `needed` are the columns asked for and those of the condition."""

    spark: SparkSession
    home: TableHome
    location: str
    wanted: tuple[Field, ...]
    needed: tuple[Field, ...]
    where: Predicate | None
    schema_of: Callable[[int], TableSchema]

    def frame(self, schema_id: int, files: Sequence[SplitFile]) -> DataFrame:
        """The rows of files written under one schema, in the columns wanted; either all have deletion vectors or none has."""
        stored = {field.id: field for field in self.schema_of(schema_id).fields}
        present = [stored[field.id] for field in self.needed if field.id in stored]
        frame = self._read(present, files)
        if files[0].vector is not None:
            frame = without_deleted(self.spark, self.home, frame, files)
        columns = {field.name: (_evolved(stored.get(field.id), field), field.type) for field in self.needed}
        if self.where is not None:
            frame = frame.where(spark_condition(self.where, columns))
        return frame.select(
            [
                shielded(columns[field.name][0], _pushed_type(stored.get(field.id), field)).alias(field.name)
                for field in self.wanted
            ]
        )

    def _read(self, present: Sequence[Field], files: Sequence[SplitFile]) -> DataFrame:
        paths = [f"{self.location}/{file.path}" for file in files]
        # Otherwise Spark starts a job to list files that are known by name.
        listed = {} if self.location.startswith("s3a:") else {THRESHOLD: str(len(paths) + 1)}
        with settings(self.spark, listed | _first_api(self.spark)), naming(self.home, files):
            try:
                frame = self.spark.read.schema(spark_schema(present)).options(**READ_OPTIONS).parquet(*paths)
                if is_connect(self.spark):
                    # A Connect session lists the files when the plan is first looked at, and remembers them.
                    _ = frame.schema
            except AnalysisException as error:
                raise NotFoundError(str(error)) from error
        return frame


def _first_api(spark: SparkSession) -> dict[str, str]:
    """What makes Spark read by its first API of data sources, which alone tells the place of a row, in any session."""
    chosen = str(spark.conf.get(_FIRST_API)).lower().split(",")
    return {} if PARQUET in [name.strip() for name in chosen] else {_FIRST_API: ",".join([*chosen, PARQUET])}


def shielded(column: Column, data_type: DataType) -> Column:
    """A column on which Spark pushes no condition of its own into files where it would leave rows out: dictionaries tell -0.0
    from 0.0, statistics of some writers know nothing of NaN, and where files hold milliseconds `t < '00:00:01.0005'` becomes
    `t < '00:00:01.000'`."""
    if isinstance(data_type, Atomic) and data_type.kind in FLOATS:
        return F.nanvl(column, F.lit(math.nan).cast(spark_type(data_type)))
    if _in_millis(data_type):
        return F.timestamp_micros(F.unix_micros(column))
    if isinstance(data_type, Row) and _needs_shield(data_type):
        inner = [shielded(column.getField(field.name), field.type).alias(field.name) for field in data_type.fields]
        return F.when(column.isNotNull(), F.struct(*inner))
    return column


def _needs_shield(data_type: DataType) -> bool:
    if isinstance(data_type, Row):
        return any(_needs_shield(field.type) for field in data_type.fields)
    return _in_millis(data_type) or (isinstance(data_type, Atomic) and data_type.kind in FLOATS)


def _in_millis(data_type: DataType) -> bool:
    """Whether files hold instants in milliseconds; Spark pushes nothing on timestamps without a zone."""
    return isinstance(data_type, Atomic) and data_type.kind is Kind.TIMESTAMP_LTZ and data_type.precision <= _MILLI


def _pushed_type(stored: Field | None, field: Field) -> DataType:
    """The type by which conditions go into files: of instants the one that these have, which may be coarser than the column's."""
    timed = isinstance(field.type, Atomic) and field.type.kind is Kind.TIMESTAMP_LTZ
    return stored.type if stored is not None and timed else field.type


def _evolved(stored: Field | None, field: Field) -> Column:
    """A column of the schema read, out of the one that the files have."""
    target = spark_type(field.type)
    if stored is None:
        return F.lit(None).cast(target)
    column = column_named(stored.name)
    return column if spark_type(stored.type) == target else column.cast(target)
