"""Draw a table with box characters from a stream of rows.

    ┌────┬──────┐
    │ id │ name │
    ├────┼──────┤
    │  1 │ x    │
    └────┴──────┘

The widths of columns are those of the first rows, which are held back until there are enough of them; later cells that are
wider push their line out. So a table of any length is drawn in bounded memory. On a terminal, cells are cut so that a line fits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

Cells: TypeAlias = Sequence[str]

_HELD_ROWS = 1_000
_LEAST_WIDTH = 6
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"
# Control characters, which would break a line or a terminal, are shown as symbols.
_CONTROL = {code: 0x2400 + code for code in range(32)} | {0x7F: 0x2421, 0x0A: 0x23CE}


def drawn_table(
    columns: Sequence[str],
    rows: Iterable[Cells],
    *,
    numeric: Sequence[bool] = (),
    width: int | None = None,
    bold: bool = False,
) -> Iterator[str]:
    """The lines of a table; `numeric` columns are right-aligned. Lines are cut to `width` if it is given."""
    from rich.cells import cell_len  # noqa: PLC0415 - not every command draws.

    names = [shown_text(name) for name in columns]
    waiting = map(_lines, rows)
    held = list(itertools.islice(waiting, _HELD_ROWS))
    widths = [max(map(cell_len, cells)) for cells in zip(names, *itertools.chain.from_iterable(held), strict=True)]
    if width is not None:
        widths = _fitting(widths, width)
    right = [*numeric, *(False for _ in columns[len(numeric) :])]
    fixed = width is not None

    def line(cells: Cells) -> str:
        fitted = (
            _fitted(cell, size, at_right, fixed) for cell, size, at_right in zip(cells, widths, right, strict=True)
        )
        return "│ " + " │ ".join(fitted) + " │"

    def rule(left: str, middle: str, end: str) -> str:
        return left + middle.join("─" * (size + 2) for size in widths) + end

    yield rule("┌", "┬", "┐")
    yield _BOLD + line(names) + _PLAIN if bold else line(names)
    was_tall = True
    for lines in itertools.chain(held, waiting):
        # Rows of several lines are kept apart from their neighbours.
        is_tall = len(lines) > 1
        if was_tall or is_tall:
            yield rule("├", "┼", "┤")
        was_tall = is_tall
        yield from map(line, lines)
    if not held:
        yield rule("├", "┼", "┤")
    yield rule("└", "┴", "┘")


def _lines(row: Cells) -> list[Cells]:
    """A row as the lines it takes: cells of several lines are set side by side."""
    if not any("\n" in cell for cell in row):
        return [[shown_text(cell) for cell in row]]
    parts = ([shown_text(line) for line in cell.split("\n")] for cell in row)
    return list(itertools.zip_longest(*parts, fillvalue=""))


def shown_text(text: str) -> str:
    """A text on one line, with symbols for characters that would move the cursor."""
    return text if text.isprintable() else text.translate(_CONTROL)


def _fitted(text: str, size: int, at_right: bool, fixed: bool) -> str:
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415 - as above.

    room = size - cell_len(text)
    if room < 0:
        return set_cell_size(text, size - 1) + "…" if fixed else text
    return " " * room + text if at_right else text + " " * room


def _fitting(widths: list[int], line_width: int) -> list[int]:
    """Column widths that fit a line, shrinking the widest columns first; too many columns still exceed it."""
    room = line_width - 3 * len(widths) - 1
    while sum(widths) > room:
        widest = max(widths)
        if widest <= _LEAST_WIDTH:
            break
        below = max((size for size in widths if size < widest), default=_LEAST_WIDTH)
        share = (sum(widths) - room) // widths.count(widest) or 1
        target = max(below, widest - share, _LEAST_WIDTH)
        widths = [min(size, target) if size == widest else size for size in widths]
        if target == widest:
            break
    return widths
