"""The target of an INSERT of `ls.sql`: its columns, what it replaces, and the result row."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.catalog.names import matching
from lakelet.commit.metadata.manifests import read_entries, read_manifest_list
from lakelet.errors import InvalidError
from lakelet.model.manifest import EntryKind
from lakelet.model.snapshot import Snapshot
from lakelet.model.types import FLOATS, Atomic, DataType
from lakelet.spark.column_names import column_named
from lakelet.spark.jobs.strict_text import StrictText
from lakelet.spark.opened_table import open_table
from lakelet.spark.sql.insert import Insert
from lakelet.spark.sql.names import TableName
from lakelet.spark.types import spark_type
from lakelet.spark.write.table_write import write

RESULT = "snapshot_id bigint, rows bigint"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class InsertTarget:
    """A table as the target of an INSERT."""

    def __init__(
        self,
        spark: SparkSession,
        warehouse: str | os.PathLike[str],
        name: TableName,
        options: Mapping[str, str],
    ) -> None:
        self._spark = spark
        self._warehouse = warehouse
        self._name = name
        self._options = options
        opened = open_table(warehouse, name.table, options, name.branch)
        self._home = opened.home
        self._schema = opened.schema()
        self._fields = {field.name: field for field in self._schema.fields}

    def check(self, insert: Insert) -> None:
        """InvalidError for columns that the table does not have, before the query is analysed."""
        fixed = [self._column(name) for name, _ in insert.partition]
        wrong = [name for name in fixed if name not in self._schema.partition_keys]
        if wrong:
            keys = ", ".join(self._schema.partition_keys) or "none"
            raise InvalidError(
                f"PARTITION: {wrong[0]!r} is no partition column of {self._name.table}; these are {keys}"
            )
        named = [self._column(name) for name in insert.columns or ()]
        static = [self._column(name) for name, value in insert.partition if value is not None]
        twice = next((name for name in named if named.count(name) > 1 or name in static), None)
        twice = twice or next((name for name in fixed if fixed.count(name) > 1), None)
        if twice is not None:
            raise InvalidError(f"INSERT: column {twice!r} is given more than once")

    def write(self, rows: DataFrame, insert: Insert) -> DataFrame:
        """Writes the rows; returns a frame of one row, the snapshot and the number of added rows."""
        static = {self._column(name): self._value(name, value) for name, value in insert.partition if value is not None}
        frame = self._named(rows, insert, static)
        mode, partition = self._mode(insert, static)
        if partition is None:
            for name, value in static.items():
                frame = frame.withColumn(name, _literal(value).cast(spark_type(self._fields[name].type)))
        return self._spark.createDataFrame([self._insert(frame, mode, partition)], RESULT)

    def _insert(self, frame: DataFrame, mode: str, partition: Mapping[str, object] | None) -> tuple[int | None, int]:
        """The snapshot and the number of added rows."""
        snapshot = write(
            frame,
            self._warehouse,
            self._name.table,
            mode,
            partition,
            missing="default",
            options=self._options,
            branch=self._name.branch,
        )
        return (None, 0) if snapshot is None else (snapshot.id, self._added(snapshot))

    def _mode(self, insert: Insert, static: Mapping[str, object]) -> tuple[str, Mapping[str, object] | None]:
        """Mode and static partition for `write`: a dynamic overwrite is static where PARTITION fixes all partition columns."""
        if not insert.overwrites:
            return "append", None
        setting = self._spark.conf.get("spark.sql.sources.partitionOverwriteMode", "static")
        if len(static) < self._partition_fields() and str(setting).lower() == "dynamic":
            return "overwrite_partitions", None
        return "overwrite", static or None

    def _partition_fields(self) -> int:
        """The number of partition fields."""
        return len(self._schema.partition_keys)

    def _named(self, rows: DataFrame, insert: Insert, static: Mapping[str, object]) -> DataFrame:
        """The rows under the names and in the types of the columns they are for."""
        if insert.by_name:
            names = [self._column(name) for name in rows.columns]
        else:
            left = [name for name in self._fields if name not in static]
            names = [self._column(name) for name in insert.columns] if insert.columns is not None else left
            if len(names) != len(rows.columns):
                raise InvalidError(
                    f"INSERT: the query gives {len(rows.columns)} columns, expected {len(names)}: {', '.join(names)}"
                )
        given = [field.dataType for field in rows.schema.fields]
        renamed = rows.toDF(*names)
        return renamed.select(*(self._converted(name, kind) for name, kind in zip(names, given, strict=True)))

    def _converted(self, name: str, given: T.DataType) -> Column:
        column = column_named(name)
        wanted = spark_type(self._fields[name].type)
        return column.cast(wanted).alias(name) if converts(given, wanted) else column

    def _column(self, name: str) -> str:
        """The table's column of that name, whatever its case."""
        found = matching(name, tuple(self._fields))
        if found is None:
            raise InvalidError(
                f"INSERT: {self._name.table} has no column {name!r}; its columns are {', '.join(self._fields)}"
            )
        return found

    def _value(self, name: str, text: str) -> object:
        """The value of a partition column that is given as SQL; InvalidError for one that the type would change."""
        field = self._fields[self._column(name)]
        given = self._spark.sql(f"SELECT ({text}) AS given")
        kind, wanted = given.schema[0].dataType, spark_type(field.type)
        if isinstance(kind, T.NullType):
            return None
        column = F.col("given")
        found = column if kind == wanted else column.try_cast(wanted)
        lost = column.isNotNull() & (found.isNull() | _changes(column, kind, found, field.type))
        is_lost, value = given.select(lost, _told(found, wanted)).collect()[0]
        if is_lost:
            raise InvalidError(f"PARTITION: {field.name!r} is {field.type}, which {text} does not fit")
        if value is None:
            return None
        if isinstance(wanted, T.TimestampType):
            return _EPOCH + dt.timedelta(microseconds=value)
        return dt.datetime.fromisoformat(value) if isinstance(wanted, T.TimestampNTZType) else value

    def _added(self, snapshot: Snapshot) -> int:
        manifests = read_manifest_list(self._home, snapshot.delta_manifest_list)
        entries = read_entries(self._home, manifests, columns=["_KIND", "_ROW_COUNT"])
        return added_rows(entries)


