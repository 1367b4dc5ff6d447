"""HASH_DYNAMIC on Spark: route rows to the writer of the bucket that their key has, or may be assigned.

    key hash ─┬─ found in the hash indexes of the snapshot ─► the group of its bucket ─┐
              └─ new ─► the group of its hash ─────────────────────────────────────────┴─► channel ─► writer: assigns and writes

Where all keys are in the group of their hash (`alignment`), the hash alone determines the channel, and the writer looks keys up
in the indexes of its own buckets. This is so in a new table and stays so while Spark writes it. Elsewhere, as after
local writes, keys are looked up before the shuffle.

Only keys of the snapshot are looked up before the shuffle: a retried stage sends every row to the same writer.
New keys get their buckets in the task that writes them, which owns all buckets that they may get (`bucket_groups`). So no key
ever has two, whatever is retried, and rows pass Python once. Looking up takes their hashes alone to Python, where the
indexes of the partitions at hand are kept in memory; indexes too large for that are joined by Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import arrow_udf

from lakelet.commit.metadata.manifests import snapshot_manifests
from lakelet.format.manifest.manifest_columns import EMPTY_ROW
from lakelet.format.rows.binary_row import PREFIX
from lakelet.model.bucket_mode import Place
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.sink.bucket.assigned_rows import NEW, AssignedRows
from lakelet.sink.bucket.dynamic_buckets import DynamicBucketAssigner
from lakelet.sink.bucket.hash_indexes import HashIndexes
from lakelet.sink.bucket.known_buckets import KnownBuckets
from lakelet.sink.bucket.placers import RowPlacer
from lakelet.spark.column_names import column_named
from lakelet.spark.failures import readable
from lakelet.spark.read.merge_scan import task_frame
from lakelet.spark.route.alignment import fitting_groups, spread
from lakelet.spark.route.bucket_groups import BucketGroups, Routed, free_name
from lakelet.spark.route.hash_expression import binary_row, key_hash, partition_hash
from lakelet.spark.session import default_parallelism
from lakelet.storage.home import TableHome
from lakelet.table.write.writer import StoredKeys, row_counts

# Six bytes a key in every Python worker.
MOST_KEYS_IN_MEMORY = 1 << 24
_HASHES_PER_TASK = 1 << 22
_INDEX_LAYOUT = T.StructType(
    [
        T.StructField("partition", T.BinaryType()),
        T.StructField("hash", T.IntegerType()),
        T.StructField("bucket", T.IntegerType()),
    ]
)
_BUCKET, _HASH = "__lakelet_bucket", "__lakelet_hash"


@dataclass(frozen=True, slots=True)
class AssigningTable:
    """The table as of the snapshot that buckets are looked up in. `live` says about how many rows its buckets hold. A `fresh` one
    counts as empty, for its partitions are replaced."""

    home: TableHome
    schema: TableSchema
    snapshot: Snapshot | None
    live: Mapping[Place, int]
    fresh: bool

    @staticmethod
    def of(home: TableHome, schema: TableSchema, snapshot: Snapshot | None, *, fresh: bool) -> AssigningTable:
        """The table at the snapshot that a write starts from."""
        known = snapshot is not None and not fresh
        live = row_counts(home, snapshot_manifests(home, snapshot)) if snapshot is not None and known else {}
        return AssigningTable(home, schema, snapshot, live, fresh)

    def indexes(self) -> HashIndexes:
        """The hash indexes of the snapshot; those that are missing are made from the rows."""
        snapshot = None if self.fresh else self.snapshot
        return HashIndexes(self.home, snapshot, live=self.live, keys_of=self.stored_keys)

    def counts(self) -> dict[Place, int]:
        """About how many keys each bucket has."""
        return {**self.live, **self.indexes().counts()}

    def stored_keys(self, partition: bytes, bucket: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        """The hashes of the keys of a bucket."""
        return StoredKeys(self.home, self.schema, self.snapshot, None).hashes(partition, bucket)


def assigned(frame: DataFrame, table: AssigningTable, parallelism: int | None) -> Routed:
    """The rows of a frame, in the table's columns, shuffled to their writers."""
    schema = table.schema
    counts = table.counts()
    groups = BucketGroups.of(frame, schema, counts, parallelism)
    aligned = _aligned(frame.sparkSession, table, counts, groups)
    if aligned is not None:
        channel = aligned.channel(schema, F.lit(NEW), partition_hash(schema), key_hash(schema))
        return Routed(frame.repartitionById(aligned.channels, channel), _AlignedWriter(table, aligned.groups))
    carried, hashed = free_name(_BUCKET, frame), free_name(_HASH, frame)
    rows = frame.withColumn(hashed, key_hash(schema))
    if sum(counts.values()) <= MOST_KEYS_IN_MEMORY:
        looked_up = rows.withColumn(carried, _known_bucket(table)(F.col(hashed), *_partition(schema)))
    else:
        looked_up = _joined(rows, table, hashed, carried)
    channel = groups.channel(schema, F.col(carried), partition_hash(schema), F.col(hashed))
    routed = looked_up.repartitionById(groups.channels, channel).drop(hashed)
    return Routed(routed, _GrowingWriter(table, groups.groups, counts, carried), carried)


