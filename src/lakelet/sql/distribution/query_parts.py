"""Find the parts of a query that several workers run, and what is left of it where their rows are gathered.

    WITH s AS (SELECT g, sum(x) AS x FROM t GROUP BY g) SELECT avg(x) FROM s JOIN u ON …

    part      of t:  SELECT g AS c0, sum(x) AS c1 FROM t GROUP BY g
    combine   SELECT avg(x) FROM (SELECT c0 AS g, sum(c1) AS x FROM partials GROUP BY c0) AS s JOIN u ON …

The largest SELECT that can be split is: the whole query, else those in its FROM or in its UNION. What is not split is left as it
is written, and reads its tables where the rows are gathered. A function of the tree, and of two answers: what the columns of a
query are named, and which of its tables are worth to be split.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from lakelet.sql.distribution.gathered_select import GatheredSelect
from lakelet.sql.distribution.inlined_queries import inlined
from lakelet.sql.distribution.row_expressions import Columns, NotSplitError, check_row_expression
from lakelet.sql.distribution.split_query import PARTIALS, SelectSplitter, SplitQuery
from lakelet.sql.distribution.split_sources import Sources, SplitWay, operands, tables_in
from lakelet.sql.distribution.tree_nodes import statement, table, without_places
from lakelet.sql.query.parse_tree import Node

# Names that the queries use themselves.
_OWN_NAMES = re.compile(r"lakelet_(c\d+|parts?|partials\w*)", re.IGNORECASE)
# More parts than these are not worth their turns.
_MOST_PARTS = 8


@dataclass(frozen=True, slots=True)
class QueryPart:
    """What each worker runs over its shares of some tables and all rows of others, and the name of the rows of all workers."""

    rows: str
    worker: Node
    way: SplitWay


@dataclass(frozen=True, slots=True)
class QueryParts:
    """The parts of a query, and the query over their rows. `tables` are those that it reads besides."""

    parts: tuple[QueryPart, ...]
    combine: Node
    tables: frozenset[str]


def query_parts(
    tree: Node,
    tables: Mapping[str, Sequence[str]],
    names: Sequence[str],
    names_of: Callable[[Node], Sequence[str]],
    chosen: Callable[[Sequence[SplitWay]], SplitWay | None],
) -> QueryParts | None:
    """The parts of a query; None where it has none that can be split.

    `tables` are the columns of each table by the last part of its name in lower case, `names` those of the result; `names_of`
    gives those of a query, by its node, or NotSplitError; `chosen` the way in which a part is split, None where it is not worth
    it.
    """
    if any(
        _OWN_NAMES.fullmatch(one) for one in (*names, *tables, *(name for each in tables.values() for name in each))
    ):
        return None
    try:
        whole = inlined(tree["statements"][0]["node"])
    except NotSplitError:
        return None
    if _kept_names(whole) & set(tables):
        # A common table expression that hides a table.
        return None
    planner = _Planner(Sources(tables, names_of), chosen)
    combine = planner.query(whole, names, is_nested=False)
    if not planner.parts:
        return None
    return QueryParts(tuple(planner.parts), statement(combine), tables_in(combine) & set(tables))


class _Planner:
    """Collects the parts of one query."""

    def __init__(self, sources: Sources, chosen: Callable[[Sequence[SplitWay]], SplitWay | None]) -> None:
        self._sources = sources
        self._chosen = chosen
        self._known: dict[str, str] = {}
        self.parts: list[QueryPart] = []

    def query(self, node: Node, names: Sequence[str], *, is_nested: bool) -> Node:
        """A query whose parts are read from the rows of workers."""
        if node.get("type") == "SET_OPERATION_NODE":
            found = [self._operand(one) for one in operands(node)]
            sides = {"children": found} if "children" in node else {"left": found[0], "right": found[1]}
            return self._with_common({**node, **sides})
        if node.get("type") != "SELECT_NODE" or not node.get("from_table"):
            return node
        if not (node.get("cte_map") or {}).get("map"):
            for splitter in (_in_two, _gathered):
                try:
                    return self._split(node, names, splitter, is_nested=is_nested)
                except NotSplitError:
                    continue
        return self._with_common({**node, "from_table": self._source(node["from_table"])})

    def _split(self, select: Node, names: Sequence[str], splitter: _Split, *, is_nested: bool) -> Node:
        ways = self._sources.ways(select)
        columns = self._sources.columns(select["from_table"])
        if "where_clause" in select:
            check_row_expression(select["where_clause"], columns)
        split, is_reducing = splitter(select, columns, names)
        if is_nested and not is_reducing:
            raise NotSplitError
        way = self._chosen(ways) if ways else None
        if way is None:
            raise NotSplitError
        made: Node = split.combine["statements"][0]["node"]
        return {**made, "from_table": table(self._rows(split.worker, way))}

    def _rows(self, worker: Node, way: SplitWay) -> str:
        """The name of the rows of a part, which may be there already."""
        key = json.dumps(without_places(worker), sort_keys=True)
        if key not in self._known:
            if len(self.parts) == _MOST_PARTS:
                raise NotSplitError
            number = len(self.parts) + 1
            self._known[key] = PARTIALS if number == 1 else f"{PARTIALS}_{number}"
            self.parts.append(QueryPart(self._known[key], worker, way))
        return self._known[key]

    def _operand(self, query: Node) -> Node:
        try:
            return self.query(query, self._sources.output(query), is_nested=False)
        except NotSplitError:
            return query

    def _source(self, source: Node) -> Node:
        if source.get("type") == "JOIN":
            return {**source, **{side: self._source(source[side]) for side in ("left", "right")}}
        if source.get("type") != "SUBQUERY" or source.get("sample"):
            return source
        query = source["subquery"]["node"]
        try:
            made = self.query(query, self._sources.output(query), is_nested=True)
        except NotSplitError:
            return source
        return {**source, "subquery": {**source["subquery"], "node": made}}

    def _with_common(self, query: Node) -> Node:
        """A query whose common table expressions are those of workers."""
        entries = (query.get("cte_map") or {}).get("map", ())
        if not entries:
            return query
        made = []
        for entry in entries:
            value = entry["value"]
            body = value["query_node"]
            with suppress(NotSplitError):
                body = self.query(body, self._sources.output(body), is_nested=True)
            made.append({**entry, "value": {**value, "query_node": body}})
        return {**query, "cte_map": {"map": made}}


_Split = Callable[[Node, Columns, Sequence[str]], tuple[SplitQuery, bool]]


def _in_two(select: Node, columns: Columns, names: Sequence[str]) -> tuple[SplitQuery, bool]:
    splitter = SelectSplitter(select, columns, names)
    return splitter.split(), splitter.is_reducing


def _gathered(select: Node, columns: Columns, names: Sequence[str]) -> tuple[SplitQuery, bool]:
    return GatheredSelect(select, columns, names).split(), True


def _kept_names(node: object) -> set[str]:
    """The names of the common table expressions of a query."""
    if isinstance(node, list):
        return {name for one in node for name in _kept_names(one)}
    if not isinstance(node, dict):
        return set()
    found = {str(entry["key"]).lower() for entry in (node.get("cte_map") or {}).get("map", ())}
    return found | {name for key, value in node.items() if key != "literal" for name in _kept_names(value)}