def _changes(given: Column, kind: T.DataType, found: Column, wanted: DataType) -> Column:
    """Whether the cast changes a value, such as a number that is rounded or a timestamp that is truncated to a day."""
    if isinstance(kind, T.StringType):
        return StrictText({}).is_bad(given, wanted)
    if isinstance(wanted, Atomic) and wanted.kind in FLOATS:
        return F.lit(False)
    return ~found.try_cast(kind).eqNullSafe(given)


def _told(found: Column, wanted: T.DataType) -> Column:
    """A value in a form for Python, where timestamps would come out in the zone of this process."""
    if isinstance(wanted, T.TimestampType):
        return F.unix_micros(found)
    return found.cast("string") if isinstance(wanted, T.TimestampNTZType) else found


def _literal(value: object) -> Column:
    """A value for Spark, without the zone of this process."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return F.timestamp_micros(F.lit((value - _EPOCH) // dt.timedelta(microseconds=1)).cast("bigint"))
    return F.lit(value.isoformat(" ") if isinstance(value, dt.datetime) else value)


def added_rows(entries: pa.Table) -> int:
    """The number of rows in the files that manifest entries add."""
    added = entries.filter(pc.equal(entries.column("_KIND"), int(EntryKind.ADD)))
    return int(pc.sum(added.column("_ROW_COUNT")).as_py() or 0)


def converts(given: T.DataType, wanted: T.DataType) -> bool:
    """Whether Spark converts a value on INSERT where the table's own conversions would refuse it, and none is lost in kind."""
    if given == wanted:
        return False
    if isinstance(given, T.NullType):
        return True
    if isinstance(wanted, (T.FloatType, T.DoubleType)):
        return isinstance(given, T.DecimalType)
    moments = (T.DateType, T.TimestampType, T.TimestampNTZType)
    if isinstance(wanted, (T.TimestampType, T.TimestampNTZType)):
        return isinstance(given, moments)
    if isinstance(wanted, T.StringType):
        return isinstance(given, (T.NumericType, T.BooleanType, *moments))
    return False
