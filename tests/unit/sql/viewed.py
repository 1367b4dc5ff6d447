"""What a query reads of a table, for tests of who reads which files."""

from __future__ import annotations

from lakelet import Lake
from lakelet.sql import Session
from lakelet.sql.engine.frames import Frames
from lakelet.sql.query.query import Query
from lakelet.sql.query.table_view import TableView


def view_of(lake: Lake, text: str, session: Session | None = None) -> TableView:
    """The view of the only table of a query."""
    query = Query((session or Session(lake)).context, text, None, Frames(), {})
    query.prepare()
    with query.space:
        ((_, view),) = query.views
    assert isinstance(view, TableView)
    return view


def readers_of(lake: Lake, text: str) -> tuple[int, int]:
    """How many files DuckDB reads, and how many we do."""
    view = view_of(lake, text)
    return len(view.assigned.files), sum(len(split.files) for split in view.assigned.ours)
