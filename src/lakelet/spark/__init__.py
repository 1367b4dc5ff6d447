"""Lakelet's Spark integration, in PySpark alone: no JVM code of Lakelet's own.

import lakelet.spark as ls
ls.write(df, "./warehouse", "shop.orders", mode="upsert")
ls.table(spark, "./warehouse", "shop.orders", where="dt = '2026-01-01'")
ls.insert_iceberg(df, "iceberg", "shop.orders", warehouse="./warehouse")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import lakelet.spark.extra  # noqa: F401 - first, for it says what is missing.
from lakelet.spark.cdc.sync import sync_cdc
from lakelet.spark.jobs.bulk_load import bulk_load
from lakelet.spark.jobs.checksum import checksum
from lakelet.spark.jobs.compact import compact, rescale
from lakelet.spark.jobs.copy_table import copy_table
from lakelet.spark.jobs.count import count
from lakelet.spark.jobs.migrate import migrate
from lakelet.spark.jobs.orphans import remove_orphan_files
from lakelet.spark.pipeline.run import dry_run_pipeline, run_pipeline
from lakelet.spark.read.table_frame import table
from lakelet.spark.session import local_session
from lakelet.spark.source.registration import register
from lakelet.spark.sql.statement import sql
from lakelet.spark.sql.views import views
from lakelet.spark.stream.read.stream_frame import read_stream
from lakelet.spark.stream.write.background_compaction import compaction_failures, wait_for_compactions
from lakelet.spark.stream.write.batch import write_batch
from lakelet.spark.stream.write.query import write_stream
from lakelet.spark.write.table_write import write
from lakelet.sql.engine.execution import EngineInsert, register_engine

if TYPE_CHECKING:
    from lakelet.spark.iceberg.insert import insert_iceberg
    from lakelet.spark.iceberg.table_frame import iceberg_table

__all__ = [
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
    "read_stream",
    "register",
    "remove_orphan_files",
    "rescale",
    "run_pipeline",
    "sql",
    "sync_cdc",
    "table",
    "views",
    "wait_for_compactions",
    "write",
    "write_batch",
    "write_stream",
]

# pyiceberg loads with them, and need not be there.
_ICEBERG = {"iceberg_table": "lakelet.spark.iceberg.table_frame", "insert_iceberg": "lakelet.spark.iceberg.insert"}


def __getattr__(name: str) -> Any:
    if name not in _ICEBERG:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ICEBERG[name]), name)


def _insert_rows_of_query(insert: EngineInsert) -> tuple[int | None, int]:
    found: tuple[int | None, int] = import_module("lakelet.spark.iceberg.engine").insert_rows_of_query(insert)
    return found


# What `SET execution.engine = 'spark'` in lake.sql() runs inserts on.
register_engine("spark", _insert_rows_of_query)
