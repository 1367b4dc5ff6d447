"""`ls.write_stream`: start a query whose batches go into tables, each exactly once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from lakelet.errors import InvalidError
from lakelet.ids import RandomIds
from lakelet.spark.session import is_connect
from lakelet.spark.stream.write.batch import check_distinct, write_tables
from lakelet.spark.stream.write.batch_identity import BatchIdentity, query_id_of
from lakelet.spark.stream.write.checkpoint_mark import (
    CheckpointMark,
    checkpoint_store,
    identity_of,
    logged_offsets,
    marked,
    scheme_of_running,
)
from lakelet.spark.stream.write.event_time import WatermarkRule
from lakelet.spark.stream.write.query_start import batch_user, check_user, checkpoint_folder, default_scheme, started
from lakelet.spark.stream.write.sink_request import (
    COMPACT_EVERY,
    DRIVER_ROWS,
    RowsOf,
    SinkRequest,
    Tables,
    table_functions,
)
from lakelet.spark.stream.write.table_sink import TableSink
from lakelet.spark.write.write_request import DRIVER_BYTES
from lakelet.storage.store import ObjectStore


def write_stream(
    df: DataFrame,
    warehouse: str | os.PathLike[str],
    table: Tables,
    *,
    checkpoint: str | os.PathLike[str],
    mode: str = "upsert",
    kinds: str | None = None,
    trigger: Mapping[str, Any] | None = None,
    commit_user: str | None = None,
    query_name: str | None = None,
    on_duplicate: str = "raise",
    missing: str | None = None,
    merge_schema: bool = False,
    watermark: object = None,
    compaction: str = "inline",
    compact_every: int = COMPACT_EVERY,
    driver_rows: int = DRIVER_ROWS,
    driver_bytes: int = DRIVER_BYTES,
    parallelism: int | None = None,
    resume: bool = False,
    options: Mapping[str, str] | None = None,
    branch: str | None = None,
) -> StreamingQuery:
    """Starts a query that writes a stream into a table, or into several (a mapping of names to functions of the batch), exactly
    once: a batch that Spark repeats after a failure is recognised.

    `checkpoint` is the folder of Spark's checkpoint. `trigger` are the arguments of `DataStreamWriter.trigger`, by default
    {"availableNow": True}: what is there now, then the query ends. Commits are those of `commit_user`, joined with a random id
    that is kept in the checkpoint folder; by default of the query's id, which over Spark Connect is not known. The other
    arguments are those of `write_batch`. Without `watermark` snapshots carry that of the stream (`withWatermark`), where it has
    one. A checkpoint that is of another table, older than the table or another query's is refused, unless `resume` says to go
    on with it.
    """
    if not df.isStreaming:
        raise InvalidError("df is no stream: use write, or write_batch for a batch with an identity")
    request = SinkRequest(
        mode=mode,
        kinds=kinds,
        on_duplicate=on_duplicate,
        missing=missing,
        merge_schema=merge_schema,
        watermark=WatermarkRule.of(watermark),
        compaction=compaction,
        compact_every=compact_every,
        driver_rows=driver_rows,
        driver_bytes=driver_bytes,
        parallelism=parallelism,
        resume=resume,
    )
    functions = table_functions(table)
    spark = df.sparkSession
    folder = checkpoint_folder(spark, checkpoint)
    check_user(spark, commit_user)
    asked = spark if request.watermark is None and _has_watermark(df) else None
    sinks = [TableSink(warehouse, name, request, options, branch, asked) for name in functions]
    sink = _StreamSink(sinks, functions, folder, commit_user, default_scheme(spark), dict(options or {}))
    if not is_connect(spark):
        # Elsewhere the folder may be another machine's, on which the batches run.
        sink.check(df)
    return started(df, sink, folder, trigger, query_name)


@dataclass(slots=True)
class _StreamSink:
    """The function of a query's batches; one for each run of the query."""

    sinks: list[TableSink]
    functions: Mapping[str, RowsOf | None]
    folder: str
    commit_user: str | None
    default_scheme: str
    options: dict[str, str]
    store: ObjectStore | None = None
    mark: CheckpointMark | None = None
    is_checked: bool = False
    first: int | None = field(default=None)

    @property
    def resume(self) -> bool:
        return self.sinks[0].request.resume

    def check(self, df: DataFrame) -> None:
        """Opens the tables and marks the checkpoint folder; InvalidError for a table or a checkpoint that does not fit."""
        opened = {sink.name: sink.open() for sink in self.sinks}
        for sink in self.sinks:
            sink.check(opened[sink.name], df if self.functions[sink.name] is None else None)
        check_distinct(list(opened.values()))
        scheme = self.default_scheme or scheme_of_running(self.folder)
        self.store = checkpoint_store(self.folder, scheme, self.options)
        if self.store is not None:
            tables = {name: identity_of(one) for name, one in opened.items()}
            self.mark = marked(self.store, tables, RandomIds(), resume=self.resume, folder=self.folder, are_all=True)
        self.is_checked = True

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        if not self.is_checked:
            self.check(df)
        if self.first is None:
            self.first = batch_id
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
        planned = []
        for sink in self.sinks:
            opened = sink.open()
            if self.mark is not None:
                # The table may have been dropped and created again since the query started.
                self.mark.check(opened.name, identity_of(opened), self.folder)
            planned.append(sink.look_back(opened, identity))
        write_tables(df, self.sinks, self.functions, identity, planned)


def _has_watermark(df: DataFrame) -> bool:
    if is_connect(df.sparkSession):
        return False
    return "EventTimeWatermark" in str(df._jdf.queryExecution().analyzed().toString())
