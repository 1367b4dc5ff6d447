"""`ls.write_batch`: write a batch of a stream into one table or several, once however often it is repeated."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from lakelet.errors import InvalidError
from lakelet.model.snapshot import Snapshot
from lakelet.spark.opened_table import OpenedTable
from lakelet.spark.stream.write.batch_identity import BatchIdentity, query_id_of
from lakelet.spark.stream.write.checkpoint_mark import identity_of
from lakelet.spark.stream.write.event_time import WatermarkRule
from lakelet.spark.stream.write.sink_request import (
    COMPACT_EVERY,
    DRIVER_ROWS,
    RowsOf,
    SinkRequest,
    Tables,
    table_functions,
)
from lakelet.spark.stream.write.table_sink import PlannedBatch, TableSink
from lakelet.spark.write.driver_rows import DriverRows
from lakelet.spark.write.write_request import DRIVER_BYTES

Made = Snapshot | None
_MOST_KNOWN = 256
# What was learned about the size of a table's batches by earlier calls.
_known: dict[tuple[str, str, str | None, int, int], DriverRows] = {}
_knowing = threading.Lock()


def write_batch(
    df: DataFrame,
    batch_id: int,
    warehouse: str | os.PathLike[str],
    table: Tables,
    *,
    commit_user: str | None = None,
    mode: str = "upsert",
    kinds: str | None = None,
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
) -> Made | dict[str, Made]:
    """Writes a batch in one commit, for use in one's own foreachBatch; returns the snapshot, None where there were no rows.

    `commit_user` and `batch_id` are its identity: a batch whose number is not above the user's last one is not written again,
    which no job is needed to find out, and what it made is returned. The user is by default the id of Spark's query, which over
    Spark Connect is not known: name one there, a new one for a new checkpoint. `table` is a name, or a mapping of names to
    functions that make the table's rows from the batch: their commits follow one another, each once, and a dictionary is
    returned.

    `mode` is "upsert" (needs a primary key), "append" (in a primary-key table an upsert) or "overwrite_partitions". `kinds`,
    `on_duplicate`, `missing`, `parallelism`, `options` and `branch` are those of `write`. `merge_schema` adds new columns to
    the table and widens types. `watermark=(column, delay)` is kept in the snapshot. At most `driver_rows` rows within
    `driver_bytes` are written by the driver, more by tasks. Files are compacted every `compact_every` batches: within the batch
    ("inline"), in a thread ("background") or not here ("none").
    """
    if df.isStreaming:
        raise InvalidError("df is a stream: write_batch takes the frame of one batch, write_stream the stream")
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
    query_id = query_id_of(df)
    user = query_id if commit_user is None else commit_user
    if not user:
        raise InvalidError(
            "commit_user: there is no streaming query whose id could be the user; give a name by which a repeated batch is known"
        )
    # Outside of a query the numbers are the caller's own, and a repeated one is meant to be.
    is_marked = user == query_id or query_id is None
    identity = BatchIdentity(user, batch_id, query_id, marked=is_marked, resume=resume)
    sinks = [TableSink(warehouse, name, request, options, branch) for name in functions]
    for sink in sinks:
        sink.driver = _known_rows(sink)
    made = write_tables(df, sinks, functions, identity)
    return made[table] if isinstance(table, str) else made


def write_tables(
    df: DataFrame,
    sinks: Sequence[TableSink],
    functions: Mapping[str, RowsOf | None],
    identity: BatchIdentity,
    planned: Sequence[PlannedBatch] | None = None,
) -> dict[str, Made]:
    """Writes one batch into tables, in order; those that have it already are left alone."""
    if planned is None:
        opened = [sink.open() for sink in sinks]
        check_distinct(opened)
        planned = [sink.look_back(one, identity) for sink, one in zip(sinks, opened, strict=True)]
    made: dict[str, Made] = {sink.name: one.done for sink, one in zip(sinks, planned, strict=True)}
    due = [(sink, one) for sink, one in zip(sinks, planned, strict=True) if one.done is None]
    with _shared(df, several=len(due) > 1) as batch:
        for sink, one in due:
            rows_of = functions[sink.name]
            rows = batch if rows_of is None else rows_of(batch)
            if not hasattr(rows, "sparkSession"):
                raise InvalidError(
                    f"table: the function of {sink.name} is to return a DataFrame, found {type(rows).__name__}"
                )
            made[sink.name] = sink.write(rows, one, identity.query_id)
    return made


def check_distinct(opened: Sequence[OpenedTable]) -> None:
    """InvalidError where two names are of one table: the second write of a batch would be taken for a repeated one."""
    names: dict[tuple[str, str], str] = {}
    for one in opened:
        identity = identity_of(one)
        other = names.setdefault((identity["table"], identity["branch"]), one.name)
        if other != one.name:
            raise InvalidError(f"table: {other!r} and {one.name!r} are one table, which takes the rows of a batch once")


@contextmanager
def _shared(df: DataFrame, *, several: bool) -> Iterator[DataFrame]:
    """The batch, kept for the time of a block where several tables are made of it."""
    if not several or df.storageLevel != StorageLevel.NONE:
        # The caller's own is the caller's to release.
        yield df
        return
    kept = df.persist()
    try:
        yield kept
    finally:
        kept.unpersist()


def _known_rows(sink: TableSink) -> DriverRows:
    request = sink.request
    key = (os.fspath(sink.warehouse), sink.name, sink.branch, request.driver_rows, request.driver_bytes)
    with _knowing:
        while len(_known) >= _MOST_KNOWN:
            _known.pop(next(iter(_known)))
        return _known.setdefault(key, sink.driver)
