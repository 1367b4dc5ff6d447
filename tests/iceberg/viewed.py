"""Rows for tables of tests, and what queries read of them: the rows, and who reads which files."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lakelet import Lake
from lakelet.sql import Session
from lakelet.sql.engine.frames import Frames
from lakelet.sql.iceberg.table_view import IcebergView
from lakelet.sql.query.query import Query


def view_of(lake: Lake, text: str) -> IcebergView:
    """The view of the only table of a query."""
    query = Query(Session(lake).context, text, None, Frames(), {})
    query.prepare()
    with query.space:
        ((_, view),) = query.views
    assert isinstance(view, IcebergView)
    return view


def readers_of(lake: Lake, text: str) -> tuple[int, int]:
    """How many files DuckDB reads, and how many we do."""
    view = view_of(lake, text)
    return len(view.files), len(view.ours)


ROWS = pa.schema([("id", pa.int64()), ("v", pa.string())])


def rows_of(ids: Any, value: str | None = "") -> pa.Table:
    """Rows with these ids, and a text for each."""
    values = [f"v{number}" if value == "" else value for number in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array(values, pa.string())})


def ids_of(lake: Lake, text: str = "SELECT id FROM iceberg.db.t") -> list[int]:
    """The first column of a query, in order."""
    return sorted(row[0] for row in lake.sql(text).rows())
