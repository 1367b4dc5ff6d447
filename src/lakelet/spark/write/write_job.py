"""Run one write as a Spark job: run tasks, collect outcomes, remove leftover files, commit once.

frame ─ mapInArrow(task) ─ outcomes ─┬─ an error among them: files removed, error raised
                                     └─ messages ─ commit ─┬─ committed
                                                           └─ concurrent commit has newer rows: files restamped, as a job
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakelet.model.bucket_mode import Place
from lakelet.model.commit_message import CommitMessage
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.sink.rows.refused_rows import RefusedRowsError, merged_errors
from lakelet.sink.write.restamp import restamp
from lakelet.spark.arrow_tasks import Task, mapped
from lakelet.spark.failures import readable
from lakelet.spark.session import settings
from lakelet.spark.task_outcome import OUTCOME_SCHEMA, TaskOutcome, outcome_batches
from lakelet.spark.write.leftovers import remove_all, remove_leftovers
from lakelet.spark.write.write_task import Written
from lakelet.storage.home import TableHome
from lakelet.table.write.committed_write import commit_on_top
from lakelet.table.write.repetition import Repetition
from lakelet.table.write.table_commit import TableCommit

_LOG = logging.getLogger(__name__)
_BATCH_ROWS = "65536"
ARROW_SETTINGS = {"spark.sql.execution.arrow.maxRecordsPerBatch": _BATCH_ROWS}


def writing(home: TableHome) -> str:
    """What a write is doing, for its errors."""
    return f"writing {home.where(home.paths.root)}"


def collected(spark: SparkSession, frame: DataFrame, task: Task, what: str) -> list[TaskOutcome[Any]]:
    """Runs a task over the partitions of a frame and collects the outcomes."""
    with readable(what), settings(spark, ARROW_SETTINGS):
        rows = mapped(frame, task, OUTCOME_SCHEMA).collect()
    return [pickle.loads(row[0]) for row in rows]


def raise_first(outcomes: Sequence[TaskOutcome[Any]]) -> None:
    """Raises an error of the tasks if there is one; rows that several tasks refused for one reason are counted together."""
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    refused = [error for error in errors if isinstance(error, RefusedRowsError)]
    if refused:
        raise merged_errors(refused)
    if errors:
        raise errors[0]


def may_have_lost(spark: SparkSession, outcomes: Sequence[TaskOutcome[Any]]) -> bool:
    """Whether there may have been attempts besides the successful ones."""
    numbers = [outcome.number for outcome in outcomes]
    gaps = bool(numbers) and max(numbers) - min(numbers) >= len(numbers)
    speculates = str(spark.conf.get("spark.speculation", "false")).lower() == "true"
    return gaps or speculates or any(outcome.repeated for outcome in outcomes)


@dataclass(frozen=True, slots=True)
class WriteJob:
    """A job that writes one commit. The ids of `home` begin with `job`. `watermark_of` gives the commit's watermark once the
    tasks are done."""

    spark: SparkSession
    home: TableHome
    schema: TableSchema
    commit: TableCommit
    job: str
    watermark_of: Callable[[], int | None] | None = None

    def run(self, frame: DataFrame, task: Task) -> tuple[Snapshot | None, tuple[CommitMessage, ...]]:
        """Writes the rows of a frame, each partition in one task, and commits; returns the snapshot and the messages."""
        what = writing(self.home)
        try:
            outcomes = collected(self.spark, frame, task, what)
            raise_first(outcomes)
        except BaseException:
            remove_all(self.home, self.job)
            raise
        written = [outcome.value for outcome in outcomes if isinstance(outcome.value, Written)]
        messages = tuple(message for one in written for message in one.messages)
        files = sum(len(message.new_files) for message in messages)
        _LOG.info("%s: %d rows in %d files by %d tasks", what, sum(one.rows for one in written), files, len(outcomes))
        again = may_have_lost(self.spark, outcomes)
        remove_leftovers(self.home, self.schema, self.job, messages, expected=again)
        commit = replace(self.commit, fresh=True)
        if self.watermark_of is not None:
            commit = commit.watermark(self.watermark_of())
        made = commit_on_top(commit, self.schema, messages, Repetition(self.home, self.schema), self._moved)
        return made, messages

    def _moved(self, messages: tuple[CommitMessage, ...], above: Mapping[Place, int]) -> tuple[CommitMessage, ...]:
        """The messages with their files restamped above others' sequence numbers: a task for each bucket that is touched."""
        touched = [message for message in messages if (message.partition, message.bucket) in above]
        rest = [message for message in messages if (message.partition, message.bucket) not in above]
        count = len(touched)
        task = _RestampTask(self.home, self.schema, tuple(touched), above)
        what = f"moving files of {self.home.where(self.home.paths.root)} above those of another writer"
        try:
            outcomes = collected(self.spark, self.spark.range(0, count, 1, count).toDF("message"), task, what)
            raise_first(outcomes)
        except BaseException:
            # The commit was refused and is not retried, so that none of the job's files is needed any more.
            remove_all(self.home, self.job)
            raise
        moved = (*rest, *(message for outcome in outcomes for message in outcome.value or ()))
        again = may_have_lost(self.spark, outcomes)
        remove_leftovers(self.home, self.schema, self.job, (*messages, *moved), expected=again)
        return moved


@dataclass(frozen=True, slots=True)
class _RestampTask:
    home: TableHome
    schema: TableSchema
    messages: tuple[CommitMessage, ...]
    above: Mapping[Place, int]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from outcome_batches(lambda: self._moved(batches))

    def _moved(self, batches: Iterable[pa.RecordBatch]) -> tuple[CommitMessage, ...]:
        own = [self.messages[number] for batch in batches for number in batch.column(0).to_pylist()]
        return restamp(self.home, self.schema, own, self.above)
