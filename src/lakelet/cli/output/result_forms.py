"""The output formats of a statement's rows, written batch by batch.

    table       drawn, the first rows only         csv        with a header          json      one array
    vertical    a line each value                  markdown   a table for a page     ndjson    one object a line
    object      one JSON object a result, on one line: what --json gives

No format holds more than a batch in memory, whatever the result's size.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from lakelet.cli.output.output import in_colour, terminal_width
from lakelet.cli.output.text_table import drawn_table, shown_text
from lakelet.sql.files.cell_values import is_numeric, json_text, rows_of, text_array
from lakelet.sql.files.json_rows import json_objects

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelet.catalog.sql_result import SqlResult

FORMS = ("table", "vertical", "csv", "json", "ndjson", "markdown")
DEFAULT_ROWS = 100
_PAGE_FORMS = ("table", "vertical")


def write_result(result: SqlResult, form: str, out: TextIO, limit: int | None = None) -> None:
    """Writes at most `limit` rows of a result: all for 0, and for None the default of the format."""
    if limit is None:
        limit = DEFAULT_ROWS if form in _PAGE_FORMS else 0
    with result:
        if form in _PAGE_FORMS and result.message is not None:
            out.write(result.message + "\n")
        else:
            _WRITERS[form](result, out, limit or None)
    out.flush()


def _write_table(result: SqlResult, out: TextIO, limit: int | None) -> None:
    pages = _Pages(result, limit)
    numeric = [is_numeric(kind) for kind in result.schema.types]
    lines = drawn_table(result.columns, pages.rows(), numeric=numeric, width=_width(out), bold=in_colour(out))
    for line in lines:
        out.write(line + "\n")
    out.write(pages.summary() + "\n")


def _write_vertical(result: SqlResult, out: TextIO, limit: int | None) -> None:
    pages = _Pages(result, limit)
    widest = max((len(name) for name in result.columns), default=0)
    for number, row in enumerate(pages.rows(), 1):
        out.write(f"─[ row {number} ]{'─' * max(widest + 2 - len(str(number)), 3)}\n")
        for name, cell in zip(result.columns, row, strict=True):
            first, *more = cell.split("\n")
            out.write(f"{name.ljust(widest)} │ {shown_text(first)}\n")
            out.writelines(f"{' ' * widest} │ {shown_text(line)}\n" for line in more)
    out.write(pages.summary() + "\n")


def _write_markdown(result: SqlResult, out: TextIO, limit: int | None) -> None:
    rules = ["---:" if is_numeric(kind) else "---" for kind in result.schema.types]
    out.write(f"| {' | '.join(map(_page_text, result.columns))} |\n| {' | '.join(rules)} |\n")
    for batch in _first(result, limit):
        for row in rows_of(batch, _cells):
            out.write(f"| {' | '.join(map(_page_text, row))} |\n")


def _write_csv(result: SqlResult, out: TextIO, limit: int | None) -> None:
    from lakelet.sql.files.csv_text import csv_lines  # noqa: PLC0415 - only this form needs Arrow's writer.

    for text in csv_lines(result.schema, _first(result, limit)):
        out.write(text)


def _write_json(result: SqlResult, out: TextIO, limit: int | None) -> None:
    _write_objects(result, out, limit, "[\n", ",\n", "\n]\n")


def _write_ndjson(result: SqlResult, out: TextIO, limit: int | None) -> None:
    _write_objects(result, out, limit, "", "\n", "\n")


def _write_object(result: SqlResult, out: TextIO, limit: int | None) -> None:
    said = "" if result.message is None else f'"message": {json_text(result.message)}, '
    _write_objects(result, out, limit, f'{{{said}"rows": [', ", ", "]}\n")


def _write_objects(result: SqlResult, out: TextIO, limit: int | None, first: str, between: str, last: str) -> None:
    out.write(first)
    written = False
    for batch in _first(result, limit):
        if not batch.num_rows:
            continue
        out.write((between if written else "") + json_objects(batch, between))
        written = True
    out.write(last if written or first else "")


_WRITERS: dict[str, Callable[[SqlResult, TextIO, int | None], None]] = {
    "table": _write_table,
    "vertical": _write_vertical,
    "csv": _write_csv,
    "json": _write_json,
    "ndjson": _write_ndjson,
    "markdown": _write_markdown,
    "object": _write_object,
}


class _Pages:
    """The first `limit` rows as texts, and the count of all."""

    def __init__(self, result: SqlResult, limit: int | None) -> None:
        self._result = result
        self._limit = limit
        self._shown = self._all = 0

    def rows(self) -> Iterator[Sequence[str]]:
        for batch in self._result.to_batches():
            room = batch.num_rows if self._limit is None else self._limit - self._shown
            page = batch.slice(0, room)
            self._all += batch.num_rows
            self._shown += page.num_rows
            if page.num_rows:
                yield from rows_of(page, _cells)

    def summary(self) -> str:
        if self._shown < self._all:
            return f"{self._shown:,} of {self._all:,} rows; limit 0 shows all"
        return f"{self._all:,} {'row' if self._all == 1 else 'rows'}"


def _first(result: SqlResult, limit: int | None) -> Iterator[pa.RecordBatch]:
    """The batches up to `limit` rows; the rest is not read."""
    left = limit
    for batch in result.to_batches():
        if left is None:
            yield batch
            continue
        yield batch.slice(0, left)
        left -= min(left, batch.num_rows)
        if not left:
            return


def _cells(array: pa.Array) -> list[str]:
    return ["NULL" if text is None else text for text in text_array(array).to_pylist()]


def _page_text(text: str) -> str:
    return "<br>".join(map(shown_text, text.split("\n"))).replace("|", "\\|")


def _width(out: TextIO) -> int | None:
    return terminal_width() if out is sys.stdout else None
