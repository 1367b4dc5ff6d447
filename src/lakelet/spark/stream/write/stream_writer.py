"""The writer of `df.writeStream.format("lakelet")`, for tables whose rows need no routing.

    task     rows of a Spark partition ─► files, and messages about them
    driver   messages of all tasks ─► look back for (commit.user, batch) ─► one commit

Spark makes a writer for the tasks of a batch and another one, in another process, for its commit, and tells neither which query
it is: option `commit.user` names it, joined with the id of the mark in the checkpoint folder (`checkpoint_mark`). The option
that tells that folder is spelled differently from run to run, so that it serves to find the mark and is no identity itself.
After a failed commit Spark sends the batch again with files of its own; those of the earlier attempt are orphans, never removed
while they may be committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lakelet.commit.committed_files import remove_files, remove_uncommitted
from lakelet.errors import CommitUnknownError, InvalidError, LakeletError
from lakelet.ids import RandomIds
from lakelet.model.schema import TableSchema
from lakelet.spark.opened_table import OpenedTable
from lakelet.spark.source.given_options import CHECKPOINT, lower_case
from lakelet.spark.source.options import SourceOptions
from lakelet.spark.source.writer import SourceWriter, TaskFiles, unrouted_schema
from lakelet.spark.stream.write.batch_identity import BatchIdentity
from lakelet.spark.stream.write.checkpoint_mark import (
    checkpoint_store,
    identity_of,
    logged_offsets,
    marked,
    scheme_of_running,
)
from lakelet.spark.workers import told_plainly
from lakelet.spark.write.leftovers import remove_all, remove_leftovers
from lakelet.storage.store import ObjectStore
from lakelet.table.write.after_write import AfterWrite
from lakelet.table.write.table_commit import TableCommit

_USER = "commit.user"


class LakeletStreamWriter(DataSourceStreamArrowWriter):
    """Writes the batches of a stream; made on the driver, sent to every task."""

    def __init__(
        self,
        opened: OpenedTable,
        schema: TableSchema,
        rows: SourceWriter,
        user: str,
        checkpoint: ObjectStore | None,
        *,
        resume: bool,
    ) -> None:
        self._opened = opened
        self._schema = schema
        self._rows = rows
        self._user = user
        self._checkpoint = checkpoint
        self._resume = resume

    @staticmethod
    def of(given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> LakeletStreamWriter:
        """A writer for rows of this Spark schema; InvalidError where the table, the columns or the options do not fit."""
        options = SourceOptions.of(given)
        options.given.refuse_for_writing()
        user = (options.given.get(_USER) or options.given.get("commit-user") or "").strip()
        if not user:
            raise InvalidError(
                f"writeStream.format('lakelet') needs the option '{_USER}', a name by which a repeated batch is recognised; "
                "lakelet.spark.write_stream needs none"
            )
        if options.given.get("commit-identifier") is not None:
            raise InvalidError("option 'commit-identifier': a stream's batches have their own numbers")
        if overwrite:
            raise InvalidError("outputMode('complete') replaces the table at every batch: use append or update")
        resume = (options.given.get("resume") or "false").strip().lower()
        if resume not in ("true", "false"):
            raise InvalidError(f"option 'resume': expected true or false, found {resume!r}")
        opened = options.open()
        instead = "lakelet.spark.write_stream(df, warehouse, table, checkpoint=…)"
        stored = unrouted_schema(opened, "writeStream.format", instead)
        folder = lower_case(given).get(CHECKPOINT, "")
        store = checkpoint_store(folder, scheme_of_running(folder), options.others)
        if store is not None:
            mark = marked(
                store, {opened.name: identity_of(opened)}, RandomIds(), resume=resume == "true", folder=folder
            )
            user = f"{user}-{mark.id}"
        rows = SourceWriter.opened(opened, stored, TableCommit.of(opened.home, None, None, stored), schema)
        return LakeletStreamWriter(opened, stored, rows, user, store, resume=resume == "true")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskFiles:
        """The files of one task's rows; an error leaves none."""
        return self._rows.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """One commit of what all tasks of a batch wrote, unless the table has the batch already."""
        with told_plainly():
            self._commit([message for message in messages if isinstance(message, TaskFiles)], batchId)

    def _commit(self, tasks: list[TaskFiles], batch_id: int) -> None:
        home, schema = self._opened.home, self._schema
        written = [message for task in tasks for message in task.messages]
        failed = next((task.error for task in tasks if task.error is not None), None)
        if failed is not None:
            for job in {task.job for task in tasks}:
                remove_all(home, job)
            raise failed
        identity = BatchIdentity(
            self._user,
            batch_id,
            None,
            first=batch_id,
            marked=self._checkpoint is not None,
            resume=self._resume,
            offsets=logged_offsets(self._checkpoint, batch_id),
        )
        commit = TableCommit.of(home, self._user, batch_id).ignore_empty(True).properties(identity.properties)
        commit, done = commit.look_back()
        if done is not None:
            remove_uncommitted(home, written)
            identity.check_repeated(home, done)
            AfterWrite(home, schema, commit).repeated(done)
            return
        for job in {task.job for task in tasks}:
            remove_leftovers(home, schema, job, written, expected=False)
        try:
            commit = replace(commit, fresh=True)
            made = commit.commit(written)
        except CommitUnknownError:
            raise
        except LakeletError:
            remove_files(home, schema, written)
            raise
        AfterWrite(home, schema, commit).run(made, written, lambda _: 0)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Removes what the tasks that finished wrote, except committed files.

        Where no task failed it was the commit that did, whose outcome may be unknown: its files stay.
        """
        if any(message is None for message in messages):
            found = [message for task in messages if isinstance(task, TaskFiles) for message in task.messages]
            remove_uncommitted(self._opened.home, found)
