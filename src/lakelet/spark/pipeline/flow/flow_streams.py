"""The streams that a flow reads, compared with those that its checkpoint is of.

Spark keeps offsets by the position of a stream in the query. After one was added, removed or exchanged for another the offsets
would be of other streams: rows would be left out or read twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakelet.errors import InvalidError
from lakelet.pipeline.definition import ICEBERG, Source, Table
from lakelet.pipeline.graph import Graph, Input
from lakelet.spark.pipeline.flow.flow_write import FlowWrite

Stream = dict[str, str]


def check_streams(write: FlowWrite) -> None:
    """InvalidError where a flow reads other streams than when its checkpoint began; those of a new one are noted."""
    flow, now = write.flow, streams_of(write.work.graph, write.work.graph.stored_inputs(write.flow))
    before = write.state.streams(flow.target, write.generation, flow.name)
    if before is not None and (len(before) != len(now) or not all(map(_is_same, before, now))):
        raise InvalidError(
            f"its checkpoint is of the streams {_shown(before)}, and it reads {_shown(now)} now: --full-refresh {flow.target} "
            "fills the target from the beginning, and a flow of its own takes what is new"
        )
    if before != now:
        write.state.put_streams(flow.target, write.generation, flow.name, now)


def streams_of(graph: Graph, inputs: Sequence[Input]) -> list[Stream]:
    """What is read as a stream, in order."""
    return [_stream(graph, one) for one in inputs if one.streaming]


def _stream(graph: Graph, one: Input) -> Stream:
    match one.dataset:
        case Table():
            return {"format": one.dataset.format, "name": graph.pipeline.stored_name(one.dataset).lower(), "path": ""}
        case Source(table=str(table)):
            return {"format": one.dataset.format, "name": table.lower(), "path": ""}
        case Source():
            return {
                "format": one.dataset.format.lower(),
                "name": one.dataset.name.lower(),
                "path": ", ".join(one.dataset.path),
            }
        case _:
            form = ICEBERG if one.name.count(".") == 2 else "lakelet"
            return {"format": form, "name": one.name.lower(), "path": ""}


def _is_same(one: Stream, other: Stream) -> bool:
    """A source may get another name or another path, and is another one with both."""
    if one["format"] != other["format"]:
        return False
    return one["name"] == other["name"] or bool(one["path"] and one["path"] == other["path"])


def _shown(streams: Sequence[Stream]) -> str:
    return ", ".join(f"{one['name']} ({one['format']})" for one in streams)
