"""`ls.run_pipeline`: run the flows of a pipeline in order, each after those that fill what it reads.

    check everything ─ for each flow: create its table ─ write ─ report

A flow that fails ends with its error; flows that read what it fills are skipped, the others run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from lakelet.errors import LakeletError
from lakelet.pipeline.definition import Flow, FlowKind, Pipeline
from lakelet.pipeline.graph import Graph
from lakelet.spark.opened_lake import open_lake
from lakelet.spark.opened_table import open_table
from lakelet.spark.pipeline.check_run import CheckedFlow, check_run
from lakelet.spark.pipeline.flow_result import FlowReport, FlowResult, Listener, Outcome, RunResult
from lakelet.spark.pipeline.frames import Frames
from lakelet.spark.pipeline.spark_errors import at_place
from lakelet.spark.pipeline.table_target import TableTarget
from lakelet.spark.pipeline.workspace import Workspace
from lakelet.spark.write.table_write import write_frame
from lakelet.spark.write.write_request import WriteRequest

DEFAULT_WAREHOUSE = "./warehouse"


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What of a pipeline is run."""

    select: tuple[str, ...] = ()
    dry_run: bool = False
    functions: Mapping[tuple[str, str], Callable[..., Any]] = field(default_factory=dict)


def run_pipeline(
    spark: SparkSession,
    pipeline: Pipeline,
    warehouse: str | os.PathLike[str] | None = None,
    *,
    select: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    functions: Mapping[tuple[str, str], Callable[..., Any]] | None = None,
    listener: Listener | None = None,
) -> RunResult:
    """Runs a pipeline once: streaming tables take what is new, materialized views are computed anew.

    `select` names tables and sinks; `orders+` takes what is made of orders as well, `+orders` what orders is made of.
    """
    work = _workspace(spark, pipeline, warehouse, options, functions)
    flows = work.graph.selected(select)
    check_run(work, flows)
    return _Run(work, listener or (lambda report: None)).run(flows)


def dry_run_pipeline(
    spark: SparkSession,
    pipeline: Pipeline,
    warehouse: str | os.PathLike[str] | None = None,
    *,
    select: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    functions: Mapping[tuple[str, str], Callable[..., Any]] | None = None,
) -> list[CheckedFlow]:
    """Checks names, types, columns and options of a pipeline; nothing is written."""
    work = _workspace(spark, pipeline, warehouse, options, functions)
    return check_run(work, work.graph.selected(select))


def _workspace(
    spark: SparkSession,
    pipeline: Pipeline,
    warehouse: str | os.PathLike[str] | None,
    options: Mapping[str, str] | None,
    functions: Mapping[tuple[str, str], Callable[..., Any]] | None,
) -> Workspace:
    where = warehouse if warehouse is not None else pipeline.warehouse or DEFAULT_WAREHOUSE
    given = {**pipeline.options, **(options or {})}
    return Workspace(spark, Graph.of(pipeline), open_lake(where, given), given, functions or {})


class _Run:
    def __init__(self, work: Workspace, listener: Listener) -> None:
        self._work = work
        self._tell = listener
        self._run_id = work.ids.uuid()
        self._failed: set[str] = set()

    def run(self, flows: tuple[Flow, ...]) -> RunResult:
        return RunResult(self._run_id, tuple(self._result(flow) for flow in flows))

    def _result(self, flow: Flow) -> FlowResult:
        started = self._work.clock.monotonic()
        self._tell(FlowReport(flow.name, flow.target, "started"))
        blocked = self._failed & (self._work.graph.upstream(flow.target) | {flow.target.lower()})
        if blocked:
            made = FlowResult(flow.name, flow.target, Outcome.SKIPPED)
        else:
            made = self._attempt(flow, started)
        if made.outcome in (Outcome.FAILED, Outcome.SKIPPED):
            self._failed.add(flow.target.lower())
        self._tell(FlowReport(flow.name, flow.target, made.outcome.value, made.rows, result=made))
        return made

    def _attempt(self, flow: Flow, started: float) -> FlowResult:
        try:
            rows = self._write(flow)
        except LakeletError as error:
            seconds = self._work.clock.monotonic() - started
            return FlowResult(flow.name, flow.target, Outcome.FAILED, seconds, error=error)
        return FlowResult(flow.name, flow.target, Outcome.COMPLETED, self._work.clock.monotonic() - started, rows)

    def _write(self, flow: Flow) -> int | None:
        frames = Frames(self._work)
        try:
            what = f"flow {flow.name!r}"
            frame = frames.of_step(flow.step, self._work.graph.of_flow(flow), what)
            table = self._work.graph.table(flow.target)
            assert table is not None
            assert flow.kind is FlowKind.COMPLETE
            target = TableTarget(self._work, table)
            target.create(frame)
            with at_place(flow.place, what):
                opened = open_table(self._work.warehouse, target.name, self._work.options)
                made = write_frame(frame, opened, WriteRequest("overwrite"))
            return None if made is None else made.delta_record_count
        finally:
            frames.close()
