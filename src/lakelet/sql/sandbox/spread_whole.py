"""A query, or what is left of it, as work for one other node: one that is not split, or whose parts this node does not combine.

    parts of it: workers ── their rows: one worker, which combines them ── its rows: this node
    not split:              one worker, which runs it                   ── its rows: this node

The worker keeps what it gathers in files, and its DuckDB spills; this node has the rows of the answer alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lakelet.errors import LakeletError
from lakelet.sql.distribution.exchange_types import received, sent
from lakelet.sql.distribution.split_query import PARTIALS
from lakelet.sql.distribution.tree_nodes import part_name
from lakelet.sql.engine.engine_errors import Placed
from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.query.parse_tree import Node, references
from lakelet.sql.sandbox.sandboxed_query import SandboxedQuery
from lakelet.sql.sandbox.split_tables import SplitTables
from lakelet.sql.sandbox.spread import Gathered, Spread, WholeWork, rows_of
from lakelet.sql.sandbox.spread_parts import BoundPart, BoundParts, PartsFailedError, bound_parts, sent_schema


@dataclass(frozen=True, slots=True)
class BoundWhole:
    """The work of another node, and the query that gives its rows."""

    work: WholeWork
    received: str

    @property
    def combine(self) -> str:
        """The query over the rows of the node."""
        return f"FROM {PARTIALS}"

    def run(self, spread: Spread) -> list[Gathered]:
        """Have it run. SpreadFailedError where it is not done, PartsFailedError where the query has come to its end."""
        try:
            return [spread.run_whole(self.work)]
        except LakeletError as error:
            raise PartsFailedError(error) from error

    def register(self, query: SandboxedQuery, _: SplitTables, gathered: list[Gathered]) -> None:
        """Register what the query reads."""
        frame = query.space.add_rows(rows_of(self.work.schema, gathered[0]))
        query.space.add_temporary(PARTIALS, f"SELECT {self.received} FROM {frame}")


def planned(query: SandboxedQuery, tables: SplitTables, tree: Node, relation: Any) -> BoundParts | BoundWhole | None:
    """How a query, whose tables have no rows now, is run by other nodes; None where it is not. `relation` has its columns."""
    parts = bound_parts(query, tables, tree, relation) if tables.are_worthwhile() else None
    if not tables.spread.is_for_another(tables.sizes(), is_split=parts is not None):
        return parts
    whole = _bound_whole(
        query, tables, tree if parts is None else parts.tree, () if parts is None else parts.parts, relation
    )
    return whole if whole is not None and tables.spread.can_take_whole(whole.work) else parts


def _bound_whole(
    query: SandboxedQuery, tables: SplitTables, tree: Node, parts: tuple[BoundPart, ...], relation: Any
) -> BoundWhole | None:
    """The work of another node; None where a table cannot be read there, or rows do not travel."""
    space = query.space
    given = {part.rows for part in parts}
    read = {use.parts[-1].lower() for use in references(tree)} - given
    if not read <= set(tables.columns):
        return None
    names = [part_name(place) for place in range(len(relation.columns))]
    items = sent(names, relation.types)
    if items is None:
        return None
    casts = {part.rows: _query_of(space, f"SELECT {part.received} FROM {part.rows}") for part in parts}
    text = space.text_of(_with_casts(tree, casts))
    sql = f"SELECT {items} FROM ({text}) AS lakelet_parts({', '.join(names)})"
    # The rows of the parts, as they come: without their types.
    for part in parts:
        space.add_temporary(part.rows, f"FROM {space.add_frame(part.work.schema.empty_table())}")
    try:
        found = space.relation(text, None, Placed(text))
        if list(found.types) != list(relation.types):
            return None
        schema = sent_schema(space, items, names, relation.types, tables.zone)
    finally:
        for part in parts:
            space.add_temporary(
                part.rows, f"SELECT {part.received} FROM {space.add_frame(part.work.schema.empty_table())}"
            )
    work = WholeWork(sql, tables.zone, schema, tables.whole(read), tuple((part.rows, part.work) for part in parts))
    return BoundWhole(work, received(names, relation.types, [quoted(name) for name in relation.columns]))


def _query_of(space: Any, text: str) -> Node:
    node: Node = space.tree(text)["statements"][0]["node"]
    return node


def _with_casts(node: Any, casts: dict[str, Node]) -> Any:
    """A tree that makes columns of their types of the rows of parts."""
    if isinstance(node, list):
        return [_with_casts(one, casts) for one in node]
    if not isinstance(node, dict):
        return node
    path: Sequence[str] = node.get("qualified_name", {}).get("path", ()) if node.get("type") == "BASE_TABLE" else ()
    if len(path) == 1 and path[0] in casts:
        return {"type": "SUBQUERY", "alias": path[0], "subquery": {"node": casts[path[0]]}}
    return {key: value if key == "literal" else _with_casts(value, casts) for key, value in node.items()}
