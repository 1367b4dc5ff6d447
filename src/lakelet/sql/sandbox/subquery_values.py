"""Compute the queries in expressions first, where they are the same for each row, so that workers are given their values.

    SELECT id FROM t WHERE x > (SELECT avg(x) FROM t)     ->     SELECT id FROM t WHERE x > CAST('3.5' AS DOUBLE)

They may be split themselves. One that names columns of the query around it is no query without it, and stays; so does one of
many rows or long ones, and one whose values are not the same as constants: of the clock, which is the query's own, or of texts
that are compared by a collation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.sql.distribution.exchange_types import is_plain
from lakelet.sql.distribution.tree_nodes import statement
from lakelet.sql.engine.engine_errors import Placed
from lakelet.sql.lexer.quotes import literal
from lakelet.sql.query.parse_tree import Node, references
from lakelet.sql.sandbox.allow_list import nodes
from lakelet.sql.sandbox.sandboxed_query import SandboxedQuery
from lakelet.sql.sandbox.split_tables import SplitTables
from lakelet.sql.sandbox.spread_whole import planned

# What IN reads: more values than these are read by each worker for itself; so are longer ones, and more text in all.
_MOST_VALUES = 1000
_MOST_LETTERS = 1 << 12
_MOST_TEXT = 1 << 18
_CLOCK = frozenset(
    (
        *("age", "current_date", "current_localtime", "current_localtimestamp", "current_time", "current_timestamp"),
        *("get_current_time", "get_current_timestamp", "localtime", "localtimestamp", "now", "today"),
        "transaction_timestamp",
    )
)


class SubqueryValues:
    """The values of the queries in the expressions of one query."""

    def __init__(self, query: SandboxedQuery, tables: SplitTables) -> None:
        self._query = query
        self._tables = tables
        # The queries that are computed first.
        self.texts: list[str] = []

    def assumed(self, tree: Node) -> Node:
        """The tree with values of the right types, before they are known."""
        kept = _common(tree)

        def value(node: Node) -> Node | None:
            bound = self._bound(node, kept)
            if bound is None:
                return None
            text, kind = bound
            self.texts.append(text)
            return self._constants(node, kind, [None])

        found: Node = _replaced(tree, value)
        return found

    def computed(self, tree: Node) -> Node | None:
        """The tree with their values; None where there are none to be computed."""
        if not self.texts:
            return None
        kept = _common(tree)

        def value(node: Node) -> Node | None:
            bound = self._bound(node, kept)
            if bound is None:
                return None
            values = self._values(*bound)
            return None if values is None else self._constants(node, bound[1], values)

        found: Node = _replaced(tree, value)
        self._query.register_without_rows()
        return found

    def _bound(self, node: Node, kept: set[str]) -> tuple[str, str] | None:
        """The query of a subquery that can be computed by itself, and the type of its column."""
        inner = node["subquery"]["node"]
        used = {use.parts[-1].lower() for use in references(inner)}
        if (
            not used
            or used & kept
            or _is_special(inner)
            or node.get("subquery_type") not in ("SCALAR", "EXISTS", "ANY")
        ):
            return None
        if node["subquery_type"] == "ANY" and node.get("comparison_type") != "COMPARE_EQUAL":
            return None
        space = self._query.space
        text = space.text_of(statement(inner))
        try:
            relation = space.relation(text, None, Placed(text))
        except InvalidError:
            # It names columns of the query around it.
            return None
        if node["subquery_type"] == "EXISTS":
            return f"SELECT EXISTS({text})", "BOOLEAN"
        if len(relation.types) != 1 or not is_plain(relation.types[0]):
            return None
        if node["subquery_type"] == "ANY":
            text = f"SELECT DISTINCT * FROM ({text}) AS lakelet_part LIMIT {_MOST_VALUES + 1}"
        return text, str(relation.types[0])

    def _values(self, text: str, kind: str) -> list[str | None] | None:
        """The values of a query; None where there are too many, or too long ones, for a text."""
        self._query.register_without_rows()
        found = self._rows(text)
        if found.num_rows > _MOST_VALUES:
            return None
        values: list[str | None] = found.column(0).to_pylist()
        texts = [one for one in values if one is not None]
        # DuckDB's parser ends a text at a NUL.
        if any(len(one) > _MOST_LETTERS or "\0" in one for one in texts) or sum(map(len, texts)) > _MOST_TEXT:
            return None
        return values

    def _rows(self, text: str) -> pa.Table:
        space = self._query.space
        tree = space.tree(text)
        relation = space.relation(text, None, Placed(text))
        bound = planned(self._query, self._tables, tree, relation)
        if bound is None:
            self._query.register()
            return _as_texts(space, text)
        gathered = bound.run(self._tables.spread)
        try:
            bound.register(self._query, self._tables, gathered)
            return _as_texts(space, bound.combine)
        finally:
            for one in gathered:
                one.close()

    def _constants(self, node: Node, kind: str, values: Sequence[str | None]) -> Node | None:
        """A subquery with its values; None where one row at most was expected."""
        space = self._query.space
        alias = {"alias": node["alias"]} if "alias" in node else {}
        if node["subquery_type"] == "ANY":
            given = ", ".join(f"({_constant(one, kind)})" for one in values)
            text = f"VALUES {given}" if values else f"SELECT CAST(NULL AS {kind}) WHERE false"
            inner = space.tree(f"SELECT * FROM ({text}) AS lakelet_part(lakelet_c0)")["statements"][0]["node"]
            return {**node, "subquery": {**node["subquery"], "node": inner}}
        if len(values) > 1:
            return None
        only = values[0] if values else None
        tree = space.tree(f"SELECT {_constant(only, kind)}")
        found: Node = tree["statements"][0]["node"]["select_list"][0]
        return {**found, **alias}


def _common(tree: Node) -> set[str]:
    """The names of the common table expressions that are not in place."""
    return {str(entry["key"]).lower() for node in nodes(tree) for entry in (node.get("cte_map") or {}).get("map", ())}


def _constant(value: str | None, kind: str) -> str:
    return f"CAST({'NULL' if value is None else literal(value)} AS {kind})"


def _is_special(query: Node) -> bool:
    """Whether the values of a query are not certainly those of constants, which are computed at another time."""
    for node in nodes(query):
        names = [str(name).lower() for name in node.get("column_names", ())]
        # The clock may be written as if it were a column.
        if node.get("class") == "COLLATE" or (len(names) == 1 and names[0] in _CLOCK):
            return True
        if str(node.get("function_name", "")).lower() in _CLOCK:
            return True
    return False


def _as_texts(space: Any, text: str) -> pa.Table:
    """The first values of a query, and no more of a long one than shows that it is."""
    value = f"left(CAST(lakelet_c0 AS VARCHAR), {_MOST_LETTERS + 1})"
    return space.table(f"SELECT {value} FROM ({text}) AS lakelet_part(lakelet_c0) LIMIT {_MOST_VALUES + 1}")


def _replaced(node: Any, value: Callable[[Node], Node | None]) -> Any:
    """A tree with the values of its outermost subqueries in expressions."""
    if isinstance(node, list):
        return [_replaced(one, value) for one in node]
    if not isinstance(node, dict):
        return node
    if node.get("class") == "SUBQUERY":
        found = value(node)
        if found is not None:
            child = {"child": _replaced(node["child"], value)} if found.get("class") == "SUBQUERY" else {}
            return {**found, **child}
    return {key: one if key == "literal" else _replaced(one, value) for key, one in node.items()}
