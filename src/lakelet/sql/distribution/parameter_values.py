"""Values of parameters written into a parse tree, each as a constant of the type that DuckDB gives the value."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lakelet.sql.distribution.row_expressions import NotSplitError
from lakelet.sql.distribution.tree_nodes import cast
from lakelet.sql.query.parse_tree import Node
from lakelet.sql.statement import Params

_INTEGER, _BIGINT = 1 << 31, 1 << 63


def with_values(tree: Node, params: Params) -> Node | None:
    """The tree without parameters; None where a value is not certainly the same as a constant."""
    if not params:
        return tree
    if isinstance(params, Mapping):
        values = {str(name).lower(): value for name, value in params.items()}
    else:
        values = {str(place): value for place, value in enumerate(params, 1)}
    try:
        found = _replaced(tree, values)
    except NotSplitError:
        return None
    return found if isinstance(found, dict) else None


def _replaced(node: object, values: Mapping[str, object]) -> object:
    if isinstance(node, list):
        return [_replaced(one, values) for one in node]
    if not isinstance(node, dict):
        return node
    if node.get("class") == "PARAMETER":
        name = str(node.get("identifier", "")).lower()
        if name not in values:
            raise NotSplitError
        made = _constant(values[name])
        return {**made, "alias": node["alias"]} if "alias" in node else made
    return {
        key: value if key == "literal" else _replaced(value, values)
        for key, value in node.items()
        if key != "named_param_map"
    }


def _constant(value: object) -> Node:
    match value:
        case bool():
            return _cast(str(value).lower(), "BOOLEAN")
        case int() if -_INTEGER <= value < _INTEGER:
            return _cast(str(value), "INTEGER")
        case int() if -_BIGINT <= value < _BIGINT:
            return _cast(str(value), "BIGINT")
        case float() if math.isfinite(value):
            return _cast(repr(value), "DOUBLE")
        case str():
            # As a literal, a text as a parameter becomes whatever it is compared with.
            return _text(value)
    raise NotSplitError


def _cast(text: str, kind: str) -> Node:
    return cast(_text(text), kind)


def _text(text: str) -> Node:
    return {"class": "CONSTANT", "type": "VALUE_CONSTANT", "literal": {"kind": "STRING", "text": text}}
