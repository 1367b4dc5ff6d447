"""The graph as text: each dataset once, below it what it is made of.

orders   streaming table
├─ raw_orders   source, as a stream
└─ countries   source
"""

from __future__ import annotations

from lakelet.pipeline.graph import Graph
from lakelet.pipeline.picture.layout import Box, Drawing, drawing_of


def terminal(graph: Graph) -> str:
    """Datasets in an order in which they can be filled, each with what it reads."""
    drawing = drawing_of(graph)
    boxes = {box.key: box for box in drawing.boxes}
    ends = {line.end for line in drawing.lines}
    lines: list[str] = []
    for box in drawing.boxes:
        if box.key in ends or box.kind not in ("source", "table"):
            lines += _with_inputs(box, drawing, boxes)
    unread = [
        box for box in drawing.boxes if box.kind == "source" and all(one.start != box.key for one in drawing.lines)
    ]
    lines += [f"{box.name}   {box.kind}, read by nothing" for box in unread]
    return "\n".join(lines) + "\n"


def _with_inputs(box: Box, drawing: Drawing, boxes: dict[str, Box]) -> list[str]:
    lines = [f"{box.name}   {box.kind}"]
    inputs = [line for line in drawing.lines if line.end == box.key]
    for number, line in enumerate(inputs, 1):
        branch = "└─" if number == len(inputs) else "├─"
        start = boxes[line.start]
        how = ", as a stream" if line.streaming else ""
        flow = "" if line.flow is None else f", by {line.flow}"
        lines.append(f"{branch} {start.name}   {start.kind}{how}{flow}")
    return lines
