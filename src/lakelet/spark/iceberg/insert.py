"""`insert_iceberg`: write the rows of a DataFrame into an Iceberg table as one snapshot.

    driver       pin the table's version ─ a plan ─ columns matched by name ─ rows routed by partition
    executors    each row's partition ─ files ─ commit data
    driver       files of lost attempts removed ─ one snapshot

Nothing a task writes is part of the table before the driver has committed it. A job that fails removes its files and changes
nothing; one whose driver is lost leaves orphan files, which the removal of orphans finds.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from lakelet.errors import InvalidError
from lakelet.iceberg.catalog.library_errors import lakelet_errors
from lakelet.iceberg.commit_data import CommitData
from lakelet.iceberg.schema.column_types import model_schema
from lakelet.iceberg.table import IcebergTable
from lakelet.iceberg.transaction import MODES, IcebergTransaction, MadeSnapshot
from lakelet.iceberg.write.leftovers import remove_files_of_job
from lakelet.iceberg.write.row_fit import RowFit
from lakelet.iceberg.write.write_plan import WritePlan
from lakelet.model.schema import TableSchema
from lakelet.spark.call_sites import UnrecordedCallSites
from lakelet.spark.iceberg.catalogs import CatalogLike, is_connection, open_catalog
from lakelet.spark.iceberg.distribution import routed, routing_settings
from lakelet.spark.iceberg.insert_task import InsertTask, TaskFiles
from lakelet.spark.iceberg.types import Times, spark_columns
from lakelet.spark.session import settings
from lakelet.spark.workers import prepare_workers
from lakelet.spark.write.matched_columns import matched
from lakelet.spark.write.write_job import collected, may_have_lost, raise_first
from lakelet.table.write.table_commit import partition_spec

_LOG = logging.getLogger(__name__)
_FOR_ONE_WRITE = "write."


def insert_iceberg(
    df: DataFrame,
    catalog: CatalogLike,
    table: str,
    mode: str = "append",
    partition: Mapping[str, object] | None = None,
    *,
    branch: str | None = None,
    commit_id: str | None = None,
    options: Mapping[str, str] | None = None,
    warehouse: str | os.PathLike[str] | None = None,
    parallelism: int | None = None,
) -> MadeSnapshot | None:
    """Writes the rows of a DataFrame as one snapshot and returns it; None where there was nothing to write.

    `catalog` are properties of pyiceberg, or the name of a catalog of pyiceberg's configuration or, with `warehouse`, of a lake.
    `mode` is "append", "overwrite" (the whole table, or the static `partition`) or "overwrite_partitions" (the partitions that
    the rows belong to). With `commit_id` the write is applied once, however often the job is run. `options` are table
    properties that hold for this write (`write.distribution-mode` …) and, with `warehouse`, those of the connection.
    `parallelism` bounds how many tasks write.
    """
    check_arguments(mode, partition, parallelism)
    if df.isStreaming:
        raise InvalidError("df is a stream: a batch write takes frames that end")
    found = open_catalog(catalog, warehouse, options).table(table)
    prepare_workers(df.sparkSession)
    return IcebergInsert(found, mode, partition, branch, commit_id, write_options(options)).run(df, parallelism)


def check_arguments(mode: str, partition: Mapping[str, object] | None, parallelism: int | None = None) -> None:
    """InvalidError for arguments that are wrong whatever the table is."""
    if mode not in MODES:
        raise InvalidError(f"mode {mode!r}: expected one of {', '.join(MODES)}")
    if partition is not None and mode != "overwrite":
        raise InvalidError(f"partition= goes with mode='overwrite', found mode={mode!r}")
    if parallelism is not None and parallelism < 1:
        raise InvalidError(f"parallelism {parallelism}: expected a number from 1 on")


def write_options(options: Mapping[str, str] | None) -> dict[str, str]:
    """The table properties among the options; InvalidError for one that does not apply to writes."""
    given = {str(key): str(value) for key, value in (options or {}).items() if not is_connection(str(key))}
    wrong = next((key for key in given if not key.startswith(_FOR_ONE_WRITE)), None)
    if wrong is not None:
        raise InvalidError(
            f"option {wrong!r} cannot hold for one write: expected table properties such as write.distribution-mode"
        )
    return given


@dataclass(frozen=True, slots=True)
class IcebergInsert:
    """One insert into a table as it was loaded."""

    table: IcebergTable
    mode: str
    partition: Mapping[str, object] | None
    branch: str | None
    commit_id: str | None
    options: Mapping[str, str]

    @UnrecordedCallSites()
    def run(
        self, df: DataFrame, parallelism: int | None = None, transaction: IcebergTransaction | None = None
    ) -> MadeSnapshot | None:
        """Routes, writes and commits, by a transaction that was looked for and not found, or one of its own."""
        if transaction is None:
            transaction = IcebergTransaction(self.table, branch=self.branch, commit_id=self.commit_id)
            applied = transaction.applied()
            if applied is not None:
                return applied
        plan = transaction.begin_insert(self.mode, self.partition, self.options)
        schema = model_schema(self.table)
        fixed = partition_spec(self.partition or {}, schema)
        frame = matched(df, spark_columns(schema), fixed=fixed, kinds=None).frame
        check_columns(plan, schema, frame.schema)
        routed_frame = routed(frame, plan, parallelism)
        try:
            transaction.update_commit_data(self._written(routed_frame, plan, InsertTask(plan, schema)))
        except BaseException:
            transaction.rollback()
            raise
        return transaction.finish_insert()

    def _written(self, frame: DataFrame, plan: WritePlan, task: InsertTask) -> list[CommitData]:
        """Runs the tasks. Only files reported by successful attempts are kept."""
        spark, what = frame.sparkSession, f"writing table {plan.table}"
        with settings(spark, routing_settings(plan)):
            outcomes = collected(spark, frame, task, what)
        raise_first(outcomes)
        written = [outcome.value for outcome in outcomes if isinstance(outcome.value, TaskFiles)]
        files = [file for one in written for file in one.files]
        rows = sum(one.rows for one in written)
        _LOG.info("%s: %d rows in %d files by %d tasks", what, rows, len(files), len(outcomes))
        if may_have_lost(spark, outcomes):
            remove_files_of_job(plan, {file.file_path for file in files})
        return files


def check_columns(plan: WritePlan, schema: TableSchema, given: StructType) -> None:
    """InvalidError for columns that do not fit the files, before any task starts."""
    arrow = to_arrow_schema(given, timezone="UTC")
    empty = pa.RecordBatch.from_arrays([pa.array([], one.type) for one in arrow], names=arrow.names)
    with lakelet_errors(f"table {plan.table}"):
        RowFit(plan.schema).check_schema(Times(schema.fields).made(empty).schema)
