"""Put common table expressions into the places that name them, so that what reads a table is seen to read it.

    WITH s AS (SELECT x + 1 AS y FROM t) SELECT sum(y) FROM s     ->     SELECT sum(y) FROM (SELECT x + 1 AS y FROM t) AS s

One that is named twice is one set of rows, which may be another each time it is computed: it stays, unless each of its rows is
a row of a table. A name within one that is put in place must mean there what it meant where it was written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakelet.sql.distribution.row_expressions import PURE, NotSplitError
from lakelet.sql.query.parse_tree import Node

# More places than this are not worth their text.
_MOST_PLACES = 100
_KEPT_TYPES = frozenset(("RECURSIVE_CTE_NODE", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "DISTINCT_MODIFIER"))


@dataclass(frozen=True, slots=True)
class _Scope:
    """Common table expressions by their names in lower case: those that are put in place, and those that stay."""

    placed: Mapping[str, _Common]
    staying: Mapping[str, Node]


@dataclass(frozen=True, slots=True)
class _Common:
    """A common table expression that is put in place: its query, the names of its columns, and where it is written."""

    query: Node
    aliases: Sequence[str]
    scope: _Scope


def inlined(tree: Node) -> Node:
    """The tree with its common table expressions in place, where they may be; NotSplitError where that is too much."""
    found: Node = _Inliner().walked(tree, _Scope({}, {}))
    return found


class _Inliner:
    """Makes one tree."""

    def __init__(self) -> None:
        self._places = 0

    def walked(self, node: Any, scope: _Scope) -> Any:
        """A part of the tree, within common table expressions."""
        if isinstance(node, list):
            return [self.walked(one, scope) for one in node]
        if not isinstance(node, dict):
            return node
        if node.get("type") == "RECURSIVE_CTE_NODE":
            raise NotSplitError
        if node.get("type") == "BASE_TABLE":
            return self._placed(node, scope)
        entries = (node.get("cte_map") or {}).get("map", ())
        if not entries:
            return {key: value if key == "literal" else self.walked(value, scope) for key, value in node.items()}
        within, kept = scope, []
        uses = _uses(node)
        for entry in entries:
            name, value = str(entry["key"]).lower(), entry["value"]
            body = self.walked(value["query_node"], within)
            others = {key: one for key, one in within.placed.items() if key != name}
            if uses[name] <= 1 or _is_of_rows(body):
                others[name] = _Common(body, value.get("aliases", []), within)
                within = _Scope(others, within.staying)
            else:
                kept.append({**entry, "value": {**value, "query_node": body}})
                within = _Scope(others, {**within.staying, name: body})
        made = {key: self.walked(value, within) for key, value in node.items() if key != "cte_map"}
        return {**made, "cte_map": {"map": kept} if kept else {}}

    def _placed(self, node: Node, scope: _Scope) -> Node:
        path: Sequence[str] = node.get("qualified_name", {}).get("path", ())
        found = scope.placed.get(str(path[0]).lower()) if len(path) == 1 else None
        if found is None:
            return node
        if node.get("sample") or node.get("at_clause"):
            raise NotSplitError
        if any(scope.staying.get(name) is not found.scope.staying.get(name) for name in _uses(found.query)):
            # A name would mean another common table expression here.
            raise NotSplitError
        self._places += 1
        if self._places > _MOST_PLACES:
            raise NotSplitError
        names = [*node.get("column_name_alias", ())]
        names += found.aliases[len(names) :]
        made: Node = {
            "type": "SUBQUERY",
            "alias": node.get("alias") or str(path[0]),
            "subquery": {"node": found.query},
        }
        return {**made, "column_name_alias": names} if names else made


def _uses(node: object) -> Counter[str]:
    """How often tables are named by one word."""
    if isinstance(node, list):
        return sum((_uses(one) for one in node), Counter())
    if not isinstance(node, dict):
        return Counter()
    found: Counter[str] = sum((_uses(value) for key, value in node.items() if key != "literal"), Counter())
    path: Sequence[str] = node.get("qualified_name", {}).get("path", ()) if node.get("type") == "BASE_TABLE" else ()
    if len(path) == 1:
        found[str(path[0]).lower()] += 1
    return found


def _is_of_rows(node: object) -> bool:
    """Whether a query gives the same rows each time, of expressions that are the same everywhere."""
    if isinstance(node, list):
        return all(_is_of_rows(one) for one in node)
    if not isinstance(node, dict):
        return True
    if node.get("class") in ("WINDOW", "SUBQUERY") or node.get("type") in _KEPT_TYPES or node.get("sample"):
        return False
    if "function_name" in node and str(node["function_name"]).lower() not in PURE:
        return False
    return all(_is_of_rows(value) for key, value in node.items() if key != "literal")
