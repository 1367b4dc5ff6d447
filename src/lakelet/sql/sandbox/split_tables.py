"""The tables of a sandboxed query as other nodes may read them: shares of some, all rows of others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property

from lakelet.sql.distribution.split_query import PARTIALS
from lakelet.sql.distribution.split_sources import SplitWay
from lakelet.sql.sandbox.sandbox_table import SandboxTable
from lakelet.sql.sandbox.sandboxed_query import SandboxedQuery
from lakelet.sql.sandbox.spread import PlannedSplit, SharedTable, Spread, whole


class SplitTables:
    """The tables of one query that may be read elsewhere, by their names in its text in lower case."""

    def __init__(self, query: SandboxedQuery, zone: str | None, spread: Spread) -> None:
        self._query = query
        self.zone = zone
        self.spread = spread
        self._all = query.tables_by_name()
        self._travelling = {name: table for name, table in self._all.items() if _can_travel(table)}
        self._shared: dict[str, SharedTable] = {}

    @cached_property
    def columns(self) -> dict[str, list[str]]:
        """The columns of those that travel."""
        return {name: self._query.shown_columns(table) for name, table in self._travelling.items()}

    def are_worthwhile(self) -> bool:
        """Whether all of them together have enough to read."""
        return self.spread.is_worthwhile(self.sizes())

    def are_for_others(self) -> bool:
        """Whether other nodes may have a part in the query."""
        return self.are_worthwhile() or self.spread.is_for_another(self.sizes(), is_split=False)

    def sizes(self) -> list[int]:
        """The bytes of all their splits."""
        return self._sizes(self._travelling)

    def chosen(self, ways: Sequence[SplitWay]) -> SplitWay | None:
        """Of several ways to split a part of the query, that by which the most is read by several; None where that is little."""
        largest = max(ways, key=lambda way: sum(self._sizes(way.split)))
        return largest if self.spread.is_worthwhile(self._sizes(largest.split)) else None

    def shared(self, names: Collection[str]) -> tuple[SharedTable, ...]:
        """Tables whose rows are shared out."""
        return tuple(self._share(name) for name in sorted(names))

    def whole(self, names: Collection[str]) -> tuple[SandboxTable, ...]:
        """Tables of which every node reads all rows."""
        found = [self._travelling[name] for name in sorted(names)]
        return tuple(whole(one, self._query.pruning(one), self._query.hidden_columns(one)) for one in found)

    def named(self, names: Collection[str]) -> list[SandboxTable]:
        """The tables themselves; those that do not travel are always among them."""
        return [table for name, table in self._all.items() if name in names or name not in self._travelling]

    def _sizes(self, names: Collection[str]) -> list[int]:
        return [split.bytes for name in names for split in self._share(name).splits]

    def _share(self, name: str) -> SharedTable:
        found = self._shared.get(name)
        if found is None:
            table = self._travelling[name]
            texts = self._query.pruning(table)
            splits = tuple(PlannedSplit(*split) for split in self._query.plans.splits(table.scan, texts))
            found = SharedTable(self._query.as_shown(table), texts, table.overlay(), splits)
            self._shared[name] = found
        return found


def _can_travel(table: SandboxTable) -> bool:
    """Whether another node can read a share of a table, whose name is none of those of the rows of all."""
    if table.name.lower().startswith(PARTIALS):
        return False
    return table.scan.fallback is None and (not table.has_buffered_rows or table.is_overlaid)
