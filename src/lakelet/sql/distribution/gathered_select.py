"""A SELECT whose rows are filtered and projected by workers, and the rest of which is computed where they are gathered.

    SELECT id, rank() OVER (PARTITION BY city ORDER BY x DESC) AS r FROM t WHERE y > 1 QUALIFY r <= 3

    worker    SELECT id AS c0, city AS c1, x AS c2 FROM t WHERE y > 1 QUALIFY rank() OVER (PARTITION BY city ORDER BY x DESC) <= 3
    combine   SELECT c0 AS id, rank() OVER (PARTITION BY c1 ORDER BY c2 DESC) AS r FROM partials QUALIFY r <= 3

So are windows, medians and the like, which need all rows of a group at once. Of the first rows of each partition, none is missing
among the first ones of the worker that has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakelet.sql.distribution.row_expressions import AGGREGATES, PURE, Columns, NotSplitError, check_row_expression
from lakelet.sql.distribution.split_query import KNOWN, PARTIALS, PLAIN_STAR, SplitQuery
from lakelet.sql.distribution.tree_nodes import (
    column,
    integer_of,
    named,
    part_name,
    select_tree,
    subquery,
    table,
    without_places,
)
from lakelet.sql.query.parse_tree import Node

# Functions of all rows of a group whose values do not depend on the order of the rows, but for equal ones.
_OF_GROUPS = AGGREGATES | frozenset(
    (
        *("median", "quantile", "quantile_cont", "quantile_disc", "mad", "approx_count_distinct", "kahan_sum", "fsum"),
        *("favg", "product", "stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp", "corr"),
        *("covar_pop", "covar_samp", "skewness", "kurtosis", "entropy", "arg_max", "arg_min", "max_by", "min_by"),
        *("regr_slope", "regr_intercept", "regr_r2", "regr_count", "regr_avgx", "regr_avgy"),
    )
)
_OF_WINDOWS = _OF_GROUPS | frozenset(
    (
        *("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"),
        *("first_value", "last_value", "nth_value", "first", "last"),
    )
)
# Gathered in an order of their own.
_OF_ORDERED = frozenset(("list", "array_agg", "string_agg", "group_concat", "listagg", "first", "last"))
_RANKS = frozenset(("row_number", "rank", "dense_rank"))
_UPPER = {"COMPARE_LESSTHANOREQUALTO": 0, "COMPARE_LESSTHAN": 1, "COMPARE_EQUAL": 0}
_CLAUSES = ("having", "qualify", "group_expressions", "modifiers")
_CLASSES = frozenset(
    (
        *("CONSTANT", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "OPERATOR", "BETWEEN", "CASE", "CAST", "TYPE"),
        *("FUNCTION", "WINDOW"),
    )
)


class GatheredSelect:
    """Splits one SELECT, whose tables and WHERE have been checked."""

    def __init__(self, select: Node, columns: Columns, names: Sequence[str]) -> None:
        if set(select) - KNOWN:
            raise NotSplitError
        self._select = select
        self._columns = columns
        self._names = names
        self._parts: dict[tuple[str, ...], Node] = {}
        self._items = [one for item in select["select_list"] for one in self._each(item)]
        if len(self._items) != len(names):
            raise NotSplitError
        self._aliases = self._named_items()

    def split(self) -> SplitQuery:
        """The two queries; NotSplitError where they would not be the same, or nothing is won."""
        select = self._select
        if not any(_is_of_many(value) for key, value in select.items() if key not in ("from_table", "where_clause")):
            # Each row for itself: that would have been split, could it be.
            raise NotSplitError
        combine = select_tree(
            [named(self._rewritten(item), name) for item, name in zip(self._items, self._names, strict=True)],
            table(PARTIALS),
        )
        node = combine["statements"][0]["node"]
        for key, value in select.items():
            if key in _CLAUSES:
                node[key] = self._clause(value)
            elif key not in ("select_list", "from_table", "where_clause", "cte_map", "type"):
                node[key] = value
        sent = list(self._parts.values()) or [{**_ONE, "alias": part_name(0)}]
        worker = select_tree(sent, select["from_table"], select.get("where_clause"))
        first = self._first_rows()
        if first is not None:
            worker["statements"][0]["node"]["qualify"] = first
        parts = [part_name(place) for place in range(len(sent))]
        # The names of the columns that are sent are none that the query sees.
        inner = {**worker["statements"][0]["node"], "select_list": [named(one, "") for one in sent]}
        source = subquery({"statements": [{"node": inner}]}, "lakelet_part", parts)
        return SplitQuery(select_tree([column(name) for name in parts], source), combine)

    # ------------------------------------------------------------------ names

    def _each(self, item: Node) -> list[Node]:
        """The items that an item stands for."""
        if item.get("class") != "STAR":
            return [item]
        if set(item) - PLAIN_STAR or item.get("qualified_exclude_list") or self._select["from_table"]["type"] == "JOIN":
            raise NotSplitError
        ((alias, names),) = self._columns.tables.items()
        if str(item.get("relation_name") or alias).lower() != alias:
            raise NotSplitError
        left_out = {str(name).lower() for name in item.get("exclude_list", ())}
        return [_reference(alias, name) for name in names if name.lower() not in left_out]

    def _named_items(self) -> frozenset[str]:
        """The aliases that other expressions may name; NotSplitError for one that hides a column."""
        found = set()
        for item in self._items:
            alias = str(item.get("alias") or "").lower()
            if not alias:
                continue
            if alias in found or (self._columns.has(alias) and not self._columns.is_just(item, alias)):
                raise NotSplitError
            found.add(alias)
        return frozenset(found)

    def _clause(self, node: Any) -> Any:
        """A clause behind the items, whose names are those of columns that are sent."""
        if isinstance(node, list):
            return [self._clause(one) for one in node]
        if not isinstance(node, dict):
            return node
        if "class" in node:
            if node["class"] == "STAR" and not set(node) - {"class", "type", "columns", "query_location"}:
                return node
            return self._rewritten(node)
        return {key: self._clause(value) for key, value in node.items()}

    def _rewritten(self, node: Any) -> Any:
        """An expression over the columns that are sent."""
        if isinstance(node, list):
            return [self._rewritten(one) for one in node]
        if not isinstance(node, dict):
            return node
        if "class" not in node:
            return {key: value if key in _AS_IT_IS else self._rewritten(value) for key, value in node.items()}
        kind = node["class"]
        if kind not in _CLASSES:
            raise NotSplitError
        if kind == "COLUMN_REF":
            return self._sent(node)
        if kind in ("FUNCTION", "WINDOW"):
            _check_function(node)
        return {key: value if key in _AS_IT_IS else self._rewritten(value) for key, value in node.items()}

    def _sent(self, reference: Node) -> Node:
        names = [str(name) for name in reference["column_names"]]
        if len(names) == 1 and names[0].lower() in self._aliases and not self._columns.has(names[0].lower()):
            return reference
        key = self._columns.resolved(reference)
        if key not in self._parts:
            self._parts[key] = {**column(""), "column_names": names, "alias": part_name(len(self._parts))}
        return column(str(self._parts[key]["alias"]))

    # ------------------------------------------------------------------ first rows

    def _first_rows(self) -> Node | None:
        """The condition by which a worker leaves out rows that are not among the first of their partitions there; None where all
        of them are needed."""
        qualify = self._select.get("qualify")
        if qualify is None or qualify.get("class") != "COMPARISON" or qualify.get("type") not in _UPPER:
            return None
        rank, most = qualify["left"], integer_of(qualify["right"])
        if rank.get("class") == "COLUMN_REF" and len(rank["column_names"]) == 1:
            name = str(rank["column_names"][0]).lower()
            rank = next((one for one in self._items if str(one.get("alias") or "").lower() == name), rank)
        if rank.get("class") != "WINDOW" or rank.get("function_name") not in _RANKS or not rank.get("orders"):
            return None
        if most is None or any(without_places(one) != without_places(named(rank, "")) for one in self._windows()):
            return None
        if _is_grouped(self._select) or set(rank) - _RANK_KEYS:
            return None
        for one in [*rank.get("partitions", ()), *(order["expression"] for order in rank["orders"])]:
            check_row_expression(one, self._columns)
        kind = "COMPARE_LESSTHANOREQUALTO"
        return {**qualify, "type": kind, "left": named(rank, ""), "right": {**_ONE, "literal": _literal(most, qualify)}}

    def _windows(self) -> list[Node]:
        return [named(one, "") for one in _windows_in([self._items, *(self._select.get(key) for key in _CLAUSES)])]


_ONE: Node = {"class": "CONSTANT", "type": "VALUE_CONSTANT", "literal": {"kind": "INTEGER", "text": "1"}}
_AS_IT_IS = frozenset(("literal", "qualified_name", "type_expr"))
_RANK_KEYS = frozenset(
    (
        *("class", "type", "alias", "query_location", "query_location_length", "function_name", "qualified_name"),
        *("partitions", "orders", "start", "end"),
    )
)


def _literal(most: int, qualify: Node) -> Node:
    return {"kind": "INTEGER", "text": str(max(most - _UPPER[qualify["type"]], 0))}


def _reference(alias: str, name: str) -> Node:
    return {"class": "COLUMN_REF", "type": "COLUMN_REF", "column_names": [alias, name]}


def _check_function(node: Node) -> None:
    """NotSplitError for a function whose value may be another one where rows come in another order."""
    name = str(node.get("function_name", "")).lower()
    path = [str(part).lower() for part in node.get("qualified_name", {}).get("path", ())]
    known = _OF_WINDOWS if node["class"] == "WINDOW" else PURE | _OF_GROUPS
    if (node.get("order_bys") or {}).get("orders"):
        known = known | _OF_ORDERED
    if name not in known or path not in ([], [name]):
        raise NotSplitError


def _is_of_many(node: object) -> bool:
    """Whether a part of a SELECT has a value that needs several rows."""
    if isinstance(node, list):
        return any(_is_of_many(one) for one in node)
    if not isinstance(node, dict):
        return False
    name = str(node.get("function_name", "")).lower()
    if node.get("distinct_on_targets"):
        return True
    if node.get("class") == "WINDOW" or (node.get("class") == "FUNCTION" and name in _OF_GROUPS | _OF_ORDERED):
        return True
    return any(_is_of_many(value) for key, value in node.items() if key != "literal")


def _is_grouped(select: Node) -> bool:
    has_groups = any(key in select for key in ("group_expressions", "group_sets", "having"))
    return has_groups or any(not _has_rows_alone(item) for item in select["select_list"])


def _has_rows_alone(node: object) -> bool:
    if isinstance(node, list):
        return all(_has_rows_alone(one) for one in node)
    if not isinstance(node, dict):
        return True
    if node.get("class") == "FUNCTION" and str(node.get("function_name", "")).lower() in _OF_GROUPS | _OF_ORDERED:
        return False
    return all(_has_rows_alone(value) for key, value in node.items() if key != "literal")


def _windows_in(node: object) -> list[Node]:
    if isinstance(node, list):
        return [found for one in node for found in _windows_in(one)]
    if not isinstance(node, dict):
        return []
    if node.get("class") == "WINDOW":
        return [node]
    return [found for key, value in node.items() if key != "literal" for found in _windows_in(value)]
