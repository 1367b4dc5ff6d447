"""Flows into sinks: any format of Spark's, at least once."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Observation

from lakelet.pipeline.definition import FlowKind, Sink
from lakelet.spark.pipeline.flow.flow_write import FlowWrite, Written, observed
from lakelet.spark.pipeline.flow.stream_flow import OBSERVED, finished


def write_sink(write: FlowWrite, sink: Sink) -> Written:
    """Writes what is new, or, for a flow that runs once, everything."""
    if write.flow.kind is FlowKind.ONCE:
        return _write_once(write, sink)
    expectations = write.expectations
    rows = expectations.met(write.frame, OBSERVED if expectations.listed else None)
    writer: Any = rows.writeStream.format(sink.format).options(**sink.options)
    writer = writer.option("checkpointLocation", write.checkpoint).queryName(write.user)
    seen = finished(write, writer.trigger(availableNow=True).start())
    return _written(write, seen.total(), sum(seen.rows.values()))


def _write_once(write: FlowWrite, sink: Sink) -> Written:
    if write.is_done:
        return Written(is_up_to_date=True)
    observation = Observation() if write.expectations.listed else None
    rows = write.expectations.met(write.frame, observation)
    rows.write.format(sink.format).options(**sink.options).mode("append").save()
    write.set_done()
    return _written(write, {} if observation is None else observed(observation), None)


def _written(write: FlowWrite, counts: dict[str, int], rows: int | None) -> Written:
    return Written(counts.get("rows", rows), write.expectations.counted(counts) if counts else {})
