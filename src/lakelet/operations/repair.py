"""Repair the hints to a table's oldest and newest snapshot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakelet.table import Table


@dataclass(frozen=True, slots=True)
class RepairedTable:
    """The repaired hints of a table, and how many of them were wrong."""

    table: str
    earliest_snapshot_id: int | None
    latest_snapshot_id: int | None
    repaired: int


def repair(tables: Iterable[Table]) -> tuple[RepairedTable, ...]:
    """Rewrites the wrong hints of tables."""
    found = []
    for table in tables:
        hints = table.repair()
        found.append(RepairedTable(table.name, hints.earliest, hints.latest, len(hints.repaired)))
    return tuple(found)
