"""`ls.write_iceberg_batch`, `ls.write_iceberg_stream`: batches of a stream into an Iceberg table, each exactly once.

look back by (user, batch) ─┬─ committed earlier: its snapshot, and no job runs
                            └─ columns matched ─┬─ small: collected and written by the driver
                                                └─ large: the tasks of `insert_iceberg`
                                                  ─ one request: snapshot, branch, and the property that knows the batch
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T
from pyspark.sql.streaming.query import StreamingQuery

from lakelet.errors import ConflictError, InvalidError
from lakelet.iceberg.commit.stream_batch import StreamBatch
from lakelet.iceberg.schema.column_types import model_schema
from lakelet.iceberg.table import IcebergTable
from lakelet.iceberg.transaction import IcebergTransaction, MadeSnapshot
from lakelet.ids import RandomIds
from lakelet.spark.iceberg.catalogs import CatalogLike, open_catalog
from lakelet.spark.iceberg.insert import IcebergInsert, check_columns, write_options
from lakelet.spark.iceberg.insert_task import InsertTask
from lakelet.spark.iceberg.types import spark_columns
from lakelet.spark.session import is_connect
from lakelet.spark.stream.write.batch_identity import BatchIdentity, LastBatch, query_id_of
from lakelet.spark.stream.write.checkpoint_mark import (
    CheckpointMark,
    checkpoint_store,
    logged_offsets,
    marked,
    scheme_of_running,
)
from lakelet.spark.stream.write.query_start import (
    batch_user,
    check_user,
    checkpoint_folder,
    default_scheme,
    started,
)
from lakelet.spark.stream.write.sink_request import DRIVER_ROWS
from lakelet.spark.workers import prepare_workers
from lakelet.spark.write.driver_rows import DriverRows, has_void
from lakelet.spark.write.matched_columns import matched_places
from lakelet.spark.write.write_request import DRIVER_BYTES
from lakelet.storage.store import ObjectStore

_MODES = ("append", "overwrite_partitions")


def write_iceberg_batch(
    df: DataFrame,
    batch_id: int,
    catalog: CatalogLike,
    table: str,
    *,
    commit_user: str | None = None,
    mode: str = "append",
    branch: str | None = None,
    options: Mapping[str, str] | None = None,
    warehouse: str | os.PathLike[str] | None = None,
    driver_rows: int = DRIVER_ROWS,
    driver_bytes: int = DRIVER_BYTES,
    parallelism: int | None = None,
    resume: bool = False,
) -> MadeSnapshot | None:
    """Writes a batch into an Iceberg table as one snapshot, for use in one's own foreachBatch; None where there were no rows.

    The identity of a batch is `commit_user`, by default the id of Spark's query, and `batch_id`: it is kept in the snapshot's
    summary and in a table property that the same request sets. A batch whose number is not above the user's last one is not
    written again. `mode` is "append" or "overwrite_partitions"; the other arguments are those of `insert_iceberg` and
    `write_batch`.
    """
    if df.isStreaming:
        raise InvalidError(
            "df is a stream: write_iceberg_batch takes the frame of one batch, write_iceberg_stream the stream"
        )
    sink = _IcebergSink(
        catalog, table, mode, branch, dict(options or {}), warehouse, DriverRows(driver_rows, driver_bytes), parallelism
    )
    query_id = query_id_of(df)
    user = query_id if commit_user is None else commit_user
    if not user:
        raise InvalidError(
            "commit_user: there is no streaming query whose id could be the user; give a name by which a repeated batch is known"
        )
    # Outside of a query the numbers are the caller's own, and a repeated one is meant to be.
    is_marked = user == query_id or query_id is None
    return sink.write(df, BatchIdentity(user, batch_id, query_id, marked=is_marked, resume=resume))


def write_iceberg_stream(
    df: DataFrame,
    catalog: CatalogLike,
    table: str,
    *,
    checkpoint: str | os.PathLike[str],
    mode: str = "append",
    trigger: Mapping[str, Any] | None = None,
    commit_user: str | None = None,
    query_name: str | None = None,
    branch: str | None = None,
    options: Mapping[str, str] | None = None,
    warehouse: str | os.PathLike[str] | None = None,
    driver_rows: int = DRIVER_ROWS,
    driver_bytes: int = DRIVER_BYTES,
    parallelism: int | None = None,
    resume: bool = False,
) -> StreamingQuery:
    """Starts a query that writes a stream into an Iceberg table, each batch as one snapshot and exactly once.

    `checkpoint`, `trigger`, `commit_user`, `query_name` and `resume` are those of `write_stream`, the others those of
    `write_iceberg_batch`.
    """
    if not df.isStreaming:
        raise InvalidError("df is no stream: use insert_iceberg, or write_iceberg_batch for a batch with an identity")
    spark = df.sparkSession
    check_user(spark, commit_user)
    sink = _IcebergSink(
        catalog, table, mode, branch, dict(options or {}), warehouse, DriverRows(driver_rows, driver_bytes), parallelism
    )
    folder = checkpoint_folder(spark, checkpoint)
    body = _IcebergStream(sink, folder, commit_user, default_scheme(spark), resume)
    if not is_connect(spark):
        body.check(df)
    return started(df, body, folder, trigger, query_name)


@dataclass(slots=True)
class _IcebergSink:
    """Writes batches into one table."""

    catalog: CatalogLike
    name: str
    mode: str
    branch: str | None
    options: dict[str, str] = field(repr=False)
    warehouse: str | os.PathLike[str] | None
    driver: DriverRows
    parallelism: int | None

    def __post_init__(self) -> None:
        if self.mode not in _MODES:
            raise InvalidError(f"mode {self.mode!r}: expected one of {', '.join(_MODES)}")
        write_options(self.options)

    def open(self) -> IcebergTable:
        """The table as it is now."""
        return open_catalog(self.catalog, self.warehouse, self.options).table(self.name)

    def write(self, df: DataFrame, identity: BatchIdentity, table: IcebergTable | None = None) -> MadeSnapshot | None:
        """Writes a batch, unless the table has it."""
        table = table or self.open()
        batch = StreamBatch(identity.user, identity.batch_id, identity.query_id, identity.offsets)
        transaction = IcebergTransaction(table, branch=self.branch, batch=batch)
        applied = transaction.applied()
        if applied is not None:
            known = batch.known(table.metadata, self.branch or "main")
            if known is not None:
                offsets = known.offsets if known.batch_id == identity.batch_id else None
                identity.check_last(f"table {table.full_name}", LastBatch(known.batch_id, known.query_id, offsets))
            return applied
        schema = model_schema(table)
        columns = spark_columns(schema)
        places = matched_places(df.sparkSession, df.schema, columns, fixed={}, kinds=None)
        collected = None
        if not has_void(df.schema):
            collected = self.driver.collect(df, f"collecting rows for {self.name}")
        if collected is None:
            prepare_workers(df.sparkSession)
            insert = IcebergInsert(table, self.mode, None, self.branch, None, write_options(self.options))
            return self._checked(insert.run(df, self.parallelism, transaction), table, transaction, batch)
        plan = transaction.begin_insert(self.mode, None, write_options(self.options))
        chosen = list(places.index_of.values())
        given = T.StructType(
            [T.StructField(name, df.schema.fields[place].dataType) for name, place in places.index_of.items()]
        )
        check_columns(plan, schema, given)
        rows = pa.table([collected.column(place) for place in chosen], names=list(places.index_of))
        try:
            transaction.update_commit_data(InsertTask(plan, schema).written(rows.to_batches()).files)
        except BaseException:
            transaction.rollback()
            raise
        return self._checked(transaction.finish_insert(), table, transaction, batch)

    def _checked(
        self, made: MadeSnapshot | None, table: IcebergTable, transaction: IcebergTransaction, batch: StreamBatch
    ) -> MadeSnapshot | None:
        """What a batch made; ConflictError where another query committed one under its identity since the look back, so that
        the rows of this one are in no snapshot."""
        if made is None or transaction.is_own:
            return made
        known = batch.known(table.reloaded().metadata, self.branch or "main")
        ours = (batch.batch_id, batch.query_id, batch.offsets)
        if known is not None and (known.batch_id, known.query_id, known.offsets) != ours:
            raise ConflictError(
                f"table {table.full_name}: batch {batch.batch_id} of {batch.user!r} was committed by another run meanwhile: two "
                "queries with one identity: give each a commit_user and a checkpoint of its own"
            )
        return made


@dataclass(slots=True)
class _IcebergStream:
    """The function of a query's batches; one for each run of the query."""

    sink: _IcebergSink
    folder: str
    commit_user: str | None
    default_scheme: str
    resume: bool
    store: ObjectStore | None = None
    mark: CheckpointMark | None = None
    is_checked: bool = False
    first: int | None = None

    def check(self, df: DataFrame) -> None:
        """Opens the table and marks the checkpoint folder; InvalidError for columns or a checkpoint that do not fit."""
        table = self.sink.open()
        matched_places(df.sparkSession, df.schema, spark_columns(model_schema(table)), fixed={}, kinds=None)
        scheme = self.default_scheme or scheme_of_running(self.folder)
        self.store = checkpoint_store(self.folder, scheme, self.sink.options)
        if self.store is not None:
            tables = {table.full_name: self._identity(table)}
            self.mark = marked(self.store, tables, RandomIds(), resume=self.resume, folder=self.folder, are_all=True)
        self.is_checked = True

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        if not self.is_checked:
            self.check(df)
        if self.first is None:
            self.first = batch_id
        table = self.sink.open()
        if self.mark is not None:
            self.mark.check(table.full_name, self._identity(table), self.folder)
        query_id = query_id_of(df)
        identity = BatchIdentity(
            batch_user(self.commit_user, self.mark, query_id),
            batch_id,
            query_id,
            first=self.first,
            marked=self.mark is not None or self.commit_user is None,
            resume=self.resume,
            offsets=logged_offsets(self.store, batch_id),
        )
        self.sink.write(df, identity, table)

    def _identity(self, table: IcebergTable) -> dict[str, str]:
        return {"table": str(table.metadata.table_uuid), "branch": self.sink.branch or "main"}
