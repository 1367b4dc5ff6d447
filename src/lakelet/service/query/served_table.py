"""The tables that queries of the service may read, as whoever serves them gives them.

Queries see `ServedTables` alone, never the catalog: a table that the request may not read is not in it, and so does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lakelet.realtime.read.pinned_memtables import PinnedMemtable
from lakelet.realtime.row_writer import RowWriter
from lakelet.table import Table


class ServedTable(Protocol):
    """A table that queries may read."""

    @property
    def name(self) -> str:
        """The name by which queries know it."""

    @property
    def table(self) -> Table:
        """The table in the lake."""

    @property
    def writer(self) -> RowWriter | None:
        """The open writer, whose buffered rows belong to the table; None where nobody writes it."""

    @property
    def hides_day(self) -> bool:
        """Whether the column `dt` is left out of `SELECT *`; it can be selected by its name."""


class ServedTables(Protocol):
    """All tables that a request may read."""

    def names(self) -> list[str]:
        """Their names."""

    def open(self, name: str) -> ServedTable:
        """One of them, by its exact name; NotFoundError where there is none."""


class OtherWriters(Protocol):
    """Writers of the same tables in other processes."""

    def pinned(self, table: ServedTable, warnings: list[str]) -> Sequence[PinnedMemtable]:
        """The rows that they have acknowledged and may not have committed. Who does not answer is told in `warnings`."""
