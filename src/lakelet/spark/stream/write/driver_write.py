"""Write the collected rows of a small batch on the driver: the columns, checks and types that tasks have, in one local commit."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from lakelet.format.rows.binary_row_columns import encode_rows
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.sink.rows.cast import RowCaster
from lakelet.sink.rows.missing_columns import missing_policy
from lakelet.spark.opened_table import OpenedTable
from lakelet.spark.types import check_text, from_spark_arrow
from lakelet.spark.write.matched_columns import Places, matched_places
from lakelet.spark.write.table_write import one_row_per_key
from lakelet.spark.write.write_request import WriteRequest
from lakelet.spark.write.write_task import NullRows, RepeatedRows
from lakelet.table.write.committed_write import CommittedWrite
from lakelet.table.write.table_commit import TableCommit


def places_of(spark: SparkSession, found: T.StructType, schema: TableSchema, request: WriteRequest) -> Places:
    """Which columns of a frame are the table's; InvalidError names everything that does not fit."""
    policy = missing_policy(request.missing, schema, replaces=request.mode == "overwrite_partitions")
    return matched_places(spark, found, schema, fixed={}, kinds=request.kinds, missing=policy)


def write_rows(
    rows: pa.Table,
    places: Places,
    opened: OpenedTable,
    schema: TableSchema,
    request: WriteRequest,
    commit: TableCommit,
) -> Snapshot | None:
    """Writes all rows of a batch, as Spark sent them, and commits once."""
    chosen = pa.table([rows.column(place) for place in places.index_of.values()], names=list(places.index_of))
    nulls = NullRows(schema)
    batches = []
    for batch in chosen.to_batches():
        taken = from_spark_arrow(batch, schema.fields)
        check_text(taken)
        nulls.found_in(taken)
        batches.append(taken)
    nulls.check()
    alone = one_row_per_key(schema, request)
    if alone and bucket_mode(schema) is BucketMode.POSTPONE_MODE:
        _check_repeated(batches, schema, places.kinds)
    write = CommittedWrite(opened.home, schema, commit, {}, request.missing, looks=request.looks, one_row_per_key=alone)
    return write.run(batches, places.kinds)


def _check_repeated(batches: list[pa.RecordBatch], schema: TableSchema, kinds: str | None) -> None:
    """InvalidError for rows of one key, where the writer does not merge them."""
    if not batches:
        return
    whole = pa.Table.from_batches(batches).combine_chunks()
    batch = whole.to_batches()[0] if whole.num_rows else pa.RecordBatch.from_pylist([], whole.schema)
    fields = [schema.field(name) for name in schema.primary_keys]
    keys = RowCaster(fields).cast(batch.select([field.name for field in fields]))
    order = pc.sort_indices(encode_rows(keys.columns, [field.type for field in fields]))
    repeats = RepeatedRows(schema)
    repeats.look_at(batch.take(order), kinds)
    repeats.check()
