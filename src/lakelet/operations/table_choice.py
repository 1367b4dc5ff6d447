"""Choose the tables of a lake for an operation over many of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lakelet.catalog.lake import Lake
from lakelet.table import Table

Pattern = re.Pattern[str]


@dataclass(frozen=True, slots=True)
class TableChoice:
    """Tables by regular expressions over whole names; those of tables match `table` or `database.table`."""

    databases: Pattern | None = None
    including: Pattern | None = None
    excluding: Pattern | None = None


def chosen_tables(lake: Lake, choice: TableChoice) -> Iterator[tuple[str, Table]]:
    """The chosen tables with their databases, each opened lazily."""
    for database in lake.databases():
        if choice.databases is not None and not choice.databases.fullmatch(database):
            continue
        for name in lake.tables(database):
            spellings = (name, f"{database}.{name}")
            if choice.including is not None and not any(map(choice.including.fullmatch, spellings)):
                continue
            if choice.excluding is None or not any(map(choice.excluding.fullmatch, spellings)):
                yield database, lake.table(f"{database}.{name}")


def database_tables(lake: Lake, database: str) -> list[Table]:
    """All tables of a database."""
    return [lake.table(f"{database}.{name}") for name in lake.tables(database)]
