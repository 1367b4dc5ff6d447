"""What a stranger's query may contain: one SELECT, pure functions, and no name but those of the tables it is given.

The query is parsed by DuckDB. Every node, function and table function of its tree must be on a list, or the query is refused
before it is bound; so must the text be that has been edited. A text without a tree, such as PIVOT, is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from lakelet.errors import InvalidError, LakeletError, PermissionDeniedError
from lakelet.sql.engine.engine_errors import Placed, parser_error
from lakelet.sql.query.parse_tree import Node
from lakelet.sql.query.query_words import is_duckdbs
from lakelet.sql.query.tree_check import TreeCheck
from lakelet.sql.sandbox.growing_functions import GROWING, growth_of
from lakelet.sql.views.functions import ALLOWED, TABLES

# States of aggregates are memory of the engine that a text could forge.
_STATES = frozenset(("combine", "combine_aggr", "finalize"))
# Reserved for what the sandbox registers itself.
RESERVED = "lakelet_"
FUNCTIONS = ALLOWED - _STATES - GROWING
TABLE_FUNCTIONS = TABLES


def check_tree(tree: Node, placed: Placed) -> Node:
    """The tree of one allowed SELECT; InvalidError for a text that is none, PermissionDeniedError for what is not allowed."""
    if tree.get("error"):
        if tree.get("error_type") == "parser":
            raise parser_error(tree, placed)
        raise PermissionDeniedError(
            "only a SELECT that is parsed as one query is allowed: no other statement, and no PIVOT"
        )
    statements = tree.get("statements", [])
    if len(statements) != 1:
        raise InvalidError(f"expected one SELECT, found {len(statements)} statements")
    _CHECK.check(statements)
    sources = set()
    for node in nodes(statements):
        _check_node(node)
        if node.get("type") == "TABLE_FUNCTION":
            sources.add(id(node.get("function")))
        growth = growth_of(node, is_source=id(node) in sources) if "function_name" in node else None
        if growth is not None:
            raise refused(growth)
    return tree


def nodes(tree: object) -> Iterator[Node]:
    """All nodes of a parse tree, outer ones first."""
    if isinstance(tree, dict):
        yield tree
        for key, child in tree.items():
            # A constant is data, whatever it looks like.
            if key != "literal":
                yield from nodes(child)
    elif isinstance(tree, list):
        for child in tree:
            yield from nodes(child)


def refused(what: str) -> PermissionDeniedError:
    """The error for something that is not allowed."""
    return PermissionDeniedError(f"{what} is not allowed in a query of the service")


def _check_node(node: Node) -> None:
    if node.get("export_state"):
        raise refused("EXPORT_STATE")
    if node.get("at_clause"):
        raise refused("AT, another version of a table,")
    for entry in (node.get("cte_map") or {}).get("map", ()):
        name = str(entry.get("key", ""))
        # Should the scope of the name be another one to DuckDB than to us, it must not be a file, nor something of DuckDB's own.
        if is_duckdbs((name,)) or name.lower().startswith(RESERVED):
            raise refused(f"{name!r} as the name of a common table expression")


def _refused_function(name: str) -> LakeletError:
    return refused(f"the function {name}()")


_CHECK = TreeCheck(FUNCTIONS, TABLE_FUNCTIONS, refused, _refused_function, frozenset(("PARAMETER",)))
