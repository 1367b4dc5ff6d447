"""The data source writer of `df.write.format("lakelet-iceberg")`.

    task     rows of a Spark partition ─► files of their table partitions ─► commit data
    driver   commit data of all tasks ─► one snapshot

Spark does not shuffle rows for a Python writer: each task writes a file for every partition that it has rows of.
`insert_iceberg` shuffles by partition first, and makes fewer files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lakelet.errors import LakeletError, UnavailableError
from lakelet.iceberg.schema.column_types import model_schema
from lakelet.iceberg.table import IcebergTable
from lakelet.iceberg.transaction import IcebergTransaction
from lakelet.iceberg.write.leftovers import remove_files_of_job
from lakelet.iceberg.write.write_plan import WritePlan
from lakelet.ids import RandomIds
from lakelet.model.schema import TableSchema
from lakelet.sink.rows.refused_rows import RefusedRowsError, merged_errors
from lakelet.spark.iceberg.insert import check_columns
from lakelet.spark.iceberg.insert_task import InsertTask, TaskFiles
from lakelet.spark.iceberg.source_options import IcebergSourceOptions
from lakelet.spark.read.merge_scan import packed, unpacked


@dataclass(frozen=True)
class WrittenFiles(WriterCommitMessage):
    """What one task wrote, or the error for the driver to raise: raised in the task, it would be retried three times."""

    written: TaskFiles | None
    error: LakeletError | None = None


class IcebergSourceWriter(DataSourceArrowWriter):
    """Writes the rows of one job. It is made on the driver, sent to every task, and sent to another process of the driver for the
    commit, which opens the catalog again and continues from the version that the job began with."""

    def __init__(
        self, options: IcebergSourceOptions, mode: str, plan: WritePlan, schema: TableSchema, version: bytes
    ) -> None:
        self._options = options
        self._mode = mode
        self._plan = plan
        self._schema = schema
        self._version = version

    @staticmethod
    def of(options: IcebergSourceOptions, given: StructType, *, overwrite: bool) -> IcebergSourceWriter:
        """A writer for rows of this Spark schema; InvalidError where the table or the columns do not fit."""
        mode = options.mode(overwrites=overwrite)
        table = options.open()
        plan = _transaction(table, options).begin_insert(mode, None, options.write)
        schema = model_schema(table)
        check_columns(plan, schema, given)
        return IcebergSourceWriter(options, mode, plan, schema, packed(table.version_json()))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        """The files of one task's rows; an error leaves none."""
        try:
            return WrittenFiles(InsertTask(self._plan, self._schema).written(iterator))
        except UnavailableError:
            raise
        except LakeletError as error:
            return WrittenFiles(None, error)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """One snapshot of what all tasks wrote."""
        tasks = [message for message in messages if isinstance(message, WrittenFiles)]
        errors = [task.error for task in tasks if task.error is not None]
        if errors:
            remove_files_of_job(self._plan, ())
            refused = [error for error in errors if isinstance(error, RefusedRowsError)]
            raise merged_errors(refused) if refused else errors[0]
        files = [file for task in tasks if task.written is not None for file in task.written.files]
        remove_files_of_job(self._plan, {file.file_path for file in files})
        try:
            transaction = self._resumed()
        except LakeletError:
            remove_files_of_job(self._plan, ())
            raise
        transaction.update_commit_data(files)
        transaction.finish_insert()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Removes what the tasks wrote. Where no task failed it was the commit that did, which has removed the files itself,
        unless it may be committed after all."""
        if any(message is None for message in messages):
            remove_files_of_job(self._plan, ())

    def _resumed(self) -> IcebergTransaction:
        """The transaction of the job, in this process."""
        table = self._options.open().at_version(unpacked(self._version))
        transaction = _transaction(table, self._options, self._plan.job)
        transaction.begin_insert(self._mode, None, self._options.write)
        return transaction


def _transaction(table: IcebergTable, options: IcebergSourceOptions, job: str | None = None) -> IcebergTransaction:
    ids = None if job is None else _JobIds(job)
    named = options.given
    return IcebergTransaction(table, branch=named.get("branch"), commit_id=named.get("commit-id"), ids=ids)


class _JobIds(RandomIds):
    """Ids of which the first is that of a job that has already begun."""

    def __init__(self, job: str) -> None:
        self._job: str | None = job

    def uuid(self) -> str:
        """The job's name, then random ones."""
        first, self._job = self._job, None
        return first if first is not None else super().uuid()
