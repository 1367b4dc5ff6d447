"""Which table the events of a source table go to.

A source table is synchronised if `including` matches its name or `database.name` wholly and `excluding` does not. Its target is
what `mapping` says, else its own name between `prefix` and `suffix`. Names are compared exactly: `A` and `a` are two tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lakelet.errors import InvalidError
from lakelet.storage.paths import check_name


@dataclass(frozen=True, slots=True)
class SourceTable:
    """The names of a source table; those that an envelope does not tell are None."""

    database: str | None
    schema: str | None
    name: str

    def __str__(self) -> str:
        return ".".join(part for part in (self.database, self.schema, self.name) if part is not None)


@dataclass(frozen=True, slots=True)
class Route:
    """One `table` for every event, or a table of `database` for each source table."""

    table: str | None = None
    database: str | None = None
    including: str = ".*"
    excluding: str | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""
    suffix: str = ""

    def __post_init__(self) -> None:
        if (self.table is None) == (self.database is None):
            raise InvalidError(
                "expected table= (all events into one table) or database= (a table for each), one of them"
            )
        if self.table is not None and not all(self.table.partition(".")):
            raise InvalidError(f"table {self.table!r}: expected database.table")
        for name, text in (("including", self.including), ("excluding", self.excluding or "")):
            try:
                re.compile(text)
            except re.error as error:
                raise InvalidError(f"{name} {text!r} is no regular expression: {error}") from error

    @property
    def mirror(self) -> str:
        """What these tables are called together: the one table, or all of the database."""
        return self.table if self.table is not None else f"{self.database}.*"

    def target(self, source: SourceTable) -> str | None:
        """`database.table` for a source table, None where it is not synchronised; InvalidError for a name that no table has."""
        if not self._includes(source):
            return None
        if self.table is not None:
            return self.table
        mapped = self.mapping.get(f"{source.database}.{source.name}", self.mapping.get(source.name))
        name = mapped if mapped is not None else f"{self.prefix}{source.name}{self.suffix}"
        if "." in name:
            raise InvalidError(f"source table {source}: {name!r} has a dot; table_mapping can give it another name")
        return f"{self.database}.{check_name(name, 'table')}"

    def _includes(self, source: SourceTable) -> bool:
        names = [source.name, f"{source.database}.{source.name}"]
        if self.excluding is not None and any(re.fullmatch(self.excluding, name) for name in names):
            return False
        return any(re.fullmatch(self.including, name) for name in names)
