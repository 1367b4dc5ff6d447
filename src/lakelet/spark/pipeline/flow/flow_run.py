"""Run one flow: the generation of its target, its table, its rows, and attempts until one succeeds.

What may succeed later (a store that did not answer, another writer's commit) is tried again with growing pauses, as often as
the flow says; a query or a row that is wrong is not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from lakelet.errors import CommitUnknownError, ConflictError, InvalidError, LakeletError, UnavailableError
from lakelet.pipeline.definition import ICEBERG, LAKELET, Flow, FlowKind
from lakelet.pipeline.state import Generation, PipelineState
from lakelet.spark.pipeline.expectations import Expectations
from lakelet.spark.pipeline.flow.batch_flow import digest_of, is_up_to_date, write_once, write_view
from lakelet.spark.pipeline.flow.cdc_flow import apply_changes
from lakelet.spark.pipeline.flow.flow_result import FlowReport, FlowResult, Listener, Outcome
from lakelet.spark.pipeline.flow.flow_streams import check_streams
from lakelet.spark.pipeline.flow.flow_write import FlowWrite, Written
from lakelet.spark.pipeline.flow.sink_flow import write_sink
from lakelet.spark.pipeline.flow.stream_flow import append_stream
from lakelet.spark.pipeline.frames import Frames
from lakelet.spark.pipeline.spark_errors import at_place
from lakelet.spark.pipeline.target.stored_target import StoredTarget, target_of
from lakelet.spark.pipeline.target.table_target import TableTarget
from lakelet.spark.pipeline.workspace import Workspace

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0
# A commit of unknown outcome is found, or made, by the next attempt: each has an identity, or replaces all rows.
_AGAIN = (UnavailableError, ConflictError, CommitUnknownError)


@dataclass(slots=True)
class FlowRun:
    """Runs flows; targets of `anew` begin a generation with their first flow."""

    work: Workspace
    state: PipelineState
    anew: set[str]
    report: Listener
    begun: dict[str, Generation] = field(default_factory=dict)

    def run(self, flow: Flow) -> FlowResult:
        """The result of a flow after as many attempts as it takes or has."""
        started = self.work.clock.monotonic()
        most = 1 + (self.work.pipeline.retries if flow.retries is None else flow.retries)
        for attempt in range(1, most + 1):
            try:
                made = self._written(flow)
            except LakeletError as error:
                if attempt < most and isinstance(error, _AGAIN):
                    pause = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2 ** (attempt - 1))
                    self.report(FlowReport(flow.name, flow.target, "retried", message=str(error)))
                    self.work.clock.sleep(pause * (0.5 + self.work.ids.jitter() / 2))
                    continue
                return FlowResult(
                    flow.name, flow.target, Outcome.FAILED, self._since(started), attempts=attempt, error=error
                )
            outcome = Outcome.UP_TO_DATE if made.is_up_to_date else Outcome.COMPLETED
            return FlowResult(flow.name, flow.target, outcome, self._since(started), made.rows, made.unmet, attempt)
        raise AssertionError("the last attempt returns")

    def _since(self, started: float) -> float:
        return self.work.clock.monotonic() - started

    def _written(self, flow: Flow) -> Written:
        frames = Frames(self.work)
        what = f"flow {flow.name!r}"
        try:
            # What a view reads is looked up before its frame pins it: a change in between is seen by the next run.
            digest = digest_of(self.work, flow) if flow.kind is FlowKind.COMPLETE else None
            table = self.work.graph.table(flow.target)
            is_anew = flow.target.lower() in self.anew
            target = None if table is None or table.format != LAKELET else TableTarget(self.work, table)
            if target is not None and not is_anew and is_up_to_date(target, digest):
                return Written(is_up_to_date=True)
            frame = frames.of_step(flow.step, self.work.graph.of_flow(flow), what)
            with at_place(flow.place, what):
                generation = self._generation(flow, frame)
                write = FlowWrite(
                    *(self.work, flow, frame, self.state, generation),
                    Expectations.of(self.work, flow),
                    lambda rows: self.report(FlowReport(flow.name, flow.target, "progress", rows)),
                )
                if flow.kind in (FlowKind.APPEND, FlowKind.CDC):
                    check_streams(write)
                return self._write(write, digest)
        finally:
            frames.close()

    def _write(self, write: FlowWrite, digest: str | None) -> Written:
        sink = self.work.graph.sink(write.flow.target)
        if sink is not None:
            return write_sink(write, sink)
        table = self.work.graph.table(write.flow.target)
        if table is not None and table.format == ICEBERG:
            from lakelet.spark.pipeline.target.iceberg_target import IcebergTarget  # noqa: PLC0415 - pyiceberg loads with it, and need not be there.

            return IcebergTarget(self.work, table).write(write)
        match write.flow.kind:
            case FlowKind.COMPLETE:
                return write_view(write, digest)
            case FlowKind.ONCE:
                return write_once(write)
            case FlowKind.CDC:
                return apply_changes(write)
            case FlowKind.APPEND:
                return append_stream(write)

    def _generation(self, flow: Flow, frame: DataFrame) -> Generation:
        """The generation that a flow fills, begun where the target has none, is refreshed, or was dropped; its table is there."""
        name = flow.target.lower()
        if name not in self.begun:
            table = self.work.graph.table(flow.target)
            if table is None:
                self.begun[name] = self._of_sink(name)
            else:
                self.begun[name] = self._of_table(name, flow, target_of(self.work, table), frame)
        return self.begun[name]

    def _of_sink(self, name: str) -> Generation:
        before = self.state.generation(name)
        if before is not None and name not in self.anew:
            return before
        made = self.state.begin(name, None, None)
        if before is not None:
            self.state.forget(name, before)
        return made

    def _of_table(self, name: str, flow: Flow, target: StoredTarget, frame: DataFrame) -> Generation:
        if flow.kind is FlowKind.COMPLETE:
            # Its rows are replaced as a whole; nothing is remembered between runs.
            target.create(frame)
            if name in self.anew:
                target.fit(frame)
            return Generation("")
        before = self.state.generation(name)
        if before is not None and before.refreshing:
            before = self.state.finish(name, before, lambda: target.reset(frame))
        elif self._begins(name, before, target):
            # Marked first: a table that was created anew, and no generation yet, would be taken for another one's.
            made = self.state.begin(name, None, lambda: target.reset(frame))
            if before is not None:
                self.state.forget(name, before)
            return made
        elif before is None:
            target.create(frame)
            return self.state.begin(name, target.uuid(), None)
        target.create(frame)
        found = target.uuid()
        if before.table is not None and found is not None and before.table != found:
            raise InvalidError(
                f"table {target.name!r} is not the one that this pipeline filled, which was dropped: expected {before.table}, "
                f"found {found}; --full-refresh {flow.target} fills it from the beginning"
            )
        return before

    def _begins(self, name: str, before: Generation | None, target: StoredTarget) -> bool:
        """Whether rows of an earlier filling, in the table or those beside it, have to go first."""
        if name in self.anew:
            return before is not None or bool(target.present())
        return not target.exists() and (before is not None or bool(target.present()))
