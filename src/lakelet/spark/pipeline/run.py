"""`ls.run_pipeline`: run the flows of a pipeline in order, each after those that fill what it reads.

    check everything ─ lock ─ for each flow: the generation of its target ─ create its table ─ write, with retries ─ log

A flow that fails ends with its error; flows that read what it fills are skipped, the others run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from lakelet.errors import InvalidError
from lakelet.pipeline.definition import Flow, Pipeline, Table
from lakelet.pipeline.event_log import Event, EventLog
from lakelet.pipeline.graph import Graph
from lakelet.pipeline.state import FOLDER, PipelineState
from lakelet.spark.opened_lake import open_lake
from lakelet.spark.pipeline.check_run import CheckedFlow, check_run
from lakelet.spark.pipeline.flow.flow_result import FlowReport, FlowResult, Listener, Outcome, RunResult
from lakelet.spark.pipeline.flow.flow_run import FlowRun
from lakelet.spark.pipeline.workspace import Workspace
from lakelet.spark.workers import prepare_workers
from lakelet.storage.open import open_store

DEFAULT_WAREHOUSE = "./warehouse"
Functions = Mapping[tuple[str, str], Callable[..., Any]]


def run_pipeline(
    spark: SparkSession,
    pipeline: Pipeline,
    warehouse: str | os.PathLike[str] | None = None,
    *,
    select: Sequence[str] = (),
    full_refresh: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    functions: Functions | None = None,
    listener: Listener | None = None,
) -> RunResult:
    """Runs a pipeline once: streaming tables take what is new, materialized views are computed anew where their inputs changed.

    `select` names tables and sinks; `orders+` takes what is made of orders as well, `+orders` what orders is made of. Those of
    `full_refresh` (in the same spelling; "*" for all) are emptied and filled from the beginning; without `select` only they run.
    A failed flow is in the result, and does not raise.
    """
    work = workspace(spark, pipeline, warehouse, options, functions)
    refreshed = [] if "*" in full_refresh else list(full_refresh)
    flows = work.graph.selected([*select, *refreshed])
    anew = flows if "*" in full_refresh else work.graph.selected(refreshed) if refreshed else ()
    _check_refresh(work.graph, {flow.target.lower() for flow in anew})
    check_run(work, flows, {flow.target.lower() for flow in anew})
    prepare_workers(spark)
    state = state_of(work)
    with state.locked(f"pipeline {pipeline.name}"):
        return _Run(work, state, listener).run(flows, {flow.target.lower() for flow in anew})


def dry_run_pipeline(
    spark: SparkSession,
    pipeline: Pipeline,
    warehouse: str | os.PathLike[str] | None = None,
    *,
    select: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    functions: Functions | None = None,
) -> list[CheckedFlow]:
    """Checks names, types, columns and options of a pipeline, and that its streams can be written. Nothing is written; files
    without a schema are read for their columns."""
    work = workspace(spark, pipeline, warehouse, options, functions)
    state_of(work)
    return check_run(work, work.graph.selected(select))


def _check_refresh(graph: Graph, anew: set[str]) -> None:
    """InvalidError where a table is filled from the beginning and another, which took its rows as a stream, is not."""
    for flow in graph.pipeline.flows:
        if flow.target.lower() in anew:
            continue
        for one in graph.stored_inputs(flow):
            if one.streaming and isinstance(one.dataset, Table) and one.dataset.name.lower() in anew:
                raise InvalidError(
                    f"{flow.place}: flow {flow.name!r} reads STREAM({one.name}) and would get all rows once more: refresh "
                    f"{flow.target} as well (--full-refresh {one.dataset.name}+)"
                )


def workspace(
    spark: SparkSession,
    pipeline: Pipeline,
    warehouse: str | os.PathLike[str] | None,
    options: Mapping[str, str] | None,
    functions: Functions | None,
) -> Workspace:
    """What a run works with."""
    where = warehouse if warehouse is not None else pipeline.warehouse or DEFAULT_WAREHOUSE
    given = {**pipeline.options, **(options or {})}
    return Workspace(spark, Graph.of(pipeline), open_lake(where, given), given, functions or {})


def state_of(work: Workspace) -> PipelineState:
    """The state folder; InvalidError where there is none that both Spark and this process reach."""
    folder = work.pipeline.state or f"{work.warehouse}/{FOLDER}/{work.pipeline.name}"
    if folder.startswith(("s3://", "s3a://")):
        # Spark's own file systems know buckets as s3a.
        folder = f"s3a://{folder.split('://', 1)[1]}"
    elif "://" in folder and not folder.startswith("file://"):
        raise InvalidError(f"{work.pipeline.place}: state {folder!r}: expected a folder or a bucket")
    connection = {key: text for key, text in work.options.items() if key.startswith("s3.")}
    return PipelineState(open_store(folder, connection), work.ids)


class _Run:
    """One run: flows one after the other, and the log of what became of them."""

    def __init__(self, work: Workspace, state: PipelineState, listener: Listener | None) -> None:
        self._work = work
        self._state = state
        self._tell = listener or (lambda report: None)
        self._run_id = work.ids.uuid()
        self._failed: set[str] = set()
        self._log = EventLog(work.lake, work.pipeline.database, work.pipeline.name)
        self._pending: list[Event] = []

    def run(self, flows: tuple[Flow, ...], anew: set[str]) -> RunResult:
        """The result of every flow; an interrupted run is logged as failed."""
        started = self._work.clock.monotonic()
        self._log.create()
        self._log.write(self._run_id, [Event("started", details={"flows": [flow.name for flow in flows]})])
        made: list[FlowResult] = []
        try:
            runs = FlowRun(self._work, self._state, anew, self._report)
            for flow in flows:
                made.append(self._result(flow, runs))
                self._log.write(self._run_id, self._pending)
                self._pending.clear()
        except BaseException as error:
            seconds = self._work.clock.monotonic() - started
            ended = Event("failed", seconds=seconds, details={"error": type(error).__name__})
            self._log.write(self._run_id, [*self._pending, ended])
            raise
        result = RunResult(self._run_id, tuple(made))
        event = "completed" if result.error is None else "failed"
        self._log.write(self._run_id, [Event(event, seconds=self._work.clock.monotonic() - started)])
        return result

    def _result(self, flow: Flow, runs: FlowRun) -> FlowResult:
        self._report(FlowReport(flow.name, flow.target, "started"))
        blocked = self._failed & (self._work.graph.upstream(flow.target) | {flow.target.lower()})
        if blocked:
            reason = f"{', '.join(sorted(blocked))} failed"
            made = FlowResult(flow.name, flow.target, Outcome.SKIPPED, reason=reason)
        else:
            made = runs.run(flow)
        if made.outcome in (Outcome.FAILED, Outcome.SKIPPED):
            self._failed.add(flow.target.lower())
        self._report(FlowReport(flow.name, flow.target, made.outcome.value, made.rows, result=made))
        return made

    def _report(self, report: FlowReport) -> None:
        self._tell(report)
        if report.event == "progress":
            return
        details: dict[str, Any] = {} if report.message is None else {"message": report.message}
        made = report.result
        if made is not None:
            details |= {"unmet": dict(made.unmet)} if made.unmet else {}
            details |= {"reason": made.reason} if made.reason else {}
            details |= {"error": type(made.error).__name__, "message": str(made.error)} if made.error else {}
        self._pending.append(
            Event(
                report.event,
                report.flow,
                report.target,
                report.rows,
                None if made is None else made.seconds,
                None if made is None else made.attempts,
                details,
                self._work.lake.now_ms(),
            )
        )
