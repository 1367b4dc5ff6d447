"""Compute statistics of a table's rows and columns, for query planners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakelet.table import Table


@dataclass(frozen=True, slots=True)
class Analyzed:
    """The snapshot that holds the statistics, and the number and size of the rows."""

    snapshot_id: int
    record_count: int | None
    record_bytes: int | None


def analyze(table: Table, columns: Sequence[str] | None = None) -> Analyzed | None:
    """Compute statistics of columns, all by default; None where the table has no rows yet."""
    snapshot = table.analyze(columns)
    found = table.statistics()
    if snapshot is None or found is None:
        return None
    return Analyzed(snapshot.id, found.record_count, found.record_bytes)
