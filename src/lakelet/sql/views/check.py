"""Check DuckDB's parse tree of a stored view, when it is created and when it is read: it may only read the lake."""

from __future__ import annotations

from lakelet.errors import InvalidError
from lakelet.sql.query.parse_tree import Node
from lakelet.sql.query.tree_check import TreeCheck
from lakelet.sql.views.functions import ALLOWED, TABLES


def check_tree(tree: Node, name: str) -> None:
    """InvalidError unless the parsed text is one query over tables with allowed functions."""
    if tree.get("error"):
        reason = tree.get("error_message")
        raise InvalidError(f"view {name!r}: expected one query that begins with SELECT, WITH or FROM: {reason}")
    if len(tree.get("statements", ())) != 1:
        raise InvalidError(f"view {name!r}: expected one query, found {len(tree.get('statements', ()))}")
    TreeCheck(
        ALLOWED,
        TABLES,
        lambda part: InvalidError(f"view {name!r}: a view takes no {part}"),
        lambda function: InvalidError(
            f"view {name!r}: a view does not call {function}(); it reads tables and views, by functions that reach nothing else"
        ),
    ).check(tree["statements"][0])
