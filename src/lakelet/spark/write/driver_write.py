"""Write the collected rows of a small frame on the driver: the columns, checks and types that tasks have, in one local commit."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from lakelet.compact.compaction import Elsewhere
from lakelet.format.rows.binary_row_columns import encode_rows
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.sink.rows.cast import RowCaster
from lakelet.sink.rows.missing_columns import missing_policy
from lakelet.spark.opened_table import OpenedTable
from lakelet.spark.types import check_text, from_spark_arrow
from lakelet.spark.write.key_order import one_row_per_key
from lakelet.spark.write.matched_columns import Places, matched_places
from lakelet.spark.write.write_request import WriteRequest
from lakelet.spark.write.write_task import NullRows, RepeatedRows
from lakelet.table.write.committed_write import CommittedWrite
from lakelet.table.write.table_commit import TableCommit, partition_spec


def places_of(spark: SparkSession, found: T.StructType, schema: TableSchema, request: WriteRequest) -> Places:
    """Which columns of a frame are the table's; InvalidError names everything that does not fit."""
    policy = missing_policy(request.missing, schema, replaces=request.replaces)
    return matched_places(spark, found, schema, fixed=_fixed(request, schema), kinds=request.kinds, missing=policy)


def write_rows(
    rows: pa.Table,
    places: Places,
    opened: OpenedTable,
    schema: TableSchema,
    request: WriteRequest,
    commit: TableCommit,
    elsewhere: Elsewhere | None = None,
) -> Snapshot | None:
    """Writes all rows of a frame, as Spark sent them, and commits once. Files are compacted `elsewhere`, by default here."""
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
    write = CommittedWrite(
        opened.home,
        schema,
        commit,
        _fixed(request, schema),
        request.missing,
        looks=request.looks,
        one_row_per_key=alone,
        table_uuid=opened.uuid,
        elsewhere=elsewhere,
        extra=opened.extra,
    )
    return write.run(batches, places.kinds)


def _fixed(request: WriteRequest, schema: TableSchema) -> Mapping[str, object]:
    """The columns of the static partition that is replaced."""
    return partition_spec(request.partition or {}, schema)


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
