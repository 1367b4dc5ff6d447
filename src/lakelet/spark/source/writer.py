"""The data source writer of `df.write.format("lakelet")`, for tables whose rows need no routing.

    task     rows of a Spark partition ─► files, and messages about them
    driver   messages of all tasks ─► one commit

Spark does not shuffle rows for a Python writer, so only tables are supported in which any task may write any row:
append tables without buckets, and postponed buckets, whose rows get theirs in compaction. All others need
`lakelet.spark.write`, and are refused before a job runs. Rows of one key in a postpone table have no order between tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from lakelet.catalog.names import matching
from lakelet.commit.committed_files import remove_files
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.errors import CommitUnknownError, InvalidError, LakeletError, UnavailableError
from lakelet.ids import PrefixedIds
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.commit_message import CommitMessage
from lakelet.model.schema import TableSchema
from lakelet.sink.rows.cast import RowCaster
from lakelet.sink.rows.defaults import ColumnDefaults
from lakelet.spark.opened_table import OpenedTable
from lakelet.spark.source.options import SourceOptions
from lakelet.spark.types import check_text, from_spark_arrow
from lakelet.spark.workers import told_plainly
from lakelet.spark.write.leftovers import remove_all, remove_leftovers
from lakelet.storage.home import TableHome
from lakelet.table.usable import check_usable
from lakelet.table.write.after_write import AfterWrite
from lakelet.table.write.table_commit import TableCommit
from lakelet.table.write.table_write import TableWrite
from lakelet.table.write.writable import check_writable
from lakelet.table.write.writer import PinnedVersion

_UNROUTED = (BucketMode.BUCKET_UNAWARE, BucketMode.POSTPONE_MODE)


@dataclass(frozen=True)
class TaskFiles(WriterCommitMessage):
    """What one task wrote, or the error for the driver to raise: raised in the task, it would be retried three times."""

    messages: tuple[CommitMessage, ...]
    error: LakeletError | None = None
    job: str = ""


class SourceWriter(DataSourceArrowWriter):
    """Writes the rows of one job; made on the driver, sent to every task. The ids of `home` begin with `job`."""

    def __init__(
        self,
        home: TableHome,
        schema: TableSchema,
        commit: TableCommit,
        version: PinnedVersion,
        names: dict[str, str],
        job: str,
    ) -> None:
        self._home = home
        self._schema = schema
        self._commit = commit
        self._version = version
        self._names = names
        self._job = job
        # The current time of default values is the same for all tasks.
        self._now_ms = home.clock.now_ms()

    @staticmethod
    def of(options: SourceOptions, given: StructType, *, overwrite: bool) -> SourceWriter:
        """A writer for rows of this Spark schema; InvalidError where the table or the columns do not fit."""
        options.given.refuse_for_writing()
        options.given.refuse_for_batches()
        opened = options.open()
        schema = unrouted_schema(opened, "df.write.format", "lakelet.spark.write(df, warehouse, table)")
        commit = TableCommit.of(opened.home, *options.commit_identity)
        dynamic = options.given.overwrites_dynamically
        if overwrite:
            commit = commit.overwrite(dynamic=dynamic and bool(schema.partition_keys))
        return SourceWriter.opened(opened, schema, commit, given)

    @staticmethod
    def opened(opened: OpenedTable, schema: TableSchema, commit: TableCommit, given: StructType) -> SourceWriter:
        """A writer of rows of this Spark schema for a commit."""
        job = opened.home.ids.uuid().replace("-", "")
        home = replace(opened.home, ids=PrefixedIds(job))
        version = PinnedVersion.shared(home, schema, latest_snapshot(home), commit.replaces, table_uuid=opened.uuid)
        return SourceWriter(home, schema, commit, version, _matched(given, schema), job)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskFiles:
        """The files of one task's rows; an error leaves none."""
        write = TableWrite(
            self._home, self._schema, replaces=self._commit.replaces, base=self._version, now_ms=self._now_ms
        )
        try:
            write.write(self._renamed(batch) for batch in iterator)
            return TaskFiles(write.prepare_commit(), job=self._job)
        except LakeletError as error:
            write.discard()
            if isinstance(error, UnavailableError):
                raise
            return TaskFiles((), error, self._job)
        except BaseException:
            write.discard()
            raise

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """One commit of what all tasks wrote."""
        with told_plainly():
            self._commit_all(messages)

    def _commit_all(self, messages: list[WriterCommitMessage | None]) -> None:
        tasks = [message for message in messages if isinstance(message, TaskFiles)]
        failed = next((task.error for task in tasks if task.error is not None), None)
        if failed is not None:
            remove_all(self._home, self._job)
            raise failed
        written = [message for task in tasks for message in task.messages]
        remove_leftovers(self._home, self._schema, self._job, written, expected=False)
        try:
            commit = replace(self._commit, home=self._home, fresh=True)
            made = commit.commit(written)
        except CommitUnknownError:
            raise
        except LakeletError:
            remove_files(self._home, self._schema, written)
            raise
        # The files of the write are committed now: what follows has names of its own.
        home = replace(self._home, ids=PrefixedIds(self._home.ids.uuid()))
        AfterWrite(home, self._schema, commit).run(made, written, lambda _: 0)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Removes what the tasks that finished wrote.

        Where no task failed it was the commit that did, which has removed the files itself, unless it may be committed after all.
        """
        if any(message is None for message in messages):
            remove_all(self._home, self._job)

    def _renamed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        named = batch.rename_columns([self._names[name] for name in batch.schema.names])
        taken = from_spark_arrow(named, self._schema.fields)
        check_text(taken)
        return taken


def unrouted_schema(opened: OpenedTable, what: str, instead: str) -> TableSchema:
    """The newest schema of a table in which any task may write any row; InvalidError for another one."""
    schema = opened.schema()
    check_usable(schema)
    check_writable(schema)
    mode = bucket_mode(schema)
    if mode not in _UNROUTED:
        raise InvalidError(
            f"rows of {opened.name} must be routed to their buckets ({mode.value}), which {what} cannot do: use {instead}"
        )
    return schema


def _matched(given: StructType, schema: TableSchema) -> dict[str, str]:
    """The table's column for each column of the data; InvalidError for what would fail in every task."""
    names = {name: matching(name, schema.names) or name for name in given.fieldNames()}
    try:
        arrow = to_arrow_schema(given, timezone="UTC")
    except (PySparkException, ValueError) as error:
        raise InvalidError(f"the data does not fit the table: {given.simpleString()} ({error})") from error
    empty = arrow.empty_table().rename_columns([names[name] for name in given.names])
    batch = pa.RecordBatch.from_arrays(
        [pa.array([], column.type) for column in empty.columns], names=empty.column_names
    )
    RowCaster(schema.fields, ColumnDefaults.of(schema, 0)).cast(from_spark_arrow(batch, schema.fields))
    return names
