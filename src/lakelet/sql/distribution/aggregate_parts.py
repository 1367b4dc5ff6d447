"""Aggregates in two steps: what a worker computes over its rows, and what is computed of that.

    count(x)             count(x)                 coalesce(sum(c), 0)
    sum(x), min(x), …    the same                 the same of c
    avg(x)               sum(x), count(x)         sum(c1) / sum(c2)
    count(DISTINCT x)    x, as one more group     count(DISTINCT c)
    rank() OVER (ORDER BY count(x))               the same over the groups of all workers

The parts of a row of a worker are first its groups, then the arguments of DISTINCT, then partial aggregates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakelet.sql.distribution.row_expressions import (
    AGGREGATES,
    Columns,
    NotSplitError,
    arguments_of,
    check_row_expression,
    checked_children,
)
from lakelet.sql.distribution.tree_nodes import (
    canonical,
    cast,
    coalesce,
    column,
    function,
    integer,
    named,
    part_name,
)
from lakelet.sql.query.parse_tree import Node

_SAME = frozenset(("sum", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor"))
_AVERAGES = frozenset(("avg", "mean"))
_PLAIN_KEYS = frozenset(
    (
        *("class", "type", "alias", "query_location", "query_location_length"),
        *("function_name", "order_bys", "arguments", "qualified_name"),
    )
)
_FILTERED = _PLAIN_KEYS | {"filter"}
_DISTINCT = _FILTERED | {"distinct"}
_TRUE_COUNTS = frozenset(("count_if", "countif"))
_COUNTS = _TRUE_COUNTS | {"count", "count_star"}
# What a window has besides expressions: the name of its function and the ends of its frame.
_WINDOW = frozenset(
    (
        *("class", "type", "alias", "query_location", "query_location_length", "function_name", "qualified_name"),
        *("start", "end", "start_expr", "end_expr", "exclude_clause", "ignore_nulls", "distinct"),
        *("arguments", "children", "partitions", "orders", "filter_expr", "offset_expr", "default_expr"),
    )
)


class AggregateParts:
    """Collects the parts that expressions of a grouped query need."""

    def __init__(self, groups: Sequence[Node], columns: Columns, aliases: Mapping[str, Node]) -> None:
        """`aliases` are the expressions that other expressions may name."""
        self._columns = columns
        self._aliases = aliases
        self._groups = list(groups)
        self._group_keys = [canonical(one, columns) for one in groups]
        self._distinct: dict[str, Node] = {}
        self._partial: dict[str, Node] = {}
        # References to parts whose places are known only when all have been collected.
        self._references: list[tuple[Node, str, bool]] = []

    def combined(self, node: Node) -> Node:
        """The expression over the parts that has the value of an expression over groups of rows."""
        kind = node.get("class")
        if kind == "COLUMN_REF" and (named_item := self._alias(node)) is not None:
            return self.combined(named_item)
        try:
            place = self._group_keys.index(canonical(node, self._columns))
        except (ValueError, NotSplitError):
            pass
        else:
            return column(part_name(place))
        if kind == "COLUMN_REF":
            raise NotSplitError
        if kind == "WINDOW":
            if set(node) - _WINDOW:
                raise NotSplitError
            found: Node = self._window(node)
            return found
        if node.get("type") == "GROUPING_FUNCTION":
            return {**named(node, ""), "children": [self.combined(one) for one in node["children"]]}
        if kind == "FUNCTION" and str(node.get("function_name", "")).lower() in AGGREGATES:
            return self._aggregate(node)
        checked_children(node, self._columns)
        return self._rebuilt(node)

    def worker_groups(self) -> list[Node]:
        """What a worker groups by."""
        return [*self._groups, *self._distinct.values()]

    def worker_items(self) -> list[Node]:
        """What a worker gives. The references to its parts are correct from now on."""
        keys = [*((key, True) for key in self._distinct), *((key, False) for key in self._partial)]
        places = {key: len(self._groups) + number for number, key in enumerate(keys)}
        for reference, key, is_distinct in self._references:
            reference["column_names"] = [part_name(places[key, is_distinct])]
        parts = [*self.worker_groups(), *self._partial.values()]
        if not parts:
            raise NotSplitError
        return [named(one, part_name(place)) for place, one in enumerate(parts)]

    def _alias(self, node: Node) -> Node | None:
        """The item that a name means, if it means one."""
        names = [str(name).lower() for name in node.get("column_names", ())]
        return self._aliases.get(names[0]) if len(names) == 1 and not self._columns.has(names[0]) else None

    def _window(self, node: Any) -> Any:
        """A part of a window whose expressions are combined ones."""
        if isinstance(node, list):
            return [self._window(one) for one in node]
        if not isinstance(node, dict):
            return node
        if "class" in node and node["class"] != "WINDOW":
            return self.combined(node)
        return {key: value if key == "qualified_name" else self._window(value) for key, value in node.items()}

    def _rebuilt(self, node: Node) -> Node:
        """A node whose expressions are combined ones."""
        made = dict(node)
        for key in ("left", "right", "input", "lower", "upper", "child", "else_expr"):
            if key in made:
                made[key] = self.combined(made[key])
        if "children" in made:
            made["children"] = [self.combined(one) for one in made["children"]]
        if "arguments" in made:
            made["arguments"] = [{"expression": self.combined(one["expression"])} for one in made["arguments"]]
        if "case_checks" in made:
            made["case_checks"] = [
                {key: self.combined(value) for key, value in check.items()} for check in made["case_checks"]
            ]
        return made

    def _aggregate(self, node: Node) -> Node:
        name = str(node["function_name"]).lower()
        arguments = arguments_of(node, AGGREGATES)
        if len(arguments) > 1:
            raise NotSplitError
        for argument in arguments:
            check_row_expression(argument, self._columns)
        if node.get("distinct"):
            if set(node) - _DISTINCT or not arguments:
                raise NotSplitError
            made = {**named(node, ""), "arguments": [{"expression": self._part(arguments[0], is_distinct=True)}]}
            if "filter" in node:
                check_row_expression(node["filter"], self._columns)
                made["filter"] = self._part(node["filter"], is_distinct=True)
            return made
        if set(node) - _FILTERED:
            raise NotSplitError
        if "filter" in node:
            check_row_expression(node["filter"], self._columns)
        if name in _COUNTS:
            total = function("sum", self._part(node))
            # A count of true values is NULL where all values are.
            return total if name in _TRUE_COUNTS else cast(coalesce(total, integer(0)), "BIGINT")
        if not arguments:
            raise NotSplitError
        if name in _AVERAGES:
            total, count = (self._part(_called(node, part)) for part in ("sum", "count"))
            values = [cast(function("sum", one), "DOUBLE") for one in (total, count)]
            return function("/", *values, is_operator=True)
        if name in _SAME:
            return function(name, self._part(node))
        raise NotSplitError

    def _part(self, node: Node, *, is_distinct: bool = False) -> Node:
        """A reference to a part that workers give."""
        key = canonical(node, self._columns)
        parts = self._distinct if is_distinct else self._partial
        parts.setdefault(key, named(node, ""))
        reference = column("")
        self._references.append((reference, key, is_distinct))
        return reference


def _called(node: Node, name: str) -> Node:
    """A call of another function with the same arguments and filter."""
    return {**named(node, ""), "function_name": name, "qualified_name": {"path": [name]}}
