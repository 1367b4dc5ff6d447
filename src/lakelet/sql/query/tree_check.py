"""Check DuckDB's parse tree of a query against allow-lists of nodes and functions.

Every node is on a list or refused: what a later DuckDB adds is refused until it has been reviewed. Stored views and
restricted sessions are checked by it, each with its own lists and errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lakelet.errors import LakeletError
from lakelet.sql.query.parse_tree import Node

_EXPRESSIONS = frozenset(
    (
        *("BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION"),
        *("LAMBDA", "LAMBDA_REF", "OPERATOR", "POSITIONAL_REFERENCE", "STAR", "SUBQUERY", "TYPE", "WINDOW", "DEFAULT"),
    )
)
_PARTS = frozenset(
    (
        *("SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"),
        *("BASE_TABLE", "SUBQUERY", "JOIN", "EXPRESSION_LIST", "EMPTY", "EMPTY_FROM", "TABLE_FUNCTION", "PIVOT"),
        *("ORDER_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "DISTINCT_MODIFIER"),
        *("ORDER_DEFAULT", "ASCENDING", "DESCENDING"),
    )
)


@dataclass(frozen=True, slots=True)
class TreeCheck:
    """The functions allowed in expressions and in FROM; `refused_part` and `refused_function` make the errors."""

    functions: frozenset[str]
    table_functions: frozenset[str]
    refused_part: Callable[[str], LakeletError]
    refused_function: Callable[[str], LakeletError]
    more_expressions: frozenset[str] = field(default=frozenset())

    def check(self, node: object) -> None:
        """Raises at the first node of a parse tree that is not on the lists."""
        if isinstance(node, list):
            for child in node:
                self.check(child)
            return
        if not isinstance(node, dict):
            return
        kind, part = node.get("class"), node.get("type")
        if kind is not None and kind not in _EXPRESSIONS and kind not in self.more_expressions:
            raise self.refused_part(str(kind).lower())
        if kind is None and isinstance(part, str) and part not in _PARTS:
            raise self.refused_part(part.lower().replace("_", " "))
        if part == "TABLE_FUNCTION":
            self._check_function(node.get("function", {}), self.table_functions)
        if "function_name" in node:
            # A function allowed in FROM is allowed elsewhere.
            self._check_function(node, self.functions | self.table_functions)
        for key, child in node.items():
            # A constant is data, whatever it looks like.
            if key != "literal":
                self.check(child)

    def _check_function(self, node: Node, allowed: frozenset[str]) -> None:
        path = [str(part).lower() for part in node.get("qualified_name", {}).get("path", ())]
        called = str(node.get("function_name", "")).lower()
        if path[-1:] not in ([called], []) or len(path) > 1 or called not in allowed:
            raise self.refused_function(".".join(path) or called)
