"""The parsed form of a query, as DuckDB's own parser gives it: which tables it names, and in which part of it.

    WITH x AS (SELECT * FROM a) SELECT * FROM x JOIN shop.b ON …     ->   a, shop.b

Names of common tables are none of the lake's, in the part of the query where they hold. The tree is DuckDB's JSON: a table is
a node of type BASE_TABLE, a query a node with a list of selected expressions; whatever else there is, is walked through.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Node = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reference:
    """A table that a query names. `select` is the SELECT whose FROM it stands in, `node` the table itself."""

    parts: tuple[str, ...]
    node: Node
    select: Node | None

    @property
    def alias(self) -> str:
        """The name by which its columns are qualified."""
        return str(self.node.get("alias") or self.parts[-1])

    @property
    def place(self) -> int | None:
        """Where it stands in the text, in bytes."""
        return self.node.get("query_location")


def references(tree: Node) -> list[Reference]:
    """The tables that a parsed query names, each as often as it does."""
    return list(_walk(tree, None, frozenset()))


def functions(tree: object) -> Iterator[Node]:
    """The table functions that a parsed query calls."""
    if isinstance(tree, dict):
        if tree.get("type") == "TABLE_FUNCTION":
            yield tree
        for child in tree.values():
            yield from functions(child)
    elif isinstance(tree, list):
        for child in tree:
            yield from functions(child)


def only_select(tree: Node) -> Node | None:
    """The SELECT that a text of one statement is, None for anything else."""
    statements = tree.get("statements", ())
    if len(statements) != 1:
        return None
    node: Node = statements[0].get("node", {})
    return node if node.get("type") == "SELECT_NODE" and not node.get("cte_map", {}).get("map") else None


def _walk(node: object, select: Node | None, common: frozenset[str]) -> Iterator[Reference]:
    if isinstance(node, list):
        for child in node:
            yield from _walk(child, select, common)
        return
    if not isinstance(node, dict):
        return
    if node.get("type") == "BASE_TABLE":
        parts = tuple(str(part) for part in node.get("qualified_name", {}).get("path", ()))
        if parts and not _is_common(parts, common):
            yield Reference(parts, node, select)
    inner = node if node.get("type") == "SELECT_NODE" else select
    for entry in (node.get("cte_map") or {}).get("map", ()):
        name = str(entry["key"]).lower()
        # A common table sees itself only if it is recursive; otherwise the name is that of a table.
        query = entry["value"]
        yield from _walk(query, None, common | {name} if _is_recursive(query) else common)
        common |= {name}
    for key, child in node.items():
        if key != "cte_map":
            yield from _walk(child, inner, common)


def _is_common(parts: tuple[str, ...], common: frozenset[str]) -> bool:
    """Whether a name is that of a common table, or of all rows that a recursive one with keys has so far (`recurring.x`)."""
    return parts[-1].lower() in common and (len(parts) == 1 or [part.lower() for part in parts[:-1]] == ["recurring"])


def _is_recursive(query: object) -> bool:
    if isinstance(query, dict):
        return query.get("type") == "RECURSIVE_CTE_NODE" or any(_is_recursive(child) for child in query.values())
    return isinstance(query, list) and any(_is_recursive(child) for child in query)
