"""The graph as an SVG picture that needs nothing else: no script, no font, no link."""

from __future__ import annotations

from xml.sax.saxutils import escape

from lakelet.pipeline.graph import Graph
from lakelet.pipeline.picture.layout import Box, drawing_of

_WIDE, _HIGH, _GAP_X, _GAP_Y, _EDGE = 180, 46, 90, 22, 20
_MOST_SHOWN = 24
_COLOURS = {
    "source": "#eef2f7",
    "table": "#eef2f7",
    "view": "#ffffff",
    "streaming table": "#dff3e4",
    "materialized view": "#e3ecfb",
    "sink": "#fdf0dc",
}


def svg(graph: Graph) -> str:
    """Boxes from left to right with lines between them; streams are dashed."""
    drawing = drawing_of(graph)
    places = {
        box.key: (_EDGE + column * (_WIDE + _GAP_X), _EDGE + row * (_HIGH + _GAP_Y))
        for column, boxes in enumerate(drawing.columns)
        for row, box in enumerate(boxes)
    }
    wide = max((x for x, _ in places.values()), default=0) + _WIDE + _EDGE
    high = max((y for _, y in places.values()), default=0) + _HIGH + _EDGE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" '
        'font-family="sans-serif" font-size="13">',
        f"<title>{escape(graph.pipeline.name)}</title>",
        '<defs><marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#5b6b7f"/></marker></defs>',
        f'<rect width="{wide}" height="{high}" fill="#ffffff"/>',
    ]
    for line in drawing.lines:
        dashes = ' stroke-dasharray="5 3"' if line.streaming else ""
        path = _curve(places[line.start], places[line.end])
        parts.append(f'<path d="{path}" fill="none" stroke="#5b6b7f"{dashes} marker-end="url(#end)"/>')
    parts += [_box(box, *places[box.key]) for box in drawing.boxes]
    return "\n".join((*parts, "</svg>\n"))


def _curve(start: tuple[int, int], end: tuple[int, int]) -> str:
    x, y = start[0] + _WIDE, start[1] + _HIGH // 2
    to_x, to_y = end[0], end[1] + _HIGH // 2
    bend = (to_x - x) // 2
    return f"M{x},{y} C{x + bend},{y} {to_x - bend},{to_y} {to_x},{to_y}"


def _box(box: Box, x: int, y: int) -> str:
    name = box.name if len(box.name) <= _MOST_SHOWN else f"{box.name[: _MOST_SHOWN - 1]}…"
    middle = x + _WIDE // 2
    return (
        f"<g><title>{escape(box.name)}, {box.kind}</title>"
        f'<rect x="{x}" y="{y}" width="{_WIDE}" height="{_HIGH}" rx="6" fill="{_COLOURS[box.kind]}" stroke="#5b6b7f"/>'
        f'<text x="{middle}" y="{y + 20}" text-anchor="middle" fill="#1c2733">{escape(name)}</text>'
        f'<text x="{middle}" y="{y + 36}" text-anchor="middle" fill="#5b6b7f" font-size="10">{box.kind}</text></g>'
    )
