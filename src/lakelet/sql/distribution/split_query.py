"""Split a query in two: what each worker runs over its share of one table, and what combines the rows of all workers.

    SELECT city, avg(age) FROM users WHERE age > 20 GROUP BY city ORDER BY 2 LIMIT 3

    worker    SELECT city AS c0, sum(age) AS c1, count(age) AS c2 FROM users WHERE age > 20 GROUP BY city
    combine   SELECT c0 AS city, CAST(sum(c1) AS DOUBLE) / CAST(sum(c2) AS DOUBLE) AS "avg(age)" FROM partials
              GROUP BY c0 ORDER BY 2 LIMIT 3

A pure function from DuckDB's parse tree to two others. Only what is on its lists is split, everything else is None and runs on
one node: the result of the two must be that of the query, whatever the shares are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakelet.sql.distribution.aggregate_parts import AggregateParts
from lakelet.sql.distribution.joined_tables import splittable
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
from lakelet.sql.query.parse_tree import Node, only_select

# The name of the rows of all workers in the combining query.
PARTIALS = "lakelet_partials"
# Names that the two queries use themselves.
_OWN_NAMES = re.compile(r"lakelet_(c\d+|parts?|partials)", re.IGNORECASE)
_KNOWN = frozenset(
    (
        *("type", "modifiers", "cte_map", "select_list", "from_table", "where_clause", "aggregate_handling"),
        *("group_expressions", "group_sets", "having"),
    )
)
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
_STANDARD = "STANDARD_HANDLING"


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


def splittable_tables(tree: Node) -> list[Node]:
    """The table references of a query of which one can be split, as far as its form tells; none where it is certainly not split.
    Names and expressions are not looked at."""
    select = only_select(tree)
    if select is None or set(select) - _KNOWN or not select.get("from_table"):
        return []
    try:
        _modifiers(select)
        return splittable(select["from_table"], None)
    except NotSplitError:
        return []


def split_query(tree: Node, columns: Mapping[str, Sequence[str]], names: Sequence[str]) -> SplitQuery | None:
    """The two queries; None where the query is not certainly one of those that can be split. `columns` are those of each table
    by its alias in lower case, `names` those of the result."""
    select = only_select(tree)
    if select is None or not splittable_tables(tree):
        return None
    if any(
        _OWN_NAMES.fullmatch(one) for one in (*names, *columns, *(name for each in columns.values() for name in each))
    ):
        return None
    known = Columns(columns)
    try:
        splittable(select["from_table"], known)
        if "where_clause" in select:
            check_row_expression(select["where_clause"], known)
        return _Splitter(select, known, names).split()
    except NotSplitError:
        return None


class _Splitter:
    """Splits one SELECT."""

    def __init__(self, select: Node, columns: Columns, names: Sequence[str]) -> None:
        self._select = select
        self._columns = columns
        self._names = names
        self._items: list[Node] = select["select_list"]
        self._modifiers = _modifiers(select)
        self._aliases = self._named_items()

    def split(self) -> SplitQuery:
        """The two queries; NotSplitError where they would not be the same."""
        select = self._select
        handling = select.get("aggregate_handling", _STANDARD)
        if handling != _STANDARD:
            raise NotSplitError
        has_groups = bool(select.get("group_expressions")) or "group_sets" in select
        if has_groups or "having" in select or any(is_aggregate(item) for item in self._items):
            return self._grouped()
        return self._plain()

    def _named_items(self) -> dict[str, int]:
        """The items with an alias. One that hides a column would have to be told from it."""
        found: dict[str, int] = {}
        for place, item in enumerate(self._items):
            alias = str(item.get("alias") or "").lower()
            if not alias:
                continue
            if alias in found or (self._columns.has(alias) and not self._columns.is_just(item, alias)):
                raise NotSplitError
            found[alias] = place
        return found

    # ------------------------------------------------------------------ rows

    def _plain(self) -> SplitQuery:
        for order in self._modifiers.orders:
            self._check_sorted_names(order["expression"])
        for item in self._items:
            if item.get("class") == "STAR":
                if set(item) - _STAR:
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
            _modify(inner, given.distinct, given.orders, given.limit + given.offset, 0)
        elif given.distinct:
            _modify(inner, True, (), None, 0)
        parts = [part_name(place) for place in range(width + len(hidden))]
        worker = select_tree([column(name) for name in parts], subquery(inner, "lakelet_part", parts))
        combine = select_tree(
            [named(column(part), name) for part, name in zip(parts, self._names, strict=False)], table(PARTIALS)
        )
        _modify(combine, given.distinct, orders, given.limit, given.offset)
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
        parts = AggregateParts(groups, self._columns)
        items = [named(parts.combined(item), name) for item, name in zip(self._items, self._names, strict=True)]
        having = parts.combined(self._select["having"]) if "having" in self._select else None
        orders = [
            {**order, "expression": self._ordered_by(order["expression"], parts)} for order in self._modifiers.orders
        ]
        worker = select_tree(
            parts.worker_items(), self._select["from_table"], self._select.get("where_clause"), parts.worker_groups()
        )
        combine = select_tree(items, table(PARTIALS), None, [column(part_name(at)) for at in range(len(groups))])
        if having is not None:
            combine["statements"][0]["node"]["having"] = having
        given = self._modifiers
        _modify(combine, given.distinct, orders, given.limit, given.offset)
        return SplitQuery(worker, combine)

    def _groups(self) -> list[Node]:
        expressions = self._select.get("group_expressions", [])
        if self._select.get("group_sets", [list(range(len(expressions)))]) != [list(range(len(expressions)))]:
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


def _modifiers(select: Node) -> _Modifiers:
    """What comes behind a SELECT; NotSplitError for what is not understood."""
    distinct, limit, offset = False, None, 0
    orders: Sequence[Node] = ()
    for one in select.get("modifiers", ()):
        kind, more = one.get("type"), set(one) - {"type"}
        if kind == "DISTINCT_MODIFIER" and not more:
            distinct = True
        elif kind == "ORDER_MODIFIER" and more <= {"orders"}:
            orders = one.get("orders", ())
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


def _modify(select: Node, distinct: bool, orders: Sequence[Node], limit: int | None, offset: int) -> None:
    modifiers: list[Node] = []
    if distinct:
        modifiers.append({"type": "DISTINCT_MODIFIER"})
    if orders:
        modifiers.append({"type": "ORDER_MODIFIER", "orders": list(orders)})
    if limit is not None:
        modifiers.append({"type": "LIMIT_MODIFIER", "limit": integer(limit), "offset": integer(offset)})
    if modifiers:
        select["statements"][0]["node"]["modifiers"] = modifiers
