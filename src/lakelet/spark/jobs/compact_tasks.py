"""Run compaction tasks on executors; the driver plans and commits.

tasks ─ assigned, the largest first, to about as many Spark tasks as run at once ─ mapInArrow(rewrite) ─ messages

A large bucket has a Spark task of its own, and small ones share theirs, so that the longest does not start last.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.commit.metadata.table_identity import table_uuid
from lakelet.compact.buckets.postponed import WaitingRewriter, WaitingTask
from lakelet.compact.buckets.rescale_plan import RescaleTask
from lakelet.compact.buckets.rescale_rewrite import RescaleRewriter
from lakelet.compact.cluster.chosen_order import RowOrdering
from lakelet.compact.compaction import rewriter
from lakelet.compact.progress import CompactionProgress, Progress, Watch
from lakelet.compact.task import CompactionTask
from lakelet.model.commit_message import CommitMessage
from lakelet.model.schema import TableSchema
from lakelet.spark.session import default_parallelism, is_connect
from lakelet.spark.task_outcome import outcome_batches
from lakelet.spark.task_progress import task_progress
from lakelet.spark.write.leftovers import remove_all, remove_leftovers
from lakelet.spark.write.write_job import collected, may_have_lost, raise_first
from lakelet.storage.home import TableHome

_TASKS_PER_CORE = 8


Task = CompactionTask | WaitingTask | RescaleTask
T = TypeVar("T", CompactionTask, WaitingTask, RescaleTask)
Group = tuple[CommitMessage, ...]
Rewrite = Callable[[T, Watch], Group]


def _compacted(home: TableHome, schema: TableSchema, ordering: RowOrdering | None = None) -> Rewrite[CompactionTask]:
    do = rewriter(home, schema, ordering)
    return lambda task, watch: (do(task, watch),)


def _placed(home: TableHome, schema: TableSchema) -> Rewrite[WaitingTask]:
    return WaitingRewriter(home, schema, SchemaVersions(home, {schema.id: schema})).rewrite


def _rescaled(home: TableHome, schema: TableSchema) -> Rewrite[RescaleTask]:
    return RescaleRewriter(home, schema, SchemaVersions(home, {schema.id: schema})).rewrite


@dataclass(frozen=True, slots=True)
class CompactTasks:
    """Runs the compaction tasks of one table as Spark jobs. The ids of `home` begin with `job`. An error leaves no new files."""

    spark: SparkSession
    home: TableHome
    job: str
    progress: Progress | None = None

    def compact(
        self, schema: TableSchema, tasks: Sequence[CompactionTask], ordering: RowOrdering | None = None
    ) -> tuple[CommitMessage, ...]:
        """Compacts buckets, writing files of this schema; with an ordering, rows in that order."""
        groups = self._done(schema, tasks, partial(_compacted, ordering=ordering))
        return tuple(message for (message,) in groups if message.new_files or message.deleted_files)

    def place(self, schema: TableSchema, tasks: Sequence[WaitingTask]) -> list[Group]:
        """Assigns buckets to postponed rows, by partition."""
        return self._done(schema, tasks, _placed)

    def rescale(self, schema: TableSchema, tasks: Sequence[RescaleTask]) -> list[Group]:
        """Rewrites partitions with another number of buckets."""
        return self._done(schema, tasks, _rescaled)

    def _done(
        self, schema: TableSchema, tasks: Sequence[T], rewrite_of: Callable[[TableHome, TableSchema], Rewrite[T]]
    ) -> list[Group]:
        if not tasks:
            return []
        parts = balanced_tasks(tasks, _TASKS_PER_CORE * default_parallelism(self.spark))
        work = _PartTask(self.home, schema, tuple(parts), rewrite_of)
        frame = self.spark.range(0, len(parts), 1, len(parts)).toDF("part")
        what = f"compacting {self.home.where(self.home.paths.root)}"
        try:
            if self.progress is None or is_connect(self.spark):
                outcomes = collected(self.spark, frame, work, what)
            else:
                with task_progress(self.spark, lambda done, _: self._tell(done, parts, tasks)):
                    outcomes = collected(self.spark, frame, work, what)
            raise_first(outcomes)
        except BaseException:
            remove_all(self.home, self.job)
            raise
        groups = [group for outcome in outcomes for group in outcome.value or ()]
        messages = [message for group in groups for message in group]
        lost = may_have_lost(self.spark, outcomes)
        remove_leftovers(self.home, schema, self.job, messages, expected=lost)
        return groups

    def _tell(self, done: int, parts: Sequence[Sequence[Task]], tasks: Sequence[Task]) -> None:
        """Reports progress by the number of finished Spark tasks, which Spark starts in order."""
        assert self.progress is not None
        finished = [task for part in parts[:done] for task in part]
        self.progress(
            CompactionProgress(
                len(finished),
                len(tasks),
                sum(task.row_count for task in finished),
                sum(task.row_count for task in tasks),
                sum(task.size for task in finished),
                sum(task.size for task in tasks),
            )
        )


def balanced_tasks(tasks: Sequence[T], most: int) -> list[list[T]]:
    """The tasks in at most this many parts, each assigned to the part with the least work so far; the heaviest parts first."""
    count = max(1, min(len(tasks), most))
    parts: list[list[T]] = [[] for _ in range(count)]
    loads = [(0, number) for number in range(count)]
    for task in sorted(tasks, key=lambda task: -task.size):
        load, number = heapq.heappop(loads)
        parts[number].append(task)
        heapq.heappush(loads, (load + task.size, number))
    return sorted(parts, key=lambda part: -sum(task.size for task in part))


@dataclass(frozen=True, slots=True)
class _PartTask(Generic[T]):
    home: TableHome
    schema: TableSchema
    parts: tuple[list[T], ...]
    rewrite_of: Callable[[TableHome, TableSchema], Rewrite[T]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from outcome_batches(lambda: self._rewritten(batches))

    def _rewritten(self, batches: Iterable[pa.RecordBatch]) -> list[Group]:
        own = [task for batch in batches for number in batch.column(0).to_pylist() for task in self.parts[number]]
        do, uuid = self.rewrite_of(self.home, self.schema), table_uuid(self.home)
        watch = Watch(len(own), sum(task.row_count for task in own), sum(task.size for task in own))
        groups = [do(task, watch) for task in own]
        return [tuple(replace(message, table_uuid=uuid) for message in group) for group in groups]
