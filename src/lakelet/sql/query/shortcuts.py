"""Queries answered from the plan, wholly or in part: row counts, and the first rows of a table.

DuckDB pushes neither a LIMIT nor a count down to a table that it reads, so both are taken from the parsed query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import InvalidError
from lakelet.model.types import Field
from lakelet.sql.query.conditions import whole_condition
from lakelet.sql.query.parse_tree import Node, Reference, only_select
from lakelet.sql.statement import Params

if TYPE_CHECKING:
    from lakelet.sql.query.table_view import TableView

_PLAIN = frozenset(("type", "cte_map", "select_list", "from_table", "aggregate_handling", "modifiers"))
_LIMIT = frozenset(("type", "limit", "offset"))


def counted(tree: Node, view: TableView, fields: Sequence[Field], params: Params) -> SqlResult | None:
    """The result of `SELECT count(*) FROM table [WHERE …]`, None for any other query."""
    found = _plain_count(tree)
    if found is None:
        return None
    select, source, name = found
    scan = replace(view.scan, where=None)
    if "where_clause" in select:
        path = tuple(str(part) for part in source["qualified_name"]["path"])
        use = Reference(path, source, select)
        text = whole_condition(use, fields, params)
        if text is None:
            return None
        from lakelet.predicate.where import parse_where  # noqa: PLC0415 - it takes a while to load.

        try:
            scan = replace(scan, where=parse_where(text, scan.schema.fields))
        except (InvalidError, RecursionError):
            return None
    return _count(name, scan.count())


def all_counted(tree: Node, rows: Callable[[], int | None]) -> SqlResult | None:
    """The result of `SELECT count(*) FROM table`, if the row count is known; None for any other query."""
    found = _plain_count(tree)
    if found is None or "where_clause" in found[0]:
        return None
    number = rows()
    return None if number is None else _count(found[2], number)


def _count(name: str, number: int) -> SqlResult:
    return SqlResult.of_table(pa.table({name: pa.array([number], pa.int64())}))


def _plain_count(tree: Node) -> tuple[Node, Node, str] | None:
    """The SELECT, the table and the name of the only column of a query that counts rows of a table."""
    select = only_select(tree)
    if select is None or set(select) - _PLAIN - {"where_clause"} or select.get("modifiers"):
        return None
    source, items = select["from_table"], select["select_list"]
    if source.get("type") != "BASE_TABLE" or set(source) - {
        *("type", "alias", "query_location", "query_location_length"),
        *("schema_name", "table_name", "qualified_name"),
    }:
        return None
    if len(items) != 1 or items[0].get("function_name") != "count_star" or _has_more(items[0]):
        return None
    return select, source, str(items[0].get("alias") or "count_star()")


def _has_more(function: Node) -> bool:
    """Whether a count has a FILTER, DISTINCT or another modifier."""
    known = {"class", "type", "alias", "query_location", "query_location_length", "function_name", "order_bys"}
    known.add("qualified_name")
    return bool(set(function) - known) or bool(function.get("order_bys", {}).get("orders"))


def limited(tree: Node, uses: Sequence[Reference]) -> int | None:
    """The most rows that a query of the form `SELECT columns FROM table LIMIT n [OFFSET m]` needs; None for any other."""
    select = only_select(tree)
    if select is None or set(select) - _PLAIN or len(uses) != 1 or select["from_table"] is not uses[0].node:
        return None
    if uses[0].node.get("sample") or select.get("aggregate_handling") != "STANDARD_HANDLING":
        return None
    if not all(item.get("type") in ("STAR", "COLUMN_REF", "VALUE_CONSTANT") for item in select["select_list"]):
        return None
    modifiers = select.get("modifiers", ())
    # Other modifiers, such as a percentage, are not pushed down.
    if len(modifiers) != 1 or modifiers[0].get("type") != "LIMIT_MODIFIER" or set(modifiers[0]) - _LIMIT:
        return None
    limit = _number(modifiers[0].get("limit"))
    offset = _number(modifiers[0]["offset"]) if "offset" in modifiers[0] else 0
    return None if limit is None or offset is None else limit + offset


def _number(node: Node | None) -> int | None:
    value = (node or {}).get("literal", {})
    text = str(value.get("text", ""))
    return int(text) if value.get("kind") == "INTEGER" and text.isdigit() else None
