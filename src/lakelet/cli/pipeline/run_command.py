"""`lakelet pipeline run` and `dry-run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import typer

from lakelet.cli.call import DEFAULT_WAREHOUSE, Call
from lakelet.cli.deferred_pandas import defer_pandas
from lakelet.cli.output.output import Output
from lakelet.clock import Clock, SystemClock
from lakelet.error_codes import codes_of
from lakelet.errors import InvalidError
from lakelet.pipeline import Pipeline, load
from lakelet.pipeline.python_file import load_functions

_EVERY_SECONDS = 5.0

if TYPE_CHECKING:
    from lakelet.spark.pipeline.flow.flow_result import FlowReport, RunResult


@dataclass(frozen=True, slots=True)
class PipelineCall:
    """The arguments that the commands have in common."""

    call: Call
    pipeline: Pipeline
    functions: Mapping[tuple[str, str], Any]
    master: str | None
    remote: str | None
    settings: Mapping[str, str]

    @staticmethod
    def of(
        call: Call,
        file: str,
        parameters: Mapping[str, str],
        environment: str | None,
        code: Sequence[str] | None,
        master: str | None,
        remote: str | None,
        settings: Mapping[str, str],
    ) -> PipelineCall:
        """The pipeline of a file; nothing runs yet."""
        if master is not None and remote is not None:
            raise typer.BadParameter("expected --master or --remote, found both", param_hint="'--remote'")
        found = load(file, parameters, environment)
        return PipelineCall(call, found, load_functions(code or []), master, remote, {**found.spark, **settings})

    @property
    def warehouse(self) -> str:
        """The one given, else that of the pipeline."""
        return warehouse_of(self.call, self.pipeline)

    def session(self) -> AbstractContextManager[Any]:
        """The Spark session of a run."""
        if find_spec("pyspark") is None:
            raise InvalidError("pipelines run on Spark: pip install 'lakelet[spark]'")
        defer_pandas()
        from lakelet.spark.pipeline.session import pipeline_session  # noqa: PLC0415 - it loads pyspark.

        return pipeline_session(self.pipeline.name, self.master, self.remote, self.settings)


def warehouse_of(call: Call, pipeline: Pipeline) -> str:
    """The warehouse that is given, else that of the pipeline, else the default one."""
    return call.warehouse if call.warehouse != DEFAULT_WAREHOUSE else pipeline.warehouse or call.warehouse


def run_command(asked: PipelineCall, select: Sequence[str], full_refresh: Sequence[str]) -> None:
    """Runs a pipeline and shows what became of each flow; the exit code is that of the first failure."""
    output = asked.call.output
    with asked.session() as spark:
        from lakelet.spark.pipeline.run import run_pipeline  # noqa: PLC0415

        made = run_pipeline(
            spark,
            asked.pipeline,
            asked.warehouse,
            select=select,
            full_refresh=full_refresh,
            options=asked.call.options,
            functions=asked.functions,
            listener=ShownRun(output).report,
        )
    _show(output, asked.pipeline.name, made)
    if made.error is not None:
        raise typer.Exit(codes_of(made.error).exit_status)


def dry_run_command(asked: PipelineCall, select: Sequence[str]) -> None:
    """Checks a pipeline and shows the columns of each flow."""
    with asked.session() as spark:
        from lakelet.spark.pipeline.run import dry_run_pipeline  # noqa: PLC0415

        checked = dry_run_pipeline(
            spark,
            asked.pipeline,
            asked.warehouse,
            select=select,
            options=asked.call.options,
            functions=asked.functions,
        )
    rows = [
        (
            one.flow.name,
            one.flow.target,
            one.flow.kind.value,
            ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in one.columns),
        )
        for one in checked
    ]
    asked.call.output.rows(f"{asked.pipeline.name}: nothing was written", ("flow", "target", "kind", "columns"), rows)


def backfill_command(asked: PipelineCall, table: str, column: str, start: str | None, end: str | None) -> None:
    """Computes a range of a table and shows how many rows it has."""
    with asked.session() as spark:
        from lakelet.spark.pipeline.backfill import backfill_pipeline  # noqa: PLC0415
        from lakelet.spark.pipeline.flow.flow_result import RunResult  # noqa: PLC0415

        made = backfill_pipeline(
            spark,
            asked.pipeline,
            table,
            column=column,
            start=start,
            end=end,
            warehouse=asked.warehouse,
            options=asked.call.options,
            functions=asked.functions,
        )
    _show(asked.call.output, asked.pipeline.name, RunResult("backfill", (made,)))


def _show(output: Output, name: str, made: RunResult) -> None:
    columns = ("flow", "target", "outcome", "rows", "unmet expectations", "attempts", "seconds")
    rows = [
        (
            one.flow,
            one.target,
            one.outcome.value,
            one.rows,
            ", ".join(f"{key}: {count}" for key, count in one.unmet.items() if count) or None,
            one.attempts,
            round(one.seconds, 2),
        )
        for one in made.flows
    ]
    output.rows(f"{name}, run {made.run_id}", columns, rows)


class ShownRun:
    """Reports of a run as lines: each flow as it begins, how far a long one is, and errors as those of commands."""

    def __init__(self, output: Output, clock: Clock | None = None) -> None:
        self._output = output
        self._clock = clock or SystemClock()
        self._rows: dict[str, int] = {}
        self._shown = self._clock.monotonic()

    def report(self, report: FlowReport) -> None:
        """At most one line."""
        flow = _plain(report.flow)
        if report.result is not None and report.result.error is not None:
            self._output.error(type(report.result.error).__name__, str(report.result.error))
        elif report.event == "started":
            self._shown = self._clock.monotonic()
            self._output.note(f"{flow} …")
        elif report.event == "retried":
            self._output.note(f"{flow}: trying again, for {_plain(report.message or 'it failed')}")
        elif report.event == "progress" and report.rows and self._is_due(report.flow, report.rows):
            self._output.note(f"{flow}: {report.rows:,} rows so far")

    def _is_due(self, flow: str, rows: int) -> bool:
        now = self._clock.monotonic()
        if rows == self._rows.get(flow) or now < self._shown + _EVERY_SECONDS:
            return False
        self._rows[flow], self._shown = rows, now
        return True


def _plain(text: str) -> str:
    """Text in which Rich finds no markup."""
    return text.replace("[", "\\[")
