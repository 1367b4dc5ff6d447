"""Put common table expressions into the places that name them, so that what reads a table is seen to read it.

    WITH s AS (SELECT x + 1 AS y FROM t) SELECT sum(y) FROM s     ->     SELECT sum(y) FROM (SELECT x + 1 AS y FROM t) AS s

One that is named twice is one set of rows, which may be another each time it is computed: it stays, unless each of its rows is
a row of a table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lakelet.sql.distribution.row_expressions import PURE, NotSplitError
from lakelet.sql.query.parse_tree import Node

# More places than this are not worth their text.
_MOST_PLACES = 100
_KEPT_TYPES = frozenset(("RECURSIVE_CTE_NODE", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "DISTINCT_MODIFIER"))


def inlined(tree: Node) -> Node:
    """The tree with its common table expressions in place, where they may be; NotSplitError where that is too much."""
    found: Node = _Inliner().walked(tree, {})
    return found


class _Inliner:
    """Makes one tree."""

    def __init__(self) -> None:
        self._places = 0

    def walked(self, node: Any, common: Mapping[str, Node | None]) -> Any:
        """A part of the tree, within the common table expressions that are put in place, or stay (None)."""
        if isinstance(node, list):
            return [self.walked(one, common) for one in node]
        if not isinstance(node, dict):
            return node
        if node.get("type") == "RECURSIVE_CTE_NODE":
            raise NotSplitError
        if node.get("type") == "BASE_TABLE":
            return self._placed(node, common)
        entries = (node.get("cte_map") or {}).get("map", ())
        if not entries:
            return {key: value if key == "literal" else self.walked(value, common) for key, value in node.items()}
        within, kept = dict(common), []
        uses = _uses(node)
        for entry in entries:
            name, value = str(entry["key"]).lower(), entry["value"]
            body = self.walked(value["query_node"], within)
            if uses[name] <= 1 or _is_of_rows(body):
                within[name] = {"query": body, "aliases": value.get("aliases", [])}
            else:
                within[name] = None
                kept.append({**entry, "value": {**value, "query_node": body}})
        made = {key: self.walked(value, within) for key, value in node.items() if key != "cte_map"}
        return {**made, "cte_map": {"map": kept} if kept else {}}

    def _placed(self, node: Node, common: Mapping[str, Node | None]) -> Node:
        path: Sequence[str] = node.get("qualified_name", {}).get("path", ())
        found = common.get(str(path[0]).lower()) if len(path) == 1 else None
        if found is None:
            return node
        if node.get("sample") or node.get("at_clause"):
            raise NotSplitError
        self._places += 1
        if self._places > _MOST_PLACES:
            raise NotSplitError
        names = [*node.get("column_name_alias", ())]
        names += found["aliases"][len(names) :]
        made: Node = {
            "type": "SUBQUERY",
            "alias": node.get("alias") or str(path[0]),
            "subquery": {"node": found["query"]},
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
