"""Write one batch of a stream into one table: look back, merge schemas, decide by size, write, commit.

look back ─┬─ committed earlier: its snapshot, and no job runs
           └─ new columns added ─ columns matched ─┬─ small: collected, written and committed by the driver
                                                   └─ large: `ls.write`'s tasks
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from lakelet.errors import ConflictError
from lakelet.model.snapshot import CommitKind, Snapshot
from lakelet.spark.call_sites import UnrecordedCallSites
from lakelet.spark.opened_table import OpenedTable, open_table
from lakelet.spark.stream.write.arrow_memory import give_back
from lakelet.spark.stream.write.background_compaction import compact_later
from lakelet.spark.stream.write.batch_identity import BatchIdentity
from lakelet.spark.stream.write.event_time import progress_watermark
from lakelet.spark.stream.write.schema_merge import merge_schema
from lakelet.spark.stream.write.sink_request import SinkRequest
from lakelet.spark.write.driver_rows import DriverRows, has_void
from lakelet.spark.write.driver_write import places_of, write_rows
from lakelet.spark.write.table_write import planned_commit, repeated, writable_schema, write_planned
from lakelet.spark.write.write_request import WriteRequest
from lakelet.table.write.table_commit import TableCommit

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class TableSink:
    """Writes batches into one table; what it learned about the size of one batch holds for the next."""

    warehouse: str | os.PathLike[str]
    name: str
    request: SinkRequest
    options: Mapping[str, str] | None = None
    branch: str | None = None
    # Where the query was started, if it has a watermark of its own, which is asked for at each batch. The session of a batch is a
    # copy that knows no queries.
    watermark_session: SparkSession | None = None
    driver: DriverRows = field(init=False)

    def __post_init__(self) -> None:
        self.driver = DriverRows(self.request.driver_rows, self.request.driver_bytes)

    def open(self) -> OpenedTable:
        """The table as it is now."""
        return open_table(self.warehouse, self.name, self.options, self.branch)

    @UnrecordedCallSites()
    def check(self, opened: OpenedTable, rows: DataFrame | None) -> None:
        """InvalidError for a table that takes no such batches, or whose columns do not fit those of `rows` where these are known
        beforehand."""
        request = self.request.of_batch(None, 0, None)
        schema = writable_schema(opened, request)
        if rows is None:
            return
        if self.request.watermark is not None:
            self.request.watermark.check(rows)
        if not self.request.merge_schema:
            places_of(rows.sparkSession, rows.schema, schema, request)

    def look_back(self, opened: OpenedTable, identity: BatchIdentity) -> PlannedBatch:
        """The write of a batch, or the snapshot that the same batch made earlier; no job runs."""
        request = self.request.of_batch(identity.user, identity.batch_id, identity.properties)
        commit, done = planned_commit(opened, request).look_back()
        if done is not None:
            identity.check_repeated(opened.home, done)
            _LOG.info("%s: batch %d of %s is committed already", opened.name, identity.batch_id, identity.user)
            done = repeated(opened, commit, done)
        return PlannedBatch(opened, request, commit, done)

    @UnrecordedCallSites()
    def write(self, rows: DataFrame, planned: PlannedBatch, query_id: str | None) -> Snapshot | None:
        """Writes the rows of a batch that the table does not have yet; None where there were none."""
        opened, request = planned.opened, planned.request
        rule = self.request.watermark
        if rule is not None:
            rule.check(rows)
        if self.request.merge_schema:
            fits = partial(places_of, rows.sparkSession, rows.schema, request=request)
            merge_schema(rows.sparkSession, rows.schema, opened, request.kinds, fits)
        schema = writable_schema(opened, request)
        places = places_of(rows.sparkSession, rows.schema, schema, request)
        commit = planned.commit
        if rule is None and self.watermark_session is not None:
            commit = commit.watermark(progress_watermark(self.watermark_session, query_id))
        collected = None
        if not has_void(rows.schema):
            collected = self.driver.collect(rows, f"collecting rows for {opened.name}")
        if collected is not None:
            if rule is not None:
                commit = commit.watermark(rule.of_rows(collected, rows.columns))
            made = write_rows(collected, places, opened, schema, request, commit)
        elif rule is None:
            made = write_planned(rows, opened, request, commit)
        else:
            observed, time = rule.observed(rows)
            made = write_planned(observed, opened, request, commit, time.watermark)
        planned.check_made(made)
        if made is not None and made.commit_kind is CommitKind.COMPACT:
            give_back()
        if self.request.compacts_after(int(request.commit_identifier or 0)):
            compact_later(opened)
        return made


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """A batch before it is written: `done` is the last snapshot that it made earlier, None where it is new."""

    opened: OpenedTable
    request: WriteRequest
    commit: TableCommit
    done: Snapshot | None

    def check_made(self, made: Snapshot | None) -> None:
        """ConflictError where the snapshot that was made under this identity since the look back is another query's."""
        if made is None or made.commit_user != self.commit.user or made.commit_kind is CommitKind.COMPACT:
            return
        if dict(made.properties or {}) != dict(self.request.properties or {}):
            raise ConflictError(
                f"{self.opened.name}: batch {made.commit_identifier} of {made.commit_user!r} was committed by another run "
                "meanwhile: two queries with one identity: give each a commit_user and a checkpoint of its own"
            )
