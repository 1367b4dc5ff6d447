"""Whether a stored view does nothing but read the lake: asked of DuckDB's parse of it, when it is made and when it is read.

Everything that a query can be made of is either known here to be harmless or refused: what a later DuckDB adds is refused until
somebody has looked at it.
"""

from __future__ import annotations

from lakelet.errors import InvalidError
from lakelet.predicate.stored_sql import Grammar, Node, check_nodes
from lakelet.sql.views.functions import ALLOWED, TABLES

_GRAMMAR = Grammar(
    noun="a view",
    reach="it reads tables and views, by functions that reach nothing else",
    expressions=frozenset(
        (
            *("BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION"),
            *("LAMBDA", "LAMBDA_REF", "OPERATOR", "POSITIONAL_REFERENCE", "STAR", "SUBQUERY", "TYPE", "WINDOW"),
            "DEFAULT",
        )
    ),
    parts=frozenset(
        (
            *("SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"),
            *("BASE_TABLE", "SUBQUERY", "JOIN", "EXPRESSION_LIST", "EMPTY", "EMPTY_FROM", "TABLE_FUNCTION", "PIVOT"),
            *("ORDER_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "DISTINCT_MODIFIER"),
            *("ORDER_DEFAULT", "ASCENDING", "DESCENDING"),
        )
    ),
    functions=ALLOWED,
    table_functions=TABLES,
)


def check_tree(tree: Node, name: str) -> None:
    """InvalidError unless the parsed text is one query over tables by harmless functions."""
    if tree.get("error"):
        reason = tree.get("error_message")
        raise InvalidError(f"view {name!r}: expected one query that begins with SELECT, WITH or FROM: {reason}")
    if len(tree.get("statements", ())) != 1:
        raise InvalidError(f"view {name!r}: expected one query, found {len(tree.get('statements', ()))}")
    check_nodes(tree["statements"][0], _GRAMMAR, f"view {name!r}")
