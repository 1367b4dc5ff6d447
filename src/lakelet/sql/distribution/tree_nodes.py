"""Nodes of parse trees, as DuckDB serialises them and reads them again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakelet.sql.query.parse_tree import Node

if TYPE_CHECKING:
    from lakelet.sql.distribution.row_expressions import Columns

_PLACES = frozenset(("query_location", "query_location_length", "alias"))


def part_name(place: int) -> str:
    """The name of a column of the workers' rows."""
    return f"lakelet_c{place}"


def column(name: str) -> Node:
    """A reference to a column."""
    return {"class": "COLUMN_REF", "type": "COLUMN_REF", "column_names": [name]}


def table(name: str) -> Node:
    """A reference to a table."""
    return {"type": "BASE_TABLE", "table_name": name, "qualified_name": {"path": [name]}}


def integer(value: int) -> Node:
    """A whole number."""
    return {"class": "CONSTANT", "type": "VALUE_CONSTANT", "literal": {"kind": "INTEGER", "text": str(value)}}


def integer_of(node: Node) -> int | None:
    """The value of a node that is a whole number; None for any other."""
    value = node.get("literal", {}) if node.get("class") == "CONSTANT" else {}
    text = str(value.get("text", ""))
    return int(text) if value.get("kind") == "INTEGER" and text.isascii() and text.isdigit() else None


def function(name: str, *arguments: Node, is_operator: bool = False) -> Node:
    """A call of a function."""
    made: Node = {
        "class": "FUNCTION",
        "type": "FUNCTION",
        "function_name": name,
        "order_bys": {"type": "ORDER_MODIFIER"},
        "arguments": [{"expression": one} for one in arguments],
        "qualified_name": {"path": [name]},
    }
    if is_operator:
        made["is_operator"] = True
    return made


def coalesce(*values: Node) -> Node:
    """The first value that is not NULL."""
    return {"class": "OPERATOR", "type": "OPERATOR_COALESCE", "children": list(values)}


def cast(value: Node, type_name: str) -> Node:
    """A value as a type without parameters."""
    kind = {"class": "TYPE", "type": "TYPE", "type_name": type_name, "qualified_name": {"path": [type_name]}}
    return {"class": "CAST", "type": "OPERATOR_CAST", "child": value, "type_expr": kind}


def named(expression: Node, name: str) -> Node:
    """An expression under a name; without one for an empty name."""
    made = {key: value for key, value in expression.items() if key != "alias"}
    return {**made, "alias": name} if name else made


def select_tree(items: Sequence[Node], source: Node, where: Node | None = None, groups: Sequence[Node] = ()) -> Node:
    """The tree of a SELECT."""
    node: Node = {
        "type": "SELECT_NODE",
        "cte_map": {},
        "select_list": list(items),
        "from_table": source,
        "aggregate_handling": "STANDARD_HANDLING",
    }
    if where is not None:
        node["where_clause"] = where
    if groups:
        node["group_expressions"] = list(groups)
        node["group_sets"] = [list(range(len(groups)))]
    return {"error": False, "statements": [{"node": node}]}


def subquery(tree: Node, alias: str, columns: Sequence[str]) -> Node:
    """A query in FROM, with names of its columns."""
    return {
        "type": "SUBQUERY",
        "alias": alias,
        "subquery": {"node": tree["statements"][0]["node"]},
        "column_name_alias": list(columns),
    }


def references_in(node: object) -> list[Node]:
    """The references to columns in an expression."""
    if isinstance(node, list):
        return [found for one in node for found in references_in(one)]
    if not isinstance(node, dict) or node.get("class") == "SUBQUERY":
        return []
    if node.get("class") == "COLUMN_REF":
        return [node]
    return [found for key, value in node.items() if key != "literal" for found in references_in(value)]


def canonical(node: Node, columns: Columns) -> str:
    """A text that is the same for expressions that are written alike, whatever their places, aliases and letters of names."""
    return json.dumps(_plain(node, columns), sort_keys=True)


def _plain(node: object, columns: Columns) -> object:
    if isinstance(node, list):
        return [_plain(one, columns) for one in node]
    if not isinstance(node, dict):
        return node
    if node.get("class") == "COLUMN_REF":
        return {"column": columns.resolved(node)}
    if node.get("class") == "SUBQUERY":
        # Its names are its own.
        return {"query": without_places(node)}
    return {
        key: value if key == "literal" else _plain(value, columns) for key, value in node.items() if key not in _PLACES
    }


def without_places(node: object) -> object:
    """A part of a tree without the places of its words in the text."""
    if isinstance(node, list):
        return [without_places(one) for one in node]
    if not isinstance(node, dict):
        return node
    return {
        key: value if key == "literal" else without_places(value)
        for key, value in node.items()
        if key not in ("query_location", "query_location_length")
    }


def statement(query: Node) -> Node:
    """The tree of a text of one query."""
    return {"error": False, "statements": [{"node": query}]}
