"""`ls.write`: write the rows of a DataFrame into a table, in one commit.

columns matched by name ─┬─ a small frame: collected, written and committed by the driver (`small_frame`)
                         └─ routed by channel ─ one task per channel writes its buckets ─ the driver commits once

append table          without a shuffle; rows of partitioned tables are gathered by partition first
HASH_FIXED            to the channel of the partition and the bucket, a JVM expression
POSTPONE_MODE         to the channel of the key, in key order, so that rows of one key meet
HASH_DYNAMIC          `dynamic_buckets`: to the channel of the key's bucket, new keys to the one that assigns theirs
KEY_DYNAMIC           `cross_partition`: joined with the partitions and buckets of the table's keys, then likewise
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.request import Overwrite
from lakelet.compact.compaction import Elsewhere
from lakelet.compact.task import CompactionTask
from lakelet.errors import InvalidError
from lakelet.ids import PrefixedIds
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.commit_message import CommitMessage
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import BUCKET, TableOptions
from lakelet.sink.rows.missing_columns import missing_policy
from lakelet.spark.call_sites import UnrecordedCallSites
from lakelet.spark.column_names import column_named
from lakelet.spark.failures import readable
from lakelet.spark.jobs.compact_tasks import CompactTasks
from lakelet.spark.opened_table import OpenedTable, open_table
from lakelet.spark.route.bucket_groups import Routed
from lakelet.spark.route.cross_partition import CrossingTable, crossed, partitions_of
from lakelet.spark.route.dynamic_buckets import AssigningTable, assigned
from lakelet.spark.route.hash_expression import channel_expression, row_hash
from lakelet.spark.session import default_parallelism, settings
from lakelet.spark.workers import prepare_workers
from lakelet.spark.write.driver_rows import DriverRows, has_void
from lakelet.spark.write.driver_write import places_of, write_rows
from lakelet.spark.write.key_order import one_row_per_key
from lakelet.spark.write.matched_columns import Matched, matched
from lakelet.spark.write.small_frame import may_be_small
from lakelet.spark.write.write_job import ARROW_SETTINGS, WriteJob, writing
from lakelet.spark.write.write_request import DRIVER_BYTES, DRIVER_ROWS, WriteRequest
from lakelet.spark.write.write_task import WriteTask
from lakelet.storage.home import TableHome
from lakelet.table.usable import check_usable
from lakelet.table.write.after_write import AfterWrite
from lakelet.table.write.table_commit import TableCommit, partition_spec
from lakelet.table.write.writable import check_writable
from lakelet.table.write.writer import PinnedVersion

_TASKS_PER_CORE = 4
# Keys that the driver gave buckets would have to be looked up by tasks ever after, and it would search all partitions by itself.
_ASSIGNED_BY_TASKS = (BucketMode.HASH_DYNAMIC, BucketMode.KEY_DYNAMIC)


def write(
    df: DataFrame,
    warehouse: str | os.PathLike[str],
    table: str,
    mode: str = "append",
    partition: Mapping[str, object] | None = None,
    *,
    on_duplicate: str = "raise",
    kinds: str | None = None,
    missing: str | None = None,
    commit_user: str | None = None,
    commit_identifier: int | None = None,
    options: Mapping[str, str] | None = None,
    branch: str | None = None,
    parallelism: int | None = None,
    driver_rows: int = DRIVER_ROWS,
    driver_bytes: int = DRIVER_BYTES,
) -> Snapshot | None:
    """Writes the rows of a DataFrame in one atomic commit; returns the snapshot, None where there was nothing to write.

    `mode` is "append" (in a primary-key table an upsert), "upsert" (which needs a primary key), "overwrite" (the whole
    table, or the static `partition`) or "overwrite_partitions" (the partitions that the rows belong to). Rows of a DataFrame
    have no order: two of one key are refused, unless the table has a `sequence.field`, its engine aggregates them in whatever
    order, or `on_duplicate` is "any"; all of them are folded by the task of their bucket. `kinds` names
    the column of row kinds ("+I", "+U", "-U", "-D"). `missing` says what an upsert does about columns that the frame
    lacks: "error", "default" or "keep" (stored values stay, looked up by the tasks in one snapshot: a conflict if their buckets
    are written to meanwhile); unless given, the option `write.missing-columns` says it. With `commit_user` and a rising
    `commit_identifier` the write is applied once, however often the job is run. `options` are those of the connection
    (`s3.endpoint` …) and table options that hold for this write. `parallelism` bounds how many tasks write.
    At most `driver_rows` rows within `driver_bytes` of small files, or of the frame's own values, are written by the driver, more
    by tasks; 0 leaves all of them to tasks.
    """
    request = WriteRequest(
        mode,
        partition,
        on_duplicate,
        kinds,
        missing,
        commit_user,
        commit_identifier,
        parallelism,
        driver_rows,
        driver_bytes,
    )
    if df.isStreaming:
        raise InvalidError("df is a stream: a batch write takes frames that end")
    return write_frame(df, open_table(warehouse, table, options, branch), request)


def write_frame(df: DataFrame, opened: OpenedTable, request: WriteRequest) -> Snapshot | None:
    """Writes the rows of a batch frame (no stream), as `write` does."""
    commit, done = planned_commit(opened, request).look_back()
    if done is not None:
        return repeated(opened, commit, done)
    with UnrecordedCallSites():
        is_written, made = _written_here(df, opened, request, commit)
        return made if is_written else write_planned(df, opened, request, commit)


def _written_here(
    df: DataFrame, opened: OpenedTable, request: WriteRequest, commit: TableCommit
) -> tuple[bool, Snapshot | None]:
    """Whether the driver has written and committed the rows of a frame, and the snapshot."""
    if not request.driver_rows or not request.driver_bytes:
        return False, None
    spark, what = df.sparkSession, writing(opened.home)
    with readable(what):
        if not may_be_small(df, request.driver_rows):
            return False, None
    schema = writable_schema(opened, request)
    if bucket_mode(schema) in _ASSIGNED_BY_TASKS or has_void(df.schema):
        return False, None
    places = places_of(spark, df.schema, schema, request)
    with settings(spark, ARROW_SETTINGS):
        rows = DriverRows(request.driver_rows, request.driver_bytes).collect(df, what)
    if rows is None:
        return False, None
    return True, write_rows(rows, places, opened, schema, request, commit, _compacting(spark, opened.home))


def _compacting(spark: SparkSession, home: TableHome) -> Elsewhere:
    """The compactor on the executors. Its files have names of their own: those of the write are committed by then."""

    def compact(schema: TableSchema, tasks: Sequence[CompactionTask]) -> tuple[CommitMessage, ...]:
        prepare_workers(spark)
        job = home.ids.uuid().replace("-", "")
        return CompactTasks(spark, replace(home, ids=PrefixedIds(job)), job).compact(schema, tasks)

    return compact


def repeated(opened: OpenedTable, commit: TableCommit, done: Snapshot) -> Snapshot:
    """The last snapshot of a write that was committed before. No job runs."""
    schema = opened.schema()
    check_usable(schema)
    check_writable(schema)
    return AfterWrite(opened.home, schema, commit, extra=opened.extra).repeated(done)


@UnrecordedCallSites()
def write_planned(
    df: DataFrame,
    opened: OpenedTable,
    request: WriteRequest,
    commit: TableCommit,
    watermark_of: Callable[[], int | None] | None = None,
) -> Snapshot | None:
    """Writes the rows of a batch frame by tasks, in a commit that was looked for and not found. `watermark_of` is asked for
    the commit's watermark once all rows are written."""
    prepare_workers(df.sparkSession)
    # The snapshot comes first: a schema read after it knows every column of its rows.
    snapshot = latest_snapshot(opened.home)
    schema = writable_schema(opened, request)
    policy = missing_policy(request.missing, schema, replaces=commit.replaces is not None)
    return _Write(df.sparkSession, opened, schema, commit, snapshot, request, policy, watermark_of).run(df)


