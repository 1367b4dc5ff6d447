"""DuckDB's parse tree of a query: the tables it references, and in which SELECT.

    WITH x AS (SELECT * FROM a) SELECT * FROM x JOIN shop.b ON …     ->   a, shop.b

Names of common table expressions are excluded within their scope. The tree is DuckDB's JSON: a table is a node of type
BASE_TABLE, a query a node with a list of selected expressions; all other nodes are just traversed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Node = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to a table in a query. `select` is the SELECT whose FROM has it, `node` its own node."""

    parts: tuple[str, ...]
    node: Node
    select: Node | None

    @property
    def alias(self) -> str:
        """The name by which its columns are qualified."""
        return str(self.node.get("alias") or self.parts[-1])

    @property
    def place(self) -> int | None:
        """Its position in the text, in bytes."""
        return self.node.get("query_location")


def references(tree: Node) -> list[Reference]:
    """All table references of a parsed query, repeated ones included."""
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
    """The SELECT node of a text of one plain SELECT without CTEs, None for anything else."""
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
        # A common table expression is in its own scope only if it is recursive; otherwise the name is that of a table.
        query = entry["value"]
        yield from _walk(query, None, common | {name} if _is_recursive(query) else common)
        common |= {name}
    for key, child in node.items():
        if key != "cte_map":
            yield from _walk(child, inner, common)


def _is_common(parts: tuple[str, ...], common: frozenset[str]) -> bool:
    """Whether a name is that of a common table expression, or of the accumulated rows of a recursive one (`recurring.x`)."""
    return parts[-1].lower() in common and (len(parts) == 1 or [part.lower() for part in parts[:-1]] == ["recurring"])


def _is_recursive(query: object) -> bool:
    if isinstance(query, dict):
        return query.get("type") == "RECURSIVE_CTE_NODE" or any(_is_recursive(child) for child in query.values())
    return isinstance(query, list) and any(_is_recursive(child) for child in query)
