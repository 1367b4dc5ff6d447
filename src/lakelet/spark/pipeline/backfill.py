"""`ls.backfill_pipeline`: compute a range of a table again from all that its sources hold now.

The flows of the table are run over whole inputs, their rows restricted to the range, and written in one commit: rows of a
table with a primary key replace those of their keys, others replace the partitions of the range. Checkpoints stay as they are.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import reduce

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from lakelet.errors import InvalidError, NotFoundError
from lakelet.model.near_names import nearest
from lakelet.pipeline.definition import LAKELET, Flow, Pipeline, Table
from lakelet.pipeline.event_log import Event, EventLog
from lakelet.pipeline.state import Generation
from lakelet.spark.column_names import column_named
from lakelet.spark.opened_table import open_table
from lakelet.spark.pipeline.expectations import Expectations
from lakelet.spark.pipeline.flow.cdc_flow import cdc_tables
from lakelet.spark.pipeline.flow.flow_result import FlowResult, Outcome
from lakelet.spark.pipeline.flow.flow_write import FlowWrite, Written, observed
from lakelet.spark.pipeline.flow.stream_flow import counted
from lakelet.spark.pipeline.frames import Frames
from lakelet.spark.pipeline.run import Functions, state_of, workspace
from lakelet.spark.pipeline.spark_errors import at_place
from lakelet.spark.pipeline.target.table_target import TableTarget
from lakelet.spark.pipeline.workspace import Workspace
from lakelet.spark.read.table_frame import table as table_frame
from lakelet.spark.stream.write.batch import write_batch
from lakelet.spark.write.table_write import write_frame
from lakelet.spark.write.write_request import WriteRequest


def backfill_pipeline(
    spark: SparkSession,
    pipeline: Pipeline,
    table: str,
    *,
    column: str,
    start: str | None = None,
    end: str | None = None,
    warehouse: str | os.PathLike[str] | None = None,
    options: Mapping[str, str] | None = None,
    functions: Functions | None = None,
) -> FlowResult:
    """Computes the rows of a table whose `column` is from `start` on and below `end`, and writes them in one commit."""
    work = workspace(spark, pipeline, warehouse, options, functions)
    found = work.graph.table(table)
    if found is None:
        known = [one.name for one in pipeline.tables]
        raise NotFoundError(f"{pipeline.place}: there is no table {table!r}{nearest(table, known)}")
    if start is None and end is None:
        raise InvalidError("a backfill has a range: expected a start, an end, or both")
    with state_of(work).locked(f"pipeline {pipeline.name}"):
        began = work.clock.monotonic()
        log = EventLog(work.lake, pipeline.database, pipeline.name)
        made = _Backfill(work, found, column, start, end).run()
        seconds = work.clock.monotonic() - began
        log.create()
        bounds = {"column": column, "from": start, "to": end, "unmet": dict(made.unmet)}
        log.write(work.ids.uuid(), [Event("backfilled", found.name, found.name, made.rows, seconds, 1, bounds)])
    return FlowResult(found.name, found.name, Outcome.COMPLETED, seconds, made.rows, made.unmet)


class _Backfill:
    def __init__(self, work: Workspace, table: Table, column: str, start: str | None, end: str | None) -> None:
        self._work = work
        self._table = table
        self._column = column
        self._start = start
        self._end = end
        self._target = TableTarget(work, table)

    def run(self) -> Written:
        if self._table.format != LAKELET or not self._target.exists():
            raise InvalidError(
                f"{self._table.place}: table {self._table.name!r}: a backfill is for a Lakelet table that is there"
            )
        frames = Frames(self._work, whole=True)
        flows = [one for one in self._work.pipeline.flows if one.target.lower() == self._table.name.lower()]
        what = f"backfill of {self._table.name!r}"
        try:
            with at_place(self._table.place, what):
                ranges = [
                    self._within(frames.of_step(flow.step, self._work.graph.of_flow(flow), what)) for flow in flows
                ]
                if flows[0].cdc is not None:
                    return self._apply_changes(flows[0], ranges[0])
                return self._replace(reduce(lambda one, other: one.unionByName(other), ranges))
        finally:
            frames.close()

    def _within(self, frame: DataFrame) -> DataFrame:
        """The rows of the range; InvalidError for a bound that the column's type cannot have."""
        if self._column not in frame.columns:
            raise InvalidError(f"there is no column {self._column!r}{nearest(self._column, frame.columns)}")
        kind = frame.schema[self._column].dataType
        for sign, bound in ((">=", self._start), ("<", self._end)):
            if bound is None:
                continue
            value = F.lit(bound).try_cast(kind)
            if self._work.spark.range(1).select(value).first()[0] is None:  # type: ignore[index]
                raise InvalidError(f"{bound!r} is no {kind.simpleString()}, which column {self._column!r} is")
            column = column_named(self._column)
            frame = frame.where(column >= value if sign == ">=" else column < value)
        return frame

    def _replace(self, rows: DataFrame) -> Written:
        schema = self._work.lake.table(self._target.name).schema
        if schema.primary_keys:
            mode = "upsert"
        elif self._column in schema.partition_keys:
            mode = "overwrite_partitions"
        else:
            raise InvalidError(
                f"the table has neither a primary key nor partitions by {self._column!r}, so that rows would be added twice"
            )
        expectations = Expectations(self._table.expectations, self._table.name)
        observation = Observation() if expectations.listed else None
        opened = open_table(self._work.warehouse, self._target.name, self._work.options)
        made = write_frame(expectations.met(rows, observation), opened, WriteRequest(mode))
        counts = {} if observation is None else observed(observation)
        if expectations.quarantines:
            self._set_aside(expectations.set_aside(rows))
        rows_written = 0 if made is None else made.delta_record_count
        return Written(counts.get("rows", rows_written), expectations.counted(counts) if counts else {})

    def _set_aside(self, rows: DataFrame) -> None:
        """Adds rows to the quarantine that are not there."""
        opened = open_table(self._work.warehouse, self._target.quarantine, self._work.options)
        write_frame(self._not_aside(rows), opened, WriteRequest("append"))

    def _not_aside(self, rows: DataFrame) -> DataFrame:
        """The rows that are not in quarantine: those of the range came through a flow before."""
        name, options = self._target.quarantine, self._work.options
        there = table_frame(rows.sparkSession, self._work.warehouse, name, options=options)
        known = ["reason", "row"]
        return rows.join(there.select(*known), known, "left_anti").select(*rows.columns)

    def _apply_changes(self, flow: Flow, changes: DataFrame) -> Written:
        generation = Generation(self._work.ids.uuid())
        write = FlowWrite(
            *(self._work, flow, changes, state_of(self._work), generation),
            Expectations.of(self._work, flow),
            lambda rows: None,
        )
        frame, counts = counted(write)
        tables = cdc_tables(write, counts)
        if counts.expectations.quarantines:
            tables[self._target.quarantine] = lambda batch: self._not_aside(counts.expectations.set_aside(batch))
        made = write_batch(
            frame,
            0,
            self._work.warehouse,
            tables,
            commit_user=write.user,
            mode="append",
            on_duplicate="any",
            driver_rows=counts.driver_rows,
            options=self._work.options,
        )
        snapshot = made.get(self._target.name) if isinstance(made, dict) else made
        return counts.written(0 if snapshot is None else snapshot.delta_record_count or 0)
