"""Check a pipeline before anything runs: every query is analysed, and its columns and types are compared with its target."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pyspark.sql import types as T

from lakelet.pipeline.definition import Flow
from lakelet.spark.pipeline.expectations import Expectations
from lakelet.spark.pipeline.frames import Frames
from lakelet.spark.pipeline.stored_target import target_of
from lakelet.spark.pipeline.workspace import Workspace


@dataclass(frozen=True, slots=True)
class CheckedFlow:
    """A flow with the columns that it gives."""

    flow: Flow
    columns: T.StructType


def check_run(work: Workspace, flows: tuple[Flow, ...], anew: Collection[str] = ()) -> list[CheckedFlow]:
    """The flows with their columns; an error of Lakelet's names the file and the line of the first that does not fit. Tables of
    `anew` are filled from the beginning, and may get other columns."""
    planned: dict[str, T.StructType] = {}
    frames = Frames(work, planned)
    found = []
    try:
        for flow in flows:
            frame = frames.of_step(flow.step, work.graph.of_flow(flow), f"flow {flow.name!r}")
            table = work.graph.table(flow.target)
            Expectations.of(work, flow).check(frame)
            if table is not None:
                planned[table.name.lower()] = target_of(work, table).check(frame, anew=flow.target.lower() in anew)
            found.append(CheckedFlow(flow, frame.schema))
    finally:
        frames.close()
    return found
