"""KEY_DYNAMIC on Spark: join rows with the partition and bucket of their keys, and route them to the writers.

    rows ─ by key, numbered within each key ─┐
                                             ├─ join ─ place of the row, delete at the old place ─ channel ─ writer
    keys of the snapshot, their buckets ─────┘

`sink/bucket/cross_partition.py` defines what happens to a row whose key is in another partition; here the same is done by
expressions, so that rows pass Python once, when they are written, and Spark sorts and spills what does not fit in memory.

The place of the rows of one key depends on the snapshot and on their partitions alone, not on the order of arrival:
a retried stage decides the same. New keys get their buckets in the task that writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.commit.changes import replaced_partitions
from lakelet.commit.metadata.manifests import snapshot_manifests
from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.commit.request import Overwrite
from lakelet.format.rows.binary_row import PREFIX
from lakelet.format.rows.binary_row_columns import decode_rows, encode_rows
from lakelet.model.bucket_mode import Place
from lakelet.model.row_kind import RowKind
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.split import Split
from lakelet.model.types import FLOATS, TIMESTAMPS, Atomic, Field
from lakelet.options import IGNORE_DELETE, IGNORE_UPDATE_BEFORE, ROWKIND_FIELD, TableOptions
from lakelet.predicate.row_filter import row_filter
from lakelet.read.table_reader import TableReader
from lakelet.scan.plan import Planner
from lakelet.sink.bucket.assigned_rows import BUCKET, FIRST_DELETE, NEW, PARTITION, REPEATED, AssignedRows, LookedUp
from lakelet.sink.bucket.cross_partition import Crossing
from lakelet.sink.bucket.dynamic_buckets import DynamicBucketAssigner
from lakelet.sink.bucket.placers import RowPlacer
from lakelet.sink.rows.row_kinds import SPELLINGS
from lakelet.spark.column_names import column_named
from lakelet.spark.read.merge_scan import balanced, packed, task_frame, unpacked
from lakelet.spark.route.bucket_groups import BucketGroups, Routed, free_name
from lakelet.spark.route.hash_expression import binary_row, joined_bytes, key_hash, partition_hash
from lakelet.spark.session import default_parallelism
from lakelet.spark.types import spark_type, to_spark_arrow
from lakelet.storage.home import TableHome
from lakelet.table.write.writer import row_counts

_MICROS_DIGITS = 6
_GREATEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class CrossingTable:
    """The table as of the snapshot that keys are looked up in, less what the write replaces. `job` names the write."""

    home: TableHome
    schema: TableSchema
    snapshot: Snapshot | None
    replaces: Overwrite | None
    job: str

    @property
    def fresh(self) -> bool:
        """Whether the write replaces the whole table, so that none of its rows is visible."""
        return self.replaces is not None and self.replaces.partition is not None and not self.replaces.partition

    def counts(self) -> dict[Place, int]:
        """About how many rows each bucket holds."""
        if self.fresh or self.snapshot is None:
            return {}
        return row_counts(self.home, snapshot_manifests(self.home, self.snapshot))

    def splits(self) -> list[Split]:
        """The splits from which visible keys are read."""
        if self.fresh or self.snapshot is None:
            return []
        schema_of = SchemaVersions(self.home, {self.schema.id: self.schema})
        planner = Planner(self.home, self.schema, schema_of, TableOptions(self.schema.options))
        splits = planner.plan(self.snapshot).splits
        replaced = replaced_partitions(self.replaces, self.schema)
        if replaced is None or not splits:
            return list(splits)
        gone = replaced(pa.array([split.partition for split in splits], pa.binary()))
        return [split for split, out in zip(splits, gone.tolist(), strict=True) if not out]


def partitions_of(frame: DataFrame, schema: TableSchema) -> frozenset[bytes]:
    """The partitions (BinaryRow bytes) that the rows of a frame belong to: a job of its own."""
    found = frame.select(_partition_row(schema).alias("partition")).distinct()
    return frozenset(bytes(row[0]) for row in found.collect())


def crossed(
    frame: DataFrame, table: CrossingTable, *, kinds: str | None, one_row_per_key: bool, parallelism: int | None
) -> Routed:
    """The rows of a frame, in the table's columns, shuffled to their writers; `kinds` is the column of row kinds."""
    schema, counts = table.schema, table.counts()
    groups = BucketGroups.of(frame, schema, counts, parallelism)
    crossing = Crossing.of(schema)
    columns = _Columns(frame, schema)
    rows = columns.numbered(_without_ignored(frame, schema, kinds))
    if crossing is Crossing.MOVES and not one_row_per_key:
        rows = rows.where(F.col(columns.turn) == 1)
    splits = table.splits()
    rows = columns.with_places(rows, _keys_frame(frame, table, columns, splits) if splits else None)
    if crossing is Crossing.MOVES:
        placed = columns.moved(rows)
    else:
        placed = columns.stayed(rows, skips=crossing is Crossing.SKIPS, one_row_per_key=one_row_per_key)
    bucket = columns.carried_bucket()
    bucket = F.when(bucket <= FIRST_DELETE, F.lit(FIRST_DELETE) - bucket).otherwise(bucket)
    channel = groups.channel(schema, bucket, partition_hash(schema), key_hash(schema))
    routed = placed.repartitionById(groups.channels, channel)
    return Routed(routed, _Writer(table, groups.groups, counts, columns.carried), columns.carried)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Makes the placer of a writer whose rows carry the buckets of known keys."""

    table: CrossingTable
    groups: int
    counts: Mapping[Place, int]
    carried: str

    def __call__(self) -> RowPlacer:
        table = self.table
        new_keys = DynamicBucketAssigner(
            table.home, table.schema, None, assigners=self.groups, counts=self.counts, fresh=True
        )
        at = 0 if table.snapshot is None else table.snapshot.id
        looked_up = LookedUp(None, None) if table.fresh else LookedUp(at, table.job)
        return AssignedRows(table.schema, self.carried, new_keys, looked_up)


class _Columns:
    """The columns that rows have on their way beside those of the table, and what is made of them.

    A place is the values of the partition columns and, where these are `blurred`, last the partition's BinaryRow: it
    distinguishes partitions that Spark takes for one, and restores values that Spark's types cannot hold.
    """

    def __init__(self, frame: DataFrame, schema: TableSchema) -> None:
        self._names = list(frame.columns)
        self._schema = schema
        self._key = [schema.field(name) for name in schema.primary_keys]
        self.exact = any(map(_is_blurred, self._key))
        self.blurred = any(map(_is_blurred, schema.partition_fields))
        self.carried = free_name("__lakelet_bucket", frame)
        self.turn = free_name("__lakelet_turn", frame)
        self.old_bucket = free_name("__lakelet_old_bucket", frame)
        self._row = free_name("__lakelet_partition", frame)
        self._own = [column_named(name) for name in schema.partition_keys]
        self.types: list[T.DataType] = [spark_type(field.type) for field in schema.partition_fields]
        if self.blurred:
            self._own.append(F.col(self._row))
            self.types.append(T.BinaryType())
        self.old = [free_name(f"__lakelet_old_{place}", frame) for place in range(len(self._own))]
        self._first = [free_name(f"__lakelet_first_{place}", frame) for place in range(len(self._own))]
        keys = 1 if self.exact else len(self._key)
        self.keys = [free_name(f"__lakelet_key_{place}", frame) for place in range(keys)]
        self._copy = free_name("__lakelet_copy", frame)

    def carried_bucket(self) -> Column:
        """What rows carry, without the partition."""
        return F.col(self.carried).getField(BUCKET) if self.blurred else F.col(self.carried)

    def numbered(self, rows: DataFrame) -> DataFrame:
        """Rows of one key, counted from 1 in the order of their partitions, each with the partition of the first."""
        if self.blurred:
            rows = rows.withColumn(self._row, _partition_row(self._schema))
        by_key = Window.partitionBy(*self._own_keys()).orderBy(*self._own)
        firsts = [F.first(own).over(by_key).alias(name) for own, name in zip(self._own, self._first, strict=True)]
        return rows.select("*", F.row_number().over(by_key).alias(self.turn), *firsts)

    def with_places(self, rows: DataFrame, keys: DataFrame | None) -> DataFrame:
        """The rows with the old places of their keys, NULL where there are none."""
        if keys is None:
            nothing = [F.lit(None).cast(kind).alias(name) for kind, name in zip(self.types, self.old, strict=True)]
            return rows.select("*", *nothing, F.lit(None).cast("int").alias(self.old_bucket))
        pairs = zip(self._own_keys(), self.keys, strict=True)
        return rows.join(keys, [own == F.col(name) for own, name in pairs], "left")

    def moved(self, rows: DataFrame) -> DataFrame:
        """Moves a key to the partition of its row, and deletes it at its old place."""
        known, same = F.col(self.old_bucket).isNotNull(), self._stands_at([F.col(name) for name in self.old])
        repeated = F.col(self.turn) > 1
        bucket = F.when(repeated, F.lit(REPEATED)).when(known & same, F.col(self.old_bucket)).otherwise(F.lit(NEW))
        leaves = known & ~same & ~repeated
        copies = F.when(leaves, F.array(F.lit(False), F.lit(True))).otherwise(F.array(F.lit(False)))
        copied = rows.select("*", F.explode(copies).alias(self._copy))
        gone = F.col(self._copy)
        carried = F.when(gone, F.lit(FIRST_DELETE) - F.col(self.old_bucket)).otherwise(bucket)
        places = [F.when(gone, F.col(old)).otherwise(own) for own, old in zip(self._own, self.old, strict=True)]
        return self._chosen(copied, places, carried)

    def stayed(self, rows: DataFrame, *, skips: bool, one_row_per_key: bool) -> DataFrame:
        """Keeps a key in its partition: rows for another partition go there too, or are dropped."""
        known = F.col(self.old_bucket).isNotNull()
        places = [
            F.when(known, F.col(old)).otherwise(F.col(first)) for old, first in zip(self.old, self._first, strict=True)
        ]
        repeated = F.col(self.turn) > (1 if one_row_per_key else _GREATEST)
        carried = F.when(repeated, F.lit(REPEATED)).when(known, F.col(self.old_bucket)).otherwise(F.lit(NEW))
        if skips:
            rows = rows.where(repeated | self._stands_at(places))
        return self._chosen(rows, places, carried)

    def _own_keys(self) -> list[Column]:
        """Columns that are equal for two rows exactly where they have the same key."""
        if self.exact:
            return [binary_row([(column_named(field.name), field.type) for field in self._key])]
        return [column_named(field.name) for field in self._key]

    def _stands_at(self, places: Sequence[Column]) -> Column:
        equal = [own.eqNullSafe(place) for own, place in zip(self._own, places, strict=True)]
        return reduce(lambda one, other: one & other, equal)

    def _chosen(self, rows: DataFrame, places: Sequence[Column], carried: Column) -> DataFrame:
        """The table's columns, with the partition of the chosen place, and the columns carried to the writers."""
        values = dict(zip(self._schema.partition_keys, places, strict=False))
        own = [values.get(name, column_named(name)).alias(name) for name in self._names]
        told = carried.cast("int")
        if self.blurred:
            row = F.when(places[-1] != F.col(self._row), places[-1])
            told = F.struct(told.alias(BUCKET), row.alias(PARTITION))
        return rows.select(*own, told.alias(self.carried))


