"""Check a pipeline before anything runs: every query is analysed, and its columns and types are compared with its target."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import types as T

from lakelet.pipeline.definition import Flow, Table
from lakelet.spark.pipeline.frames import Frames
from lakelet.spark.pipeline.table_target import TableTarget
from lakelet.spark.pipeline.workspace import Workspace


@dataclass(frozen=True, slots=True)
class CheckedFlow:
    """A flow with the columns that it gives."""

    flow: Flow
    columns: T.StructType


def check_run(work: Workspace, flows: tuple[Flow, ...]) -> list[CheckedFlow]:
    """The flows with their columns; an error of Lakelet's names the file and the line of the first that does not fit."""
    planned: dict[str, T.StructType] = {}
    frames = Frames(work, planned)
    found = []
    try:
        for flow in flows:
            frame = frames.of_step(flow.step, work.graph.of_flow(flow), f"flow {flow.name!r}")
            table = work.graph.table(flow.target)
            if table is not None:
                planned[table.name.lower()] = _columns(work, table, frame)
            found.append(CheckedFlow(flow, frame.schema))
    finally:
        frames.close()
    return found


def _columns(work: Workspace, table: Table, frame: object) -> T.StructType:
    return TableTarget(work, table).check(frame)  # type: ignore[arg-type]
