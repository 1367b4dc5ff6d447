"""Scan files with Spark's own Parquet reader: the fast part of a scan.

Files of one schema version make one frame, read by the names and types that the columns have in these files; the plan then
renames and widens them by field id to the schema that is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T

from lakelet.format.data.parquet_file import NAME as PARQUET
from lakelet.model.schema import TableSchema
from lakelet.model.types import Atomic, DataType, Field, Kind
from lakelet.predicate.tree import Predicate
from lakelet.read.split_files import SplitFile, naming
from lakelet.spark.read.bitmap_filter import ROW_INDEX, local_bitmaps, task_bitmaps, without_hidden
from lakelet.spark.read.bitmap_lookup import ArrayLiterals, packed_bitmaps, without_looked_up
from lakelet.spark.read.column_texts import column_text
from lakelet.spark.read.marked_files import MarkedFiles
from lakelet.spark.read.parquet_frame import jvm, parquet_frame, read_as, shielded
from lakelet.spark.read.predicate_expression import spark_condition
from lakelet.spark.read.row_bitmaps import Words
from lakelet.spark.session import is_connect
from lakelet.spark.types import spark_schema, spark_type
from lakelet.storage.home import TableHome
from lakelet.table.read.table_scan import TableScan

_ROW_INDEX = T.StructField(ROW_INDEX, T.LongType())
_FIRST_API = "spark.sql.sources.useV1SourceList"
_S3A = "spark.lakelet.s3a"
_S3A_SETTINGS = "spark.hadoop.fs.s3a."
_S3A_CLASS = "org.apache.hadoop.fs.s3a.S3AFileSystem"


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
    """Whether Hadoop's S3 client is on the class path and configured, which Lakelet's options cannot do; a setting may say so."""
    told = str(spark.conf.get(_S3A, "") or "").lower()
    if told or is_connect(spark):
        return told == "true"
    if not any(key.startswith(_S3A_SETTINGS) for key, _ in spark.sparkContext.getConf().getAll()):
        return False
    try:
        # Jars of --jars and --packages are visible to the thread's class loader alone.
        java = jvm(spark).java.lang
        java.Class.forName(_S3A_CLASS, False, java.Thread.currentThread().getContextClassLoader())
    except Exception as error:
        if "ClassNotFoundException" not in str(error):
            raise
        return False
    return True


@dataclass(frozen=True, slots=True)
class RawScan:
    """Reads columns of files with Spark's reader, filtered. `needed` are the columns asked for and those of the condition."""

    spark: SparkSession
    scan: TableScan
    location: str
    wanted: tuple[Field, ...]
    needed: tuple[Field, ...]
    where: Predicate | None
    schema_of: Callable[[int], TableSchema]

    def marked_frames(self, marked: MarkedFiles) -> Iterator[DataFrame]:
        """The rows of files without their hidden rows, a frame for each schema that they were written under."""
        by_schema: dict[int, list[SplitFile]] = {}
        for file in marked.files:
            by_schema.setdefault(file.data.schema_id, []).append(file)
        found = task_bitmaps(self.spark, self.scan, marked.splits, marked.costs) if marked.splits else None
        for schema_id, files in by_schema.items():
            words = {file.data.size: marked.words[file.data.size] for file in files if found is None}
            filtered = self._filter(words) if found is None else partial(without_hidden, bitmaps=found)
            yield self.frame(schema_id, files, filtered)

    def _filter(self, words: Mapping[int, Words]) -> Callable[[DataFrame], DataFrame]:
        """The filter of files whose bitmaps are known."""
        packed, arrays = packed_bitmaps(words), ArrayLiterals.of(self.spark)
        if packed is not None and arrays is not None:
            return partial(without_looked_up, arrays=arrays, bitmaps=packed)
        return partial(without_hidden, bitmaps=local_bitmaps(self.spark, words))

    def frame(
        self, schema_id: int, files: Sequence[SplitFile], filtered: Callable[[DataFrame], DataFrame] | None = None
    ) -> DataFrame:
        """The rows of files written under one schema, in the projected columns; `filtered` leaves rows out by their place."""
        stored = {field.id: field for field in self.schema_of(schema_id).fields}
        present = [stored[field.id] for field in self.needed if field.id in stored]
        read = spark_schema(present)
        if filtered is None:
            frame = self._read(read, files)
        else:
            frame = filtered(self._read(T.StructType([*read.fields, _ROW_INDEX]), files))
        if self.where is not None:
            columns = {field.name: (_evolved(stored.get(field.id), field), field.type) for field in self.needed}
            frame = frame.where(spark_condition(self.where, columns))
        return self._projected(frame, [(stored.get(field.id), field) for field in self.wanted])

    def _projected(self, frame: DataFrame, fields: Sequence[tuple[Field | None, Field]]) -> DataFrame:
        """The columns asked for, of pairs of a stored field and the one that is read."""
        texts = [_text(stored, field) for stored, field in fields]
        known = [text for text in texts if text is not None]
        if known and len(known) == len(texts):
            return frame.selectExpr(*known)
        return frame.select(
            [
                shielded(_evolved(stored, field), _pushed_type(stored, field)).alias(field.name)
                for stored, field in fields
            ]
        )

    def _read(self, schema: T.StructType, files: Sequence[SplitFile]) -> DataFrame:
        paths = [f"{self.location}/{file.path}" for file in files]
        with naming(self.scan.home, files):
            return parquet_frame(self.spark, paths, schema, _first_api(self.spark))


def _first_api(spark: SparkSession) -> dict[str, str]:
    """The settings that make Spark read by data source API v1, which alone exposes the row index."""
    chosen = str(spark.conf.get(_FIRST_API)).lower().split(",")
    return {} if PARQUET in [name.strip() for name in chosen] else {_FIRST_API: ",".join([*chosen, PARQUET])}


def _pushed_type(stored: Field | None, field: Field) -> DataType:
    """The type in which predicates are pushed into files: for instants the stored one, which may be coarser than the column's."""
    timed = isinstance(field.type, Atomic) and field.type.kind is Kind.TIMESTAMP_LTZ
    return stored.type if stored is not None and timed else field.type


def _text(stored: Field | None, field: Field) -> str | None:
    name, kind = ("", None) if stored is None else (stored.name, spark_type(stored.type))
    return column_text(field.name, name, kind, spark_type(field.type), _pushed_type(stored, field))


def _evolved(stored: Field | None, field: Field) -> Column:
    """A column of the schema read, evolved from the stored one."""
    name, kind = ("", None) if stored is None else (stored.name, spark_type(stored.type))
    return read_as(name, kind, spark_type(field.type))
