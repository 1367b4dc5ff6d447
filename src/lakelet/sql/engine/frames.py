"""Data frames that a statement may name as tables: those passed by name, and the variables of the calling code.

    lake.sql("SELECT * FROM orders_frame JOIN shop.customers USING (id)")      a variable `orders_frame` of the caller
    lake.sql("SELECT * FROM o", frames={"o": arrow_table})

A passed frame shadows a table of the lake; a variable does not: a new variable never changes the meaning of a query.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import FrameType

import pyarrow as pa

from lakelet.catalog.names import only_match
from lakelet.catalog.sql_result import SqlResult


class Frames:
    """The data frames of a statement. Variables are looked up lazily in the caller's stack frame."""

    def __init__(self, given: Mapping[str, object] | None = None, caller: FrameType | None = None) -> None:
        self._given = dict(given or {})
        self._caller = caller

    def given(self, name: str) -> object | None:
        """The frame passed under this name."""
        found = self.given_name(name)
        return None if found is None else self._given[found]

    def given_name(self, name: str) -> str | None:
        """The name under which a frame was passed; InvalidError where several differ from `name` in case alone."""
        return only_match(name, self._given, "frame")

    def has(self, name: str) -> bool:
        """Whether a frame was passed under this name, ignoring case."""
        return any(other.lower() == name.lower() for other in self._given)

    def variable(self, name: str) -> object | None:
        """A variable of the calling code that holds rows."""
        frame = self._caller
        if frame is None:
            return None
        for names in (frame.f_locals, frame.f_globals):
            value = names.get(name)
            if value is not None and _holds_rows(value):
                found: object = value
                return found
        return None


def _holds_rows(value: object) -> bool:
    from lakelet.table.read.table_scan import TableScan  # noqa: PLC0415 - few queries name a variable.

    if isinstance(value, (pa.Table, pa.RecordBatch, pa.RecordBatchReader, TableScan, SqlResult)):
        return True
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    # Only an imported library can have made the value; none is imported to find out.
    return (
        package in ("pandas", "polars", "duckdb", "_duckdb", "pyarrow")
        and package in sys.modules
        and (
            kind.__name__
            in ("DataFrame", "LazyFrame", "DuckDBPyRelation", "Dataset", "FileSystemDataset", "InMemoryDataset")
        )
    )
