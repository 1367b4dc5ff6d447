"""`ls.compact`, `ls.rescale`: rewrite buckets or partitions on executors, and commit once on the driver."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from lakelet.commit.metadata.schemas import latest_schema
from lakelet.compact.buckets.postponed import PostponedCompaction
from lakelet.compact.cluster.chosen_order import RowOrdering
from lakelet.compact.compaction import Compaction
from lakelet.compact.progress import Progress
from lakelet.compact.task import CompactionTask
from lakelet.ids import PrefixedIds
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.commit_message import CommitMessage
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.spark.call_sites import UnrecordedCallSites
from lakelet.spark.jobs.compact_tasks import CompactTasks
from lakelet.spark.jobs.ended_job import ended_job
from lakelet.spark.opened_table import OpenedTable, open_table
from lakelet.storage.home import TableHome
from lakelet.table.upkeep.compaction_scope import partition_scope
from lakelet.table.usable import check_usable


@UnrecordedCallSites()
def compact(
    spark: SparkSession,
    warehouse: str | os.PathLike[str],
    table: str,
    full: bool = False,
    *,
    partition: Mapping[str, object] | None = None,
    progress: Progress | None = None,
    branch: str | None = None,
    options: Mapping[str, str] | None = None,
    order_strategy: str | None = None,
    order_by: Sequence[str] | None = None,
) -> Snapshot | None:
    """Compacts what the table's options say is due, with `full` everything; returns the snapshot, None where there was
    nothing to do.

    With `order_strategy` ("order", "zorder" or "hilbert") and `order_by` all rows of an append table without buckets are
    rewritten in an order in which conditions on these columns prune files, each partition by one task.

    `partition` narrows it to partitions with these values. `progress` is called with a `CompactionProgress` as tasks end, which a
    session over Spark Connect does not report. Writers go on meanwhile; buckets that they or another compaction rewrite are
    skipped.
    """
    ordering = RowOrdering.of(order_strategy, order_by)
    opened = open_table(warehouse, table, options, branch)
    schema = opened.schema()
    check_usable(schema)
    if ordering is not None:
        ordering.check(schema, opened.name)
    tasks = _tasks(spark, opened, progress)
    scope = partition_scope(partition, schema)
    placed: Snapshot | None = None
    if bucket_mode(schema) is BucketMode.POSTPONE_MODE:
        placed = PostponedCompaction(tasks.home, schema, scope, elsewhere=tasks.place).run()
    compaction = Compaction(
        tasks.home,
        schema,
        full,
        scope,
        elsewhere=partial(tasks.compact, ordering=ordering),
        extra=opened.extra,
        ordering=ordering,
    )
    return compaction.run() or placed


@UnrecordedCallSites()
def compact_open_table(spark: SparkSession, home: TableHome, stopped: Callable[[], bool]) -> Snapshot | None:
    """Compacts what a table's options say is due, of a table that is open. Once it is `stopped`, which is looked at while the
    job runs, the job ends, and nothing is committed."""
    schema = latest_schema(home)
    check_usable(schema)
    job = home.ids.uuid().replace("-", "")
    tasks = CompactTasks(spark, replace(home, ids=PrefixedIds(job)), job, None)

    def elsewhere(schema: TableSchema, found: Sequence[CompactionTask]) -> tuple[CommitMessage, ...]:
        with ended_job(spark, f"lakelet-compaction-{job}", stopped):
            return tasks.compact(schema, found)

    return Compaction(tasks.home, schema, elsewhere=elsewhere).run()


@UnrecordedCallSites()
def rescale(
    spark: SparkSession,
    warehouse: str | os.PathLike[str],
    table: str,
    buckets: int,
    *,
    partition: Mapping[str, object] | None = None,
    progress: Progress | None = None,
    branch: str | None = None,
    options: Mapping[str, str] | None = None,
) -> Snapshot | None:
    """Gives a table another number of buckets, rewriting its partitions; returns the snapshot, None where all had it already.

    Writers for the old number are refused from the moment on that the number changes. A call that was interrupted resumes
    when it is repeated.
    """
    opened = open_table(warehouse, table, options, branch)
    check_usable(opened.schema())
    tasks = _tasks(spark, opened, progress)
    return opened.table.rescale(buckets, partition=partition, elsewhere=tasks.rescale)


def _tasks(spark: SparkSession, opened: OpenedTable, progress: Progress | None) -> CompactTasks:
    job = opened.home.ids.uuid().replace("-", "")
    return CompactTasks(spark, replace(opened.home, ids=PrefixedIds(job)), job, progress)
