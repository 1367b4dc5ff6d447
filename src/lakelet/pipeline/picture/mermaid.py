"""The graph as Mermaid text, which GitHub and many editors draw."""

from __future__ import annotations

from lakelet.pipeline.graph import Graph
from lakelet.pipeline.picture.layout import drawing_of

_SHAPES = {
    "source": ("[/", "/]"),
    "table": ("[/", "/]"),
    "view": ("(", ")"),
    "streaming table": ("[(", ")]"),
    "materialized view": ("[[", "]]"),
    "sink": (">", "]"),
}


def mermaid(graph: Graph) -> str:
    """A flowchart from left to right; streams are dotted."""
    drawing = drawing_of(graph)
    ids = {box.key: f"n{number}" for number, box in enumerate(drawing.boxes)}
    lines = ["flowchart LR"]
    for box in drawing.boxes:
        left, right = _SHAPES[box.kind]
        lines.append(f'    {ids[box.key]}{left}"{_text(box.name)}<br/><small>{box.kind}</small>"{right}')
    for line in drawing.lines:
        arrow = "-.->" if line.streaming else "-->"
        label = "" if line.flow is None else f'|"{_text(line.flow)}"|'
        lines.append(f"    {ids[line.start]} {arrow}{label} {ids[line.end]}")
    return "\n".join(lines) + "\n"


def _text(name: str) -> str:
    """A name as Mermaid shows it, whatever characters it has."""
    return "".join(sign if sign.isalnum() or sign in "_-. " else f"#{ord(sign)};" for sign in name)
