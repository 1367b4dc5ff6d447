"""Whether a stored view does nothing but read the lake: asked of DuckDB's parse of it, when it is made and when it is read.

Everything that a query can be made of is either known here to be harmless or refused: what a later DuckDB adds is refused until
somebody has looked at it.
"""

from __future__ import annotations

from typing import Any

from lakelet.errors import InvalidError
from lakelet.sql.views.functions import ALLOWED, TABLES

Node = dict[str, Any]
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


def check_tree(tree: Node, name: str) -> None:
    """InvalidError unless the parsed text is one query over tables by harmless functions."""
    if tree.get("error"):
        reason = tree.get("error_message")
        raise InvalidError(f"view {name!r}: expected one query that begins with SELECT, WITH or FROM: {reason}")
    if len(tree.get("statements", ())) != 1:
        raise InvalidError(f"view {name!r}: expected one query, found {len(tree.get('statements', ()))}")
    _check(tree["statements"][0], name)


def _check(node: object, name: str) -> None:
    if isinstance(node, list):
        for child in node:
            _check(child, name)
        return
    if not isinstance(node, dict):
        return
    kind, part = node.get("class"), node.get("type")
    if kind is not None and kind not in _EXPRESSIONS:
        raise InvalidError(f"view {name!r}: a view takes no {str(kind).lower()}")
    if kind is None and isinstance(part, str) and part not in _PARTS:
        raise InvalidError(f"view {name!r}: a view takes no {part.lower().replace('_', ' ')}")
    allowed = ALLOWED
    if part == "TABLE_FUNCTION":
        allowed = TABLES
        _check_function(node.get("function", {}), allowed, name)
    if "function_name" in node:
        # What is allowed behind FROM is allowed elsewhere.
        _check_function(node, ALLOWED | TABLES, name)
    for key, child in node.items():
        # A constant is data, whatever it looks like.
        if key != "literal":
            _check(child, name)


def _check_function(node: Node, allowed: frozenset[str], name: str) -> None:
    path = [str(part).lower() for part in node.get("qualified_name", {}).get("path", ())]
    called = str(node.get("function_name", "")).lower()
    if path[-1:] not in ([called], []) or len(path) > 1 or called not in allowed:
        shown = ".".join(path) or called
        raise InvalidError(
            f"view {name!r}: a view does not call {shown}(); it reads tables and views, by functions that reach nothing else"
        )
