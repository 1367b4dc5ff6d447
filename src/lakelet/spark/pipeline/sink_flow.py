"""Flows into sinks: any format of Spark's, at least once."""

from __future__ import annotations

from typing import Any

from lakelet.pipeline.definition import FlowKind, Sink
from lakelet.spark.pipeline.flow_write import FlowWrite, Written
from lakelet.spark.pipeline.stream_flow import finish

_DONE = "done"


def write_sink(write: FlowWrite, sink: Sink) -> Written:
    """Writes what is new, or, for a flow that runs once, everything."""
    rows = write.expectations.met(write.frame, None)
    if write.flow.kind is FlowKind.ONCE:
        done = f"targets/{write.generation.id}-{write.flow.name.lower()}.{_DONE}"
        if write.state.store.head(done) is not None:
            return Written(is_up_to_date=True)
        rows.write.format(sink.format).options(**sink.options).mode("append").save()
        write.state.store.put(done, b"")
        return Written()
    writer: Any = rows.writeStream.format(sink.format).options(**sink.options)
    writer = writer.option("checkpointLocation", write.checkpoint).queryName(write.user)
    return Written(finish(write, writer.trigger(availableNow=True).start()))