def _aligned(
    spark: SparkSession, table: AssigningTable, counts: Mapping[Place, int], groups: BucketGroups
) -> BucketGroups | None:
    """Groups by which every key is in a bucket of its hash's group, if there are such that keep all cores busy."""
    if not counts:
        return groups
    if not table.live.keys() <= table.indexes().counts().keys():
        return None
    least = min(groups.groups, default_parallelism(spark))
    with readable(f"reading the hash indexes of {table.home.where(table.home.paths.root)}"):
        found = fitting_groups(spark, table.indexes, counts, groups.alternatives(table.schema, least))
    return None if found is None else replace(groups, groups=found).without_idle(table.schema)


@dataclass(frozen=True, slots=True)
class _AlignedWriter:
    """Makes the placer of a writer that finds all of its keys in the hash indexes of its own buckets."""

    table: AssigningTable
    groups: int

    def __call__(self) -> RowPlacer:
        table = self.table
        return DynamicBucketAssigner(
            table.home, table.schema, table.snapshot, assigners=self.groups, fresh=table.fresh, aligned=True
        )


@dataclass(frozen=True, slots=True)
class _GrowingWriter:
    """Makes the placer of a writer whose rows carry the buckets of known keys."""

    table: AssigningTable
    groups: int
    counts: Mapping[Place, int]
    carried: str

    def __call__(self) -> RowPlacer:
        table = self.table
        new_keys = DynamicBucketAssigner(
            table.home,
            table.schema,
            table.snapshot,
            live=table.live,
            keys_of=table.stored_keys,
            assigners=self.groups,
            counts=self.counts,
        )
        return AssignedRows(table.schema, self.carried, new_keys)


def _partition(schema: TableSchema) -> list[Column]:
    """The partition of each row as the body of its BinaryRow; nothing where there is but one."""
    fields = schema.partition_fields
    return [binary_row([(column_named(field.name), field.type) for field in fields])] if fields else []


# The hash indexes that the last job in this worker loaded, reused by its next task.
_LOOKED_UP: dict[tuple[str, int, str], KnownBuckets] = {}


def _known_bucket(table: AssigningTable) -> Callable[..., Column]:
    def bucket(hashes: pa.Array, *partitions: pa.Array) -> pa.Array:
        known = _known(table)
        numbers = hashes.to_numpy()
        if not partitions:
            return pa.array(known.find(EMPTY_ROW, numbers))
        encoded = partitions[0].dictionary_encode()
        codes = encoded.indices.to_numpy()
        prefix = len(table.schema.partition_keys).to_bytes(PREFIX, "big")
        found = np.empty(len(numbers), np.int32)
        bodies = encoded.dictionary.to_pylist()
        order = np.argsort(codes, kind="stable")
        edges = np.searchsorted(codes[order], np.arange(len(bodies) + 1))
        for code, body in enumerate(bodies):
            own = order[edges[code] : edges[code + 1]]
            found[own] = known.find(prefix + body, numbers[own])
        return pa.array(found)

    # Spark infers the kind of a UDF from its annotations, which are strings in this module.
    bucket.__annotations__ = {"hashes": pa.Array, "partitions": pa.Array, "return": pa.Array}
    made: Any = arrow_udf
    udf: Callable[..., Column] = made(bucket, "int")
    return udf


def _known(table: AssigningTable) -> KnownBuckets:
    snapshot = table.snapshot
    version = (table.home.where(table.home.paths.branch_root), 0, "")
    if snapshot is not None:
        version = (version[0], snapshot.id, snapshot.delta_manifest_list)
    if version not in _LOOKED_UP:
        _LOOKED_UP.clear()
        _LOOKED_UP[version] = KnownBuckets(table.indexes())
    return _LOOKED_UP[version]


def _joined(rows: DataFrame, table: AssigningTable, hashed: str, carried: str) -> DataFrame:
    """The rows with their buckets, looked up by a join."""
    schema = table.schema
    index = index_frame(rows.sparkSession, table)
    body = free_name("__lakelet_partition", rows)
    keyed = rows.withColumn(body, *_partition(schema)) if schema.partition_keys else rows.withColumn(body, F.lit(b""))
    same = (F.col(body) == index["partition"]) & (F.col(hashed) == index["hash"])
    found = keyed.join(index, same, "left").withColumn(carried, F.coalesce(index["bucket"], F.lit(NEW)))
    return found.drop(index["partition"], index["hash"], index["bucket"]).drop(body)


def index_frame(spark: SparkSession, table: AssigningTable) -> DataFrame:
    """The hash indexes of the snapshot as rows; the lowest bucket wins, should a hash be in two."""
    places = tuple(spread(table.counts(), _HASHES_PER_TASK))
    found = task_frame(spark, _IndexTask(table, places), len(places), _INDEX_LAYOUT)
    return found.groupBy("partition", "hash").agg(F.min("bucket").alias("bucket"))


@dataclass(frozen=True, slots=True)
class _IndexTask:
    """Reads the hashes of some buckets."""

    table: AssigningTable
    parts: tuple[tuple[Place, ...], ...]

    def __call__(self, number: int) -> Iterator[pa.RecordBatch]:
        indexes = self.table.indexes()
        for partition, bucket in self.parts[number]:
            hashes = indexes.load_bucket(partition, bucket)
            body = partition[PREFIX:] if self.table.schema.partition_keys else b""
            columns = [
                pa.repeat(pa.scalar(body, pa.binary()), len(hashes)),
                pa.array(hashes, pa.int32()),
                pa.repeat(pa.scalar(bucket, pa.int32()), len(hashes)),
            ]
            yield pa.RecordBatch.from_arrays(columns, ["partition", "hash", "bucket"])