def _partition_row(schema: TableSchema) -> Column:
    """The BinaryRow of each row's partition."""
    fields = schema.partition_fields
    body = binary_row([(column_named(field.name), field.type) for field in fields])
    return joined_bytes(F.lit(len(fields).to_bytes(PREFIX, "big")), body)


def _is_blurred(field: Field) -> bool:
    """Whether Spark takes different values for one: -0.0 for 0.0, and times that differ by less than a microsecond."""
    if not isinstance(field.type, Atomic):
        return False
    kind = field.type.kind
    return kind in FLOATS or (kind in TIMESTAMPS and field.type.precision > _MICROS_DIGITS)


def _without_ignored(frame: DataFrame, schema: TableSchema, kinds: str | None) -> DataFrame:
    """Without the rows whose kind the table's options ignore: they do not count as duplicates of their keys."""
    options = TableOptions(schema.options)
    column = kinds or options.get(ROWKIND_FIELD)
    ignored = {RowKind.UPDATE_BEFORE} if options.get(IGNORE_UPDATE_BEFORE) else set()
    ignored |= {RowKind.UPDATE_BEFORE, RowKind.DELETE} if options.get(IGNORE_DELETE) else set()
    if not ignored or column is None:
        return frame
    found = column_named(column)
    if isinstance(frame.schema[column].dataType, T.StringType):
        out = F.upper(found).isin([text for text, kind in SPELLINGS.items() if kind in ignored])
    else:
        out = found.isin([int(kind) for kind in ignored])
    # A kind that is NULL is the writer's to refuse.
    return frame.where(~F.coalesce(out, F.lit(False)))