def writable_schema(opened: OpenedTable, request: WriteRequest) -> TableSchema:
    """The newest schema of a table that takes such a write; InvalidError for one that does not."""
    schema = opened.schema()
    check_usable(schema)
    check_writable(schema)
    if request.mode == "upsert" and not schema.primary_keys:
        raise InvalidError(
            f"mode 'upsert': {opened.name} has no primary key by which rows would take the place of others"
        )
    return schema


def planned_commit(opened: OpenedTable, request: WriteRequest) -> TableCommit:
    """The commit of a write, before it is looked for."""
    commit = opened.table.new_commit(request.commit_user, request.commit_identifier).properties(request.properties)
    if request.ignores_empty is not None:
        commit = commit.ignore_empty(request.ignores_empty)
    if request.mode == "overwrite":
        return commit.overwrite(request.partition or {})
    return commit.overwrite(dynamic=True) if request.mode == "overwrite_partitions" else commit


class _Write:
    """One write on a pinned version: every task starts from the same snapshot."""

    def __init__(
        self,
        spark: SparkSession,
        opened: OpenedTable,
        schema: TableSchema,
        commit: TableCommit,
        snapshot: Snapshot | None,
        request: WriteRequest,
        missing: str,
        watermark_of: Callable[[], int | None] | None,
    ) -> None:
        job = opened.home.ids.uuid().replace("-", "")
        home = replace(opened.home, ids=PrefixedIds(job))
        self._opened_home = opened.home
        self._now_ms = opened.home.clock.now_ms()
        self._extra = opened.extra
        self._spark = spark
        self._home = home
        self._schema = schema
        self._commit = commit
        self._snapshot = snapshot
        self._request = request
        self._missing = missing
        self._table_uuid = opened.uuid
        self._job = WriteJob(spark, home, schema, self._commit, job, watermark_of)
        self._most = request.parallelism or _TASKS_PER_CORE * default_parallelism(spark)
        self._one_row_per_key = one_row_per_key(schema, request)

    def run(self, df: DataFrame) -> Snapshot | None:
        """Routes, writes and commits."""
        fixed = partition_spec(self._request.partition or {}, self._schema)
        rows = matched(
            df, self._schema, fixed=fixed, kinds=self._request.kinds, missing=self._missing, now_ms=self._now_ms
        )
        if bucket_mode(self._schema) is BucketMode.KEY_DYNAMIC:
            rows = replace(rows, frame=self._name_partitions(rows.frame))
        base = PinnedVersion.shared(
            self._home, self._schema, self._snapshot, self._commit.replaces, table_uuid=self._table_uuid
        )
        made, messages = self._written(rows, base)
        runs_of = base.sequences.runs if base.sequences is not None else lambda _: 0
        compact, looks = _compacting(self._spark, self._opened_home), self._request.looks
        after = AfterWrite(self._home, self._schema, self._commit, compact, self._extra, looks)
        return after.run(made, messages, runs_of)

    def _written(self, rows: Matched, base: PinnedVersion) -> tuple[Snapshot | None, tuple[CommitMessage, ...]]:
        task = WriteTask(
            self._home,
            self._schema,
            self._commit.replaces,
            base,
            kinds=rows.kinds,
            missing=self._missing,
            one_row_per_key=self._one_row_per_key,
            in_key_order=bucket_mode(self._schema) is BucketMode.POSTPONE_MODE,
            now_ms=self._now_ms,
        )
        match bucket_mode(self._schema):
            case BucketMode.HASH_DYNAMIC:
                return self._run_placed(self._assigned(rows.frame), task)
            case BucketMode.KEY_DYNAMIC:
                return self._run_placed(self._crossed(rows), task)
            case _:
                return self._job.run(self._routed(rows.frame), task)

    def _run_placed(self, routed: Routed, task: WriteTask) -> tuple[Snapshot | None, tuple[CommitMessage, ...]]:
        return self._job.run(routed.frame, replace(task, carried=routed.carried, placer_of=routed.placer_of))

    def _assigned(self, frame: DataFrame) -> Routed:
        fresh = self._commit.replaces is not None
        table = AssigningTable.of(self._home, self._schema, self._snapshot, fresh=fresh)
        return assigned(frame, table, self._request.parallelism)

    def _crossed(self, rows: Matched) -> Routed:
        table = CrossingTable(self._home, self._schema, self._snapshot, self._commit.replaces, self._job.job)
        return crossed(
            rows.frame,
            table,
            kinds=rows.kinds,
            one_row_per_key=self._one_row_per_key,
            parallelism=self._request.parallelism,
        )

    def _name_partitions(self, frame: DataFrame) -> DataFrame:
        """Names the partitions that a dynamic overwrite replaces, where rows may also be deleted from partitions that are kept.

        The rows are kept on the executors meanwhile: a frame that gives others the second time would empty partitions and
        fill others. Rows that are lost with an executor fail the job, unlike those of a cache.
        """
        replaces = self._commit.replaces
        if replaces is None or replaces.partition is not None:
            return frame
        with readable(f"looking for the partitions to replace in {self._home.where(self._home.paths.root)}"):
            kept = frame.localCheckpoint()
            named = Overwrite(None, partitions_of(kept, self._schema))
        self._commit = replace(self._commit, replaces=named)
        self._job = replace(self._job, commit=self._commit)
        return kept

    def _routed(self, frame: DataFrame) -> DataFrame:
        match bucket_mode(self._schema):
            case BucketMode.BUCKET_UNAWARE:
                return self._gathered(frame)
            case BucketMode.POSTPONE_MODE:
                return self._in_key_order(frame) if self._one_row_per_key else self._bounded(frame)
            case _:
                channels = self._channels()
                return frame.repartitionById(channels, channel_expression(self._schema, channels))

    def _gathered(self, frame: DataFrame) -> DataFrame:
        """The rows of a partition in as few tasks as their size allows, so that there are few files."""
        if not self._schema.partition_keys or self._request.parallelism is not None:
            return self._bounded(frame)
        return frame.hint("rebalance", *map(column_named, self._schema.partition_keys))

    def _bounded(self, frame: DataFrame) -> DataFrame:
        return frame if self._request.parallelism is None else frame.coalesce(self._request.parallelism)

    def _in_key_order(self, frame: DataFrame) -> DataFrame:
        """Rows of one key side by side. The hash goes first: Spark takes -0.0 and 0.0 for one value, their hashes differ."""
        keys = [(column_named(name), self._schema.field(name).type) for name in self._schema.primary_keys]
        found = row_hash(keys)
        routed = frame.repartitionById(self._most, F.pmod(found, F.lit(self._most)))
        return routed.sortWithinPartitions(found, *(column for column, _ in keys))

    def _channels(self) -> int:
        buckets = TableOptions(self._schema.options).get(BUCKET)
        return self._most if self._schema.partition_keys else min(self._most, max(1, buckets))
