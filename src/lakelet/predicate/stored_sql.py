"""Check SQL text that is stored in a warehouse against allow-lists of syntax nodes and functions.

DuckDB's own parse tree of the text is checked when it is stored and again before it runs, for anybody may have written it. What
a later DuckDB adds is refused until it is listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lakelet.errors import InvalidError

Node = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Grammar:
    """The allow-list of a stored text: classes of expressions, other parts of a query, functions, and table functions.
    `noun` and `reach` are said in errors: what the text is, and what it is good for."""

    noun: str
    reach: str
    expressions: frozenset[str]
    parts: frozenset[str]
    functions: frozenset[str]
    table_functions: frozenset[str] = frozenset()


def check_nodes(tree: object, grammar: Grammar, where: str) -> None:
    """InvalidError for the first node of a parse tree that the grammar does not allow; `where` names the text."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending += reversed(node)
        elif isinstance(node, dict):
            _check(node, grammar, where)
            # A constant is data, whatever it looks like.
            pending += reversed([child for key, child in node.items() if key != "literal"])


def _check(node: Node, grammar: Grammar, where: str) -> None:
    kind, part = node.get("class"), node.get("type")
    if kind is not None and kind not in grammar.expressions:
        raise InvalidError(f"{where}: {grammar.noun} takes no {str(kind).lower()}")
    if kind is None and isinstance(part, str) and part not in grammar.parts:
        raise InvalidError(f"{where}: {grammar.noun} takes no {part.lower().replace('_', ' ')}")
    if part == "TABLE_FUNCTION":
        _check_function(node.get("function", {}), grammar.table_functions, grammar, where)
    if "function_name" in node:
        # What is allowed behind FROM is allowed elsewhere.
        _check_function(node, grammar.functions | grammar.table_functions, grammar, where)


def _check_function(node: Node, allowed: frozenset[str], grammar: Grammar, where: str) -> None:
    path = [str(part).lower() for part in node.get("qualified_name", {}).get("path", ())]
    called = str(node.get("function_name", "")).lower()
    if path[-1:] not in ([called], []) or len(path) > 1 or called not in allowed:
        shown = ".".join(path) or called
        raise InvalidError(f"{where}: {grammar.noun} does not call {shown}(); {grammar.reach}")
