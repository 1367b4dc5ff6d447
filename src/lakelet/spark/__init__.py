"""Lakelet's Spark integration, in PySpark alone: no JVM code of Lakelet's own.

import lakelet.spark as ls
ls.write(df, "./warehouse", "shop.orders", mode="upsert")
ls.table(spark, "./warehouse", "shop.orders", where="dt = '2026-01-01'")
ls.insert_iceberg(df, "iceberg", "shop.orders", warehouse="./warehouse")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import lakelet.spark.extra  # First, for it says what is missing.

# Two functions are named like packages: these are bound before, so that importing a module of them never hides the function.
import lakelet.spark.sql
import lakelet.spark.write  # noqa: F401
from lakelet.insert_engines import ENGINES

if TYPE_CHECKING:
    from lakelet.spark.cdc.replay import replay_cdc
    from lakelet.spark.cdc.sync import sync_cdc
    from lakelet.spark.iceberg.insert import insert_iceberg
    from lakelet.spark.iceberg.stream_frame import read_iceberg_stream
    from lakelet.spark.iceberg.table_frame import iceberg_table
    from lakelet.spark.jobs.bulk_load import bulk_load
    from lakelet.spark.jobs.checksum import checksum
    from lakelet.spark.jobs.compact import compact, rescale
    from lakelet.spark.jobs.copy_table import copy_table
    from lakelet.spark.jobs.count import count
    from lakelet.spark.jobs.migrate import migrate
    from lakelet.spark.jobs.orphans import remove_orphan_files
    from lakelet.spark.pipeline.backfill import backfill_pipeline
    from lakelet.spark.pipeline.run import dry_run_pipeline, run_pipeline
    from lakelet.spark.read.table_frame import table
    from lakelet.spark.session import local_session
    from lakelet.spark.source.registration import register
    from lakelet.spark.sql.statement import sql
    from lakelet.spark.sql.views import views
    from lakelet.spark.stream.read.stream_frame import read_stream
    from lakelet.spark.stream.read.stream_lag import StreamLag, stream_lag
    from lakelet.spark.stream.write.background_compaction import compaction_failures, wait_for_compactions
    from lakelet.spark.stream.write.batch import write_batch
    from lakelet.spark.stream.write.iceberg_sink import write_iceberg_batch, write_iceberg_stream
    from lakelet.spark.stream.write.query import write_stream
    from lakelet.spark.write.table_write import write

__all__ = [
    "StreamLag",
    "backfill_pipeline",
    "bulk_load",
    "checksum",
    "compact",
    "compaction_failures",
    "copy_table",
    "count",
    "dry_run_pipeline",
    "iceberg_table",
    "insert_iceberg",
    "local_session",
    "migrate",
    "read_iceberg_stream",
    "read_stream",
    "register",
    "remove_orphan_files",
    "replay_cdc",
    "rescale",
    "run_pipeline",
    "sql",
    "stream_lag",
    "sync_cdc",
    "table",
    "views",
    "wait_for_compactions",
    "write",
    "write_batch",
    "write_iceberg_batch",
    "write_iceberg_stream",
    "write_stream",
]

# Each is imported at its first use: Spark starts Python processes for every data source and task, and none of them needs all.
_HOMES = {
    "StreamLag": "stream.read.stream_lag",
    "backfill_pipeline": "pipeline.backfill",
    "bulk_load": "jobs.bulk_load",
    "checksum": "jobs.checksum",
    "compact": "jobs.compact",
    "compaction_failures": "stream.write.background_compaction",
    "copy_table": "jobs.copy_table",
    "count": "jobs.count",
    "dry_run_pipeline": "pipeline.run",
    "iceberg_table": "iceberg.table_frame",
    "insert_iceberg": "iceberg.insert",
    "local_session": "session",
    "migrate": "jobs.migrate",
    "read_iceberg_stream": "iceberg.stream_frame",
    "read_stream": "stream.read.stream_frame",
    "register": "source.registration",
    "remove_orphan_files": "jobs.orphans",
    "replay_cdc": "cdc.replay",
    "rescale": "jobs.compact",
    "run_pipeline": "pipeline.run",
    "stream_lag": "stream.read.stream_lag",
    "sql": "sql.statement",
    "sync_cdc": "cdc.sync",
    "table": "read.table_frame",
    "views": "sql.views",
    "wait_for_compactions": "stream.write.background_compaction",
    "write": "write.table_write",
    "write_batch": "stream.write.batch",
    "write_iceberg_batch": "stream.write.iceberg_sink",
    "write_iceberg_stream": "stream.write.iceberg_sink",
    "write_stream": "stream.write.query",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"lakelet.spark.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def _insert_rows_of_query(insert: Any) -> tuple[int | None, int]:
    found: tuple[int | None, int] = import_module("lakelet.spark.iceberg.engine").insert_rows_of_query(insert)
    return found


# What `SET execution.engine = 'spark'` in lake.sql() runs inserts on.
ENGINES["spark"] = _insert_rows_of_query
if not TYPE_CHECKING:
    del sql, write  # The packages, bound by importing them.