def _keys_frame(frame: DataFrame, table: CrossingTable, columns: _Columns, splits: Sequence[Split]) -> DataFrame:
    """The keys of the table and the place of each. A key that is in two places, against the rules, is taken from one."""
    spark = frame.sparkSession
    parts = balanced(splits, default_parallelism(spark))
    task = _KeysTask(table, tuple(packed(part) for part in parts), columns.exact, columns.blurred)
    schema = table.schema
    fields = [] if columns.exact else [schema.field(name) for name in schema.primary_keys]
    types = [T.BinaryType()] if columns.exact else [spark_type(field.type) for field in fields]
    types += [*columns.types, T.IntegerType()]
    names = [*columns.keys, *columns.old, columns.old_bucket]
    layout = T.StructType([T.StructField(name, found) for name, found in zip(names, types, strict=True)])
    found = task_frame(spark, task, len(parts), layout)
    place = F.struct(*(F.col(name) for name in (*columns.old, columns.old_bucket)))
    one = found.groupBy(*columns.keys).agg(F.min(place).alias("place"))
    return one.select(
        *(F.col(name) for name in columns.keys),
        *(F.col("place")[name].alias(name) for name in (*columns.old, columns.old_bucket)),
    )


@dataclass(frozen=True, slots=True)
class _KeysTask:
    """Reads the keys of some splits; `exact` gives them as BinaryRow bodies. `blurred` gives partitions as BinaryRows, too."""

    table: CrossingTable
    parts: tuple[bytes, ...]
    exact: bool
    blurred: bool

    def __call__(self, number: int) -> Iterator[pa.RecordBatch]:
        home, schema = self.table.home, self.table.schema
        fields = [schema.field(name) for name in schema.primary_keys]
        schema_of = SchemaVersions(home, {schema.id: schema})
        reader = TableReader(home, schema, schema.primary_keys, row_filter(None, schema.fields), schema_of)
        for split in unpacked(self.parts[number]):
            place = _place_columns(split, schema, blurred=self.blurred)
            for batch in reader.batches([split]):
                at = [pa.repeat(value, batch.num_rows) for value in place]
                columns = [*self._keys(batch, fields), *at]
                yield pa.RecordBatch.from_arrays(columns, [f"c{index}" for index in range(len(columns))])

    def _keys(self, batch: pa.RecordBatch, fields: Sequence[Field]) -> list[pa.Array]:
        if not self.exact:
            return list(to_spark_arrow(batch, fields).columns)
        rows = encode_rows([batch.column(field.name) for field in fields], [field.type for field in fields])
        return [pc.binary_slice(rows, PREFIX, _GREATEST)]


def _place_columns(split: Split, schema: TableSchema, *, blurred: bool) -> list[pa.Scalar]:
    """The partition of a split and its bucket, as Spark takes them."""
    values = decode_rows(pa.array([split.partition], pa.binary()), schema.partition_types)
    one = pa.RecordBatch.from_arrays(values, names=list(schema.partition_keys))
    found = [column[0] for column in to_spark_arrow(one, schema.partition_fields).columns]
    if blurred:
        found.append(pa.scalar(split.partition, pa.binary()))
    return [*found, pa.scalar(split.bucket, pa.int32())]
