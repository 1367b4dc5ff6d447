"""Split a SELECT in two: what each worker runs over its share of one table, and what combines the rows of all workers.

    SELECT city, avg(age) FROM users WHERE age > 20 GROUP BY city ORDER BY 2 LIMIT 3

    worker    SELECT city AS c0, sum(age) AS c1, count(age) AS c2 FROM users WHERE age > 20 GROUP BY city
    combine   SELECT c0 AS city, CAST(sum(c1) AS DOUBLE) / CAST(sum(c2) AS DOUBLE) AS "avg(age)" FROM partials
              GROUP BY c0 ORDER BY 2 LIMIT 3

From DuckDB's parse tree to two others. Only what is on its lists is split, everything else is None and runs on
one node: the result of the two must be that of the query, whatever the shares are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakelet.sql.distribution.aggregate_parts import AggregateParts
from lakelet.sql.distribution.row_expressions import Columns, NotSplitError, check_row_expression, is_aggregate
from lakelet.sql.distribution.tree_nodes import (
    canonical,
    column,
    integer,
    integer_of,
    named,
    part_name,
    references_in,
    select_tree,
    subquery,
    table,
)
from lakelet.sql.query.parse_tree import Node

# The name of the rows of all workers in the combining query.
PARTIALS = "lakelet_partials"
KNOWN = frozenset(
    (
        *("type", "modifiers", "cte_map", "select_list", "from_table", "where_clause", "aggregate_handling"),
        *("group_expressions", "group_sets", "having", "qualify"),
    )
)
PLAIN_STAR = frozenset(
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
_STANDARD, _BY_ALL = "STANDARD_HANDLING", "FORCE_AGGREGATES"
_REDUCING = ("where_clause", "group_expressions", "group_sets", "having")


@dataclass(frozen=True, slots=True)
class SplitQuery:
    """Parse trees of the two queries. The worker's columns are named by `part_name`; the combining one reads them from the table
    `PARTIALS`."""

    worker: Node
    combine: Node


@dataclass(frozen=True, slots=True)
class _Modifiers:
    """What comes behind a SELECT."""

    distinct: bool
    orders: Sequence[Node]
    limit: int | None
    offset: int


class SelectSplitter:
    """Splits one SELECT, whose tables and WHERE have been checked."""

    def __init__(self, select: Node, columns: Columns, names: Sequence[str]) -> None:
        if set(select) - KNOWN:
            raise NotSplitError
        self._select = select
        self._columns = columns
        self._names = names
        self._items: list[Node] = select["select_list"]
        self._modifiers = _modifiers(select, len(names))
        self._aliases = self._named_items()

    def split(self) -> SplitQuery:
        """The two queries; NotSplitError where they would not be the same."""
        select = self._select
        handling = select.get("aggregate_handling", _STANDARD)
        if handling not in (_STANDARD, _BY_ALL):
            raise NotSplitError
        has_groups = bool(select.get("group_expressions")) or "group_sets" in select or handling == _BY_ALL
        if has_groups or "having" in select or any(is_aggregate(item) for item in self._items):
            return self._grouped()
        return self._plain()

    @property
    def is_reducing(self) -> bool:
        """Whether there may be fewer rows than the tables have."""
        given = self._modifiers
        return given.distinct or given.limit is not None or any(key in self._select for key in _REDUCING)

    def _named_items(self) -> dict[str, int]:
        """The items with an alias that others may name. Where one hides a column, neither may be named behind the items: which
        of them is meant differs from clause to clause."""
        found: dict[str, int] = {}
        clauses = [self._select.get(key) for key in ("group_expressions", "having", "qualify")]
        bare = {
            str(one["column_names"][0]).lower()
            for one in references_in([*clauses, self._modifiers.orders])
            if len(one["column_names"]) == 1
        }
        for place, item in enumerate(self._items):
            alias = str(item.get("alias") or "").lower()
            if not alias:
                continue
            is_hiding = self._columns.has(alias) and not self._columns.is_just(item, alias)
            if alias in found or (is_hiding and alias in bare):
                raise NotSplitError
            if not is_hiding:
                found[alias] = place
        return found

    # ------------------------------------------------------------------ rows

    def _plain(self) -> SplitQuery:
        if "qualify" in self._select:
            raise NotSplitError
        for order in self._modifiers.orders:
            self._check_sorted_names(order["expression"])
        for item in self._items:
            if item.get("class") == "STAR":
                if set(item) - PLAIN_STAR:
                    raise NotSplitError
            else:
                check_row_expression(item, self._columns)
        given = self._modifiers
        if given.limit is not None and not given.orders:
            # The first rows that come: one node finds them without reading the rest.
            raise NotSplitError
        width = len(self._names)
        hidden: list[Node] = []
        orders = [{**order, "expression": self._sorted_by(order["expression"], hidden)} for order in given.orders]
        inner = select_tree([*self._items, *hidden], self._select["from_table"], self._select.get("where_clause"))
        if given.limit is not None:
            modify(inner, given.distinct, given.orders, given.limit + given.offset, 0)
        elif given.distinct:
            modify(inner, True, (), None, 0)
        parts = [part_name(place) for place in range(width + len(hidden))]
        worker = select_tree([column(name) for name in parts], subquery(inner, "lakelet_part", parts))
        combine = select_tree(
            [named(column(part), name) for part, name in zip(parts, self._names, strict=False)], table(PARTIALS)
        )
        modify(combine, given.distinct, orders, given.limit, given.offset)
        return SplitQuery(worker, combine)

    def _sorted_by(self, expression: Node, hidden: list[Node]) -> Node:
        """What the combining query sorts by, of an expression that rows are sorted by; a column is added where none has it."""
        position = integer_of(expression)
        if position is not None:
            if not 1 <= position <= len(self._names):
                raise NotSplitError
            return column(part_name(position - 1))
        place = self._alias_place(expression)
        if place is not None:
            expression = self._items[place]
        else:
            check_row_expression(expression, self._columns)
        if not any(item.get("class") == "STAR" for item in self._items):
            wanted = canonical(expression, self._columns)
            for number, item in enumerate(self._items):
                if canonical(item, self._columns) == wanted:
                    return column(part_name(number))
        if self._modifiers.distinct:
            raise NotSplitError
        hidden.append(named(expression, ""))
        return column(part_name(len(self._names) + len(hidden) - 1))

    def _check_sorted_names(self, expression: Node) -> None:
        """NotSplitError where rows are sorted by a name that is also that of another column of the result: `n.id` is named `id`,
        and hides the `id` of a join with USING."""
        for reference in references_in(expression):
            name = str(reference["column_names"][-1]).lower()
            if len(reference["column_names"]) > 1 or name in self._aliases:
                continue
            meant = self._columns.resolved(reference)
            for item in self._items:
                is_star = item.get("class") == "STAR" and not meant[0]
                is_named = item.get("class") == "COLUMN_REF" and str(item["column_names"][-1]).lower() == name
                if is_star or (is_named and not item.get("alias") and self._columns.resolved(item) != meant):
                    raise NotSplitError

    def _alias_place(self, expression: Node) -> int | None:
        names = expression.get("column_names", ())
        if expression.get("class") == "COLUMN_REF" and len(names) == 1:
            return self._aliases.get(str(names[0]).lower())
        return None

    # ------------------------------------------------------------------ groups

    def _grouped(self) -> SplitQuery:
        if len(self._names) != len(self._items):
            raise NotSplitError
        for order in self._modifiers.orders:
            self._check_sorted_names(order["expression"])
        groups = self._groups()
        aliases = {alias: self._items[place] for alias, place in self._aliases.items()}
        parts = AggregateParts(groups, self._columns, aliases)
        items = [named(parts.combined(item), name) for item, name in zip(self._items, self._names, strict=True)]
        more = {key: parts.combined(self._select[key]) for key in ("having", "qualify") if key in self._select}
        orders = [
            {**order, "expression": self._ordered_by(order["expression"], parts)} for order in self._modifiers.orders
        ]
        worker = select_tree(
            parts.worker_items(), self._select["from_table"], self._select.get("where_clause"), parts.worker_groups()
        )
        combine = select_tree(items, table(PARTIALS), None, [column(part_name(at)) for at in range(len(groups))])
        node = combine["statements"][0]["node"]
        node.update(more)
        if "group_sets" in self._select:
            # Without groups, each empty set is a row.
            node["group_sets"] = self._select["group_sets"]
        given = self._modifiers
        modify(combine, given.distinct, orders, given.limit, given.offset)
        return SplitQuery(worker, combine)

    def _groups(self) -> list[Node]:
        expressions = self._select.get("group_expressions", [])
        if self._select.get("aggregate_handling") == _BY_ALL:
            expressions = [item for item in self._items if not is_aggregate(item)]
            if any(one.get("class") == "WINDOW" for one in expressions):
                raise NotSplitError
        found: list[Node] = []
        for given in expressions:
            position = integer_of(given)
            if position is not None:
                if not 1 <= position <= len(self._items):
                    raise NotSplitError
                expression = self._items[position - 1]
            else:
                place = self._alias_place(given)
                expression = given if place is None else self._items[place]
            if expression.get("class") == "CONSTANT":
                raise NotSplitError
            check_row_expression(expression, self._columns)
            found.append(named(expression, ""))
        return found

    def _ordered_by(self, expression: Node, parts: AggregateParts) -> Node:
        position = integer_of(expression)
        if position is not None:
            return integer(position)
        place = self._alias_place(expression)
        return parts.combined(expression) if place is None else integer(place + 1)


def _modifiers(select: Node, width: int) -> _Modifiers:
    """What comes behind a SELECT of `width` columns; NotSplitError for what is not understood."""
    distinct, limit, offset = False, None, 0
    orders: Sequence[Node] = ()
    for one in select.get("modifiers", ()):
        kind, more = one.get("type"), set(one) - {"type"}
        if kind == "DISTINCT_MODIFIER" and not more:
            distinct = True
        elif kind == "ORDER_MODIFIER" and more <= {"orders"}:
            orders = [order for each in one.get("orders", ()) for order in _each_column(each, width)]
        elif kind == "LIMIT_MODIFIER" and more <= {"limit", "offset"}:
            limit = integer_of(one.get("limit", {}))
            skipped = integer_of(one["offset"]) if "offset" in one else 0
            if limit is None or skipped is None:
                raise NotSplitError
            offset = skipped
        else:
            raise NotSplitError
    for order in orders:
        if set(order) - {"type", "null_order", "expression"} or order["expression"].get("class") == "STAR":
            raise NotSplitError
    return _Modifiers(distinct, orders, limit, offset)


def _each_column(order: Node, width: int) -> list[Node]:
    """What ORDER BY ALL stands for: all columns by their places."""
    expression = order["expression"]
    if expression.get("class") != "STAR":
        return [order]
    if set(expression) - {"class", "type", "columns", "query_location", "query_location_length"}:
        raise NotSplitError
    return [{**order, "expression": integer(place)} for place in range(1, width + 1)]


def modify(select: Node, distinct: bool, orders: Sequence[Node], limit: int | None, offset: int) -> None:
    modifiers: list[Node] = []
    if distinct:
        modifiers.append({"type": "DISTINCT_MODIFIER"})
    if orders:
        modifiers.append({"type": "ORDER_MODIFIER", "orders": list(orders)})
    if limit is not None:
        modifiers.append({"type": "LIMIT_MODIFIER", "limit": integer(limit), "offset": integer(offset)})
    if modifiers:
        select["statements"][0]["node"]["modifiers"] = modifiers
