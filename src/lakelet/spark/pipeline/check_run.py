"""Check a pipeline before anything runs: every query is analysed, its columns and types are compared with its target, and a
stream is one whose rows, once given, stay: Spark refuses others only when the query starts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from lakelet.errors import InvalidError
from lakelet.pipeline.definition import Flow, FlowKind
from lakelet.spark.pipeline.expectations import Expectations
from lakelet.spark.pipeline.frames import Frames
from lakelet.spark.pipeline.spark_errors import at_place
from lakelet.spark.pipeline.target.stored_target import target_of
from lakelet.spark.pipeline.workspace import Workspace
from lakelet.spark.session import is_connect


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
            if flow.kind in (FlowKind.APPEND, FlowKind.CDC):
                with at_place(flow.place, f"flow {flow.name!r}"):
                    check_appends(work.spark, frame)
            table = work.graph.table(flow.target)
            Expectations.of(work, flow).check(frame)
            if table is not None:
                planned[table.name.lower()] = target_of(work, table).check(frame, anew=flow.target.lower() in anew)
            found.append(CheckedFlow(flow, frame.schema))
    finally:
        frames.close()
    return found


def check_appends(spark: SparkSession, frame: DataFrame) -> None:
    """InvalidError where a stream cannot be appended: an aggregation without a watermark, say, whose results change with every
    row. Over Spark Connect only the start of the query tells."""
    if not frame.isStreaming or is_connect(spark):
        return
    java: Any = spark._jvm
    checker = java.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    mode = java.org.apache.spark.sql.streaming.OutputMode.Append()
    try:
        checker.checkForStreaming(frame._jdf.queryExecution().analyzed(), mode)
    except AnalysisException as error:
        told = " ".join(str(error).split(" SQLSTATE:")[0].split())
        raise InvalidError(
            f"{told} A stream into a table or a sink appends rows that stay: give an aggregation a watermark, or make a "
            "materialized view of it"
        ) from None
