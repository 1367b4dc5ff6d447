"""What a picture of a graph shows: boxes in columns, each right of everything that it is made of, and the lines between them."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.pipeline.graph import Graph, Input


@dataclass(frozen=True, slots=True)
class Box:
    """A dataset: its key, the name and kind to show, and its column from the left."""

    key: str
    name: str
    kind: str
    column: int


@dataclass(frozen=True, slots=True)
class Line:
    """One dataset is made of another, by streams or as a whole; `flow` is named where it is not called like its target."""

    start: str
    end: str
    streaming: bool
    flow: str | None


@dataclass(frozen=True, slots=True)
class Drawing:
    """All boxes, by column and then in the order of the file, and all lines."""

    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]

    @property
    def columns(self) -> list[list[Box]]:
        """The boxes of each column."""
        most = max((box.column for box in self.boxes), default=-1)
        return [[box for box in self.boxes if box.column == column] for column in range(most + 1)]


def drawing_of(graph: Graph) -> Drawing:
    """The picture of a graph. Names of the warehouse and of Spark are boxes as well."""
    names: dict[str, tuple[str, str]] = {}
    pipeline = graph.pipeline
    for source in pipeline.sources:
        names[source.name.lower()] = (source.name, "source")
    for view in pipeline.views:
        names[view.name.lower()] = (view.name, "view")
    for table in pipeline.tables:
        names[table.name.lower()] = (table.name, "streaming table" if table.streaming else "materialized view")
    for sink in pipeline.sinks:
        names[sink.name.lower()] = (sink.name, "sink")
    lines: dict[tuple[str, str, bool], Line] = {}
    for view in pipeline.views:
        _add(lines, names, graph.of_view(view), view.name, None)
    for flow in pipeline.flows:
        named = None if flow.name.lower() == flow.target.lower() else flow.name
        _add(lines, names, graph.of_flow(flow), flow.target, named)
    columns = _columns(set(names), list(lines.values()))
    boxes = sorted((Box(key, *shown, columns[key]) for key, shown in names.items()), key=lambda box: box.column)
    return Drawing(tuple(boxes), tuple(lines.values()))


def _add(
    lines: dict[tuple[str, str, bool], Line],
    names: dict[str, tuple[str, str]],
    reads: tuple[Input, ...],
    end: str,
    flow: str | None,
) -> None:
    for one in reads:
        key = one.name.lower() if one.dataset is None else one.dataset.name.lower()
        names.setdefault(key, (one.name, "table"))
        lines.setdefault((key, end.lower(), one.streaming), Line(key, end.lower(), one.streaming, flow))


def _columns(keys: set[str], lines: list[Line]) -> dict[str, int]:
    """One more than the greatest column of what a box is made of; a graph has no cycles, so that this ends."""
    found = dict.fromkeys(keys, 0)
    for _ in keys:
        moved = False
        for line in lines:
            if found[line.end] <= found[line.start]:
                found[line.end] = found[line.start] + 1
                moved = True
        if not moved:
            break
    return found
