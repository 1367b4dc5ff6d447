"""The parts of a query as work for other nodes: each bound over tables without rows, and what is left of it over their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakelet.cache.lru_cache import LruCache
from lakelet.errors import InvalidError, LakeletError
from lakelet.sql.distribution.exchange_types import received, sent
from lakelet.sql.distribution.query_parts import QueryPart, query_parts
from lakelet.sql.distribution.row_expressions import NotSplitError
from lakelet.sql.distribution.tree_nodes import part_name, statement
from lakelet.sql.engine.duckdb_engine import Space
from lakelet.sql.engine.engine_errors import Placed
from lakelet.sql.query.parse_tree import Node
from lakelet.sql.sandbox.sandboxed_query import SandboxedQuery
from lakelet.sql.sandbox.split_tables import SplitTables
from lakelet.sql.sandbox.spread import Gathered, Spread, Work, rows_of

_SCHEMAS: LruCache[pa.Schema] = LruCache()
_SCHEMA_BYTES, _KEPT_BYTES = 500, 1 << 20


class PartsFailedError(Exception):
    """An error of the query itself, from where its parts run: no other way to run it is to be tried."""

    def __init__(self, error: LakeletError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True)
class BoundPart:
    """What workers run, the name of their rows, and the columns that these become."""

    work: Work
    rows: str
    received: str


@dataclass(frozen=True, slots=True)
class BoundParts:
    """The parts of a query, and the query over their rows and the rows of `tables`."""

    parts: tuple[BoundPart, ...]
    tree: Node
    combine: str
    tables: frozenset[str]

    def run(self, spread: Spread) -> list[Gathered]:
        """Have the parts run, one after the other: each is work for all nodes. SpreadFailedError where one is not done,
        PartsFailedError where the query has come to its end."""
        found: list[Gathered] = []
        try:
            for part in self.parts:
                found.append(spread.run(part.work))
        except BaseException as error:
            for one in found:
                one.close()
            if isinstance(error, LakeletError):
                raise PartsFailedError(error) from error
            raise
        return found

    def register(self, query: SandboxedQuery, tables: SplitTables, gathered: Sequence[Gathered]) -> None:
        """Register what the combining query reads."""
        query.register(tables.named(self.tables))
        for part, rows in zip(self.parts, gathered, strict=True):
            frame = query.space.add_rows(rows_of(part.work.schema, rows))
            query.space.add_temporary(part.rows, f"SELECT {part.received} FROM {frame}")


def bound_parts(query: SandboxedQuery, tables: SplitTables, tree: Node, relation: Any) -> BoundParts | None:
    """The parts of a query, whose tables have no rows now; None where it has none, or would have other columns than
    `relation`."""
    space = query.space

    def names_of(node: Node) -> Sequence[str]:
        try:
            text = space.text_of(statement(node))
            return list(space.relation(text, None, Placed(text)).columns)
        except InvalidError as error:
            raise NotSplitError from error

    found = query_parts(tree, tables.columns, relation.columns, names_of, tables.chosen)
    if found is None:
        return None
    parts = []
    for one in found.parts:
        part = _bound_part(query, tables, one)
        if part is None or not tables.spread.can_take(part.work):
            return None
        parts.append(part)
    combine = space.text_of(found.combine)
    combined = space.relation(combine, None, Placed(combine))
    if list(combined.columns) != list(relation.columns) or list(combined.types) != list(relation.types):
        return None
    return BoundParts(tuple(parts), found.combine, combine, found.tables)


def _bound_part(query: SandboxedQuery, tables: SplitTables, part: QueryPart) -> BoundPart | None:
    """The work of a part, whose rows are there from now on, but none yet; None where they do not travel."""
    space = query.space
    inner = space.text_of(part.worker)
    relation = space.relation(inner, None, Placed(inner))
    names = [part_name(place) for place in range(len(relation.columns))]
    items = sent(names, relation.types)
    if list(relation.columns) != names or items is None:
        return None
    sql = f"SELECT {items} FROM ({inner}) AS lakelet_parts"
    schema = sent_schema(space, items, names, relation.types, tables.zone)
    casts = received(names, relation.types)
    space.add_temporary(part.rows, f"SELECT {casts} FROM {space.add_frame(schema.empty_table())}")
    work = Work(sql, tables.zone, schema, tables.shared(part.way.split), tables.whole(part.way.whole))
    return BoundPart(work, part.rows, casts)


def sent_schema(space: Space, items: str, names: Sequence[str], types: Sequence[Any], zone: str | None) -> pa.Schema:
    """The columns in which rows of these types travel, of a query with the items `sent`; a zone is part of a type."""
    key = (items, tuple(map(str, types)), zone)
    found = _SCHEMAS.get(key)
    if found is None:
        nulls = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in zip(names, types, strict=True))
        found = space.table(f"SELECT {items} FROM (SELECT {nulls}) AS lakelet_parts").schema
        _SCHEMAS.put(key, found, _SCHEMA_BYTES * (len(names) + 1), limit=_KEPT_BYTES)
    return found
