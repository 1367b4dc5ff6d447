"""Which tables of a FROM may be split: those of which each of its rows has exactly one row.

    a JOIN b      either                 a LEFT JOIN b, a SEMI JOIN b, a ANTI JOIN b     a
    a, b          either                 a RIGHT JOIN b     b                            a FULL JOIN b     none
    (SELECT x + 1 FROM a WHERE …)   a    (… FROM a UNION ALL … FROM b)   both at once

With the shares of such tables, and all rows of the others, the rows of all shares are those of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lakelet.sql.distribution.row_expressions import Columns, NotSplitError, check_row_expression, is_aggregate
from lakelet.sql.query.parse_tree import Node

_PLACES = ("type", "query_location", "query_location_length", "alias")
_TABLE = frozenset((*_PLACES, "schema_name", "table_name", "qualified_name"))
_JOIN = frozenset((*_PLACES, "left", "right", "condition", "join_type", "ref_type", "using_columns", "is_implicit"))
_QUERY = frozenset((*_PLACES, "subquery", "column_name_alias"))
_ROWS = frozenset(("type", "cte_map", "select_list", "from_table", "where_clause", "aggregate_handling"))
_STAR = frozenset(
    (
        "class",
        "type",
        "query_location",
        "query_location_length",
        "relation_name",
        "exclude_list",
        "qualified_exclude_list",
    )
)
_SIDES = {"INNER": ("left", "right"), "LEFT": ("left",), "SEMI": ("left",), "ANTI": ("left",), "RIGHT": ("right",)}
# More ways than this to split the tables of one FROM are not looked at.
_MOST_WAYS = 64
_CONSTANTS = frozenset(("CONSTANT", "CAST", "TYPE", "STAR"))
_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SplitWay:
    """Names of tables that are split together, and of those of which all rows are read."""

    split: frozenset[str]
    whole: frozenset[str] = _NOTHING


class Sources:
    """What the queries of a text read: the columns of each table by its name in lower case; `names_of` gives the columns of a
    query, NotSplitError where it is none without the queries around it."""

    def __init__(self, tables: Mapping[str, Sequence[str]], names_of: Callable[[Node], Sequence[str]]) -> None:
        self.tables = tables
        self._names_of = names_of

    def ways(self, select: Node) -> list[SplitWay]:
        """The ways in which the rows of a SELECT may be split, as far as FROM tells. NotSplitError for what is not understood."""
        asked = tables_in([value for key, value in select.items() if key not in ("from_table", "cte_map")])
        ways = [SplitWay(one.split, one.whole | asked) for one in self._ways(select.get("from_table") or {})]
        return [one for one in ways if not one.split & one.whole]

    def columns(self, source: Node, outer: Columns | None = None) -> Columns:
        """The columns of a FROM, all of whose expressions are checked."""
        found: dict[str, Sequence[str]] = {}
        conditions: list[Node] = []
        self._collect(source, found, conditions, outer)
        made = Columns(found, outer, self._check_subquery)
        for one in conditions:
            check_row_expression(one, made)
        return made

    def output(self, query: Node) -> Sequence[str]:
        """The names of the columns of a query."""
        return self._names_of(query)

    # ------------------------------------------------------------------ ways

    def _ways(self, source: Node) -> list[SplitWay]:
        kind = source.get("type")
        if kind == "BASE_TABLE":
            return [SplitWay(frozenset((self._table(source),)))]
        if kind == "SUBQUERY":
            if set(source) - _QUERY:
                raise NotSplitError
            return self._query_ways(source["subquery"]["node"])
        if kind != "JOIN" or set(source) - _JOIN or source.get("alias"):
            raise NotSplitError
        if source.get("ref_type", "REGULAR") not in ("REGULAR", "CROSS"):
            raise NotSplitError
        found = []
        for side in _SIDES.get(source.get("join_type", "INNER"), ()):
            other = tables_in(source["left" if side == "right" else "right"])
            asked = tables_in(source.get("condition"))
            try:
                found += [SplitWay(one.split, one.whole | other | asked) for one in self._ways(source[side])]
            except NotSplitError:
                continue
        return found[:_MOST_WAYS]

    def _query_ways(self, query: Node) -> list[SplitWay]:
        """The ways to split a query in FROM, each of whose rows is made of a row of what it reads."""
        if query.get("type") == "SET_OPERATION_NODE":
            ways = [SplitWay(_NOTHING)]
            for one in union_all(query):
                more = self._query_ways(one)
                ways = [SplitWay(a.split | b.split, a.whole | b.whole) for a in ways for b in more][:_MOST_WAYS]
            return ways
        if not is_of_rows(query):
            raise NotSplitError
        return self.ways(query)

    def _table(self, source: Node) -> str:
        path = [str(part).lower() for part in source.get("qualified_name", {}).get("path", ())]
        if set(source) - _TABLE or not path or path[-1] not in self.tables:
            raise NotSplitError
        return path[-1]

    # ------------------------------------------------------------------ columns

    def _collect(
        self, source: Node, found: dict[str, Sequence[str]], conditions: list[Node], outer: Columns | None
    ) -> None:
        kind = source.get("type")
        if kind == "JOIN":
            if set(source) - _JOIN or source.get("alias"):
                raise NotSplitError
            for side in ("left", "right"):
                self._collect(source[side], found, conditions, outer)
            if "condition" in source:
                conditions.append(source["condition"])
            return
        if kind == "BASE_TABLE":
            name = self._table(source)
            alias, columns = str(source.get("alias") or name), self.tables[name]
        elif kind == "SUBQUERY" and not set(source) - _QUERY:
            alias, columns = str(source.get("alias") or ""), self._subquery_columns(source)
        else:
            raise NotSplitError
        if not alias or alias.lower() in found:
            raise NotSplitError
        found[alias.lower()] = columns

    def _subquery_columns(self, source: Node) -> Sequence[str]:
        query = source["subquery"]["node"]
        names = list(self._names_of(query))
        self.check_steady(query, None)
        given = source.get("column_name_alias", ())
        found = [*given, *names[len(given) :]]
        if len({name.lower() for name in found}) < len(names):
            raise NotSplitError
        return found

    def _check_subquery(self, node: Node, outer: Columns) -> None:
        """NotSplitError for a query in an expression that does not give the same rows on each worker."""
        if "child" in node:
            check_row_expression(node["child"], outer)
        self.check_steady(node["subquery"]["node"], outer)

    def check_steady(self, query: Node, outer: Columns | None) -> None:
        """NotSplitError for a query that may give other rows each time: all of its values are exact, and those of its rows."""
        if _is_constant(query):
            return
        if query.get("type") == "SET_OPERATION_NODE":
            if query.get("modifiers") or (query.get("cte_map") or {}).get("map"):
                raise NotSplitError
            for one in operands(query):
                self.check_steady(one, outer)
            return
        known = _ROWS | {"group_expressions", "group_sets", "having", "modifiers"}
        if query.get("type") != "SELECT_NODE" or set(query) - known or (query.get("cte_map") or {}).get("map"):
            raise NotSplitError
        if any(set(one) != {"type"} or one["type"] != "DISTINCT_MODIFIER" for one in query.get("modifiers", ())):
            raise NotSplitError
        columns = self.columns(query["from_table"], outer)
        for item in query["select_list"]:
            if item.get("class") != "STAR":
                check_row_expression(item, columns, has_aggregates=True)
            elif set(item) - _STAR:
                raise NotSplitError
        for key in ("where_clause", "having"):
            if key in query:
                check_row_expression(query[key], columns, has_aggregates=True)
        for one in query.get("group_expressions", ()):
            if one.get("class") != "CONSTANT":
                check_row_expression(one, columns)


def _is_constant(node: object) -> bool:
    """Whether a part of a tree is made of constants alone."""
    if isinstance(node, list):
        return all(_is_constant(one) for one in node)
    if not isinstance(node, dict):
        return True
    if node.get("class", "CONSTANT") not in _CONSTANTS or node.get("type") in ("BASE_TABLE", "TABLE_FUNCTION"):
        return False
    if "function_name" in node or node.get("sample") or node.get("modifiers"):
        return False
    return all(_is_constant(value) for key, value in node.items() if key != "literal")


def is_of_rows(query: Node) -> bool:
    """Whether each row of a query is made of one row of what it reads, as far as its form tells."""
    if query.get("type") != "SELECT_NODE" or set(query) - _ROWS or (query.get("cte_map") or {}).get("map"):
        return False
    if query.get("aggregate_handling", "STANDARD_HANDLING") != "STANDARD_HANDLING" or not query.get("from_table"):
        return False
    return not is_aggregate(query["select_list"])


def operands(query: Node) -> list[Node]:
    """The queries of a UNION, an EXCEPT or an INTERSECT."""
    return list(query["children"]) if "children" in query else [query["left"], query["right"]]


def union_all(query: Node) -> list[Node]:
    """The queries of a UNION ALL without anything behind it; NotSplitError for anything else."""
    is_plain = not query.get("modifiers") and not (query.get("cte_map") or {}).get("map")
    if query.get("setop_type") != "UNION" or not query.get("setop_all", True) or not is_plain:
        raise NotSplitError
    return operands(query)


def tables_in(node: object) -> frozenset[str]:
    """The names of the tables that are named in a part of a tree, in lower case."""
    if isinstance(node, list):
        return frozenset(name for one in node for name in tables_in(one))
    if not isinstance(node, dict):
        return _NOTHING
    found = frozenset(name for key, value in node.items() if key != "literal" for name in tables_in(value))
    path = node.get("qualified_name", {}).get("path", ()) if node.get("type") == "BASE_TABLE" else ()
    return found | {str(path[-1]).lower()} if path else found
