"""Parse trees and texts of queries over two tables, `t` and `u`, for tests of how they are split."""

from __future__ import annotations

import json
from collections.abc import Sequence

import duckdb

from lakelet.sql.distribution.query_parts import QueryParts, query_parts
from lakelet.sql.distribution.row_expressions import NotSplitError
from lakelet.sql.distribution.split_sources import SplitWay
from lakelet.sql.query.parse_tree import Node

_COLUMNS = {
    "t": ("id", "g", "x", "y", "moment", "payload"),
    "u": ("id", "name"),
}
_TABLES = "CREATE TABLE t (id BIGINT, g VARCHAR, x BIGINT, y DOUBLE, moment TIMESTAMPTZ, payload STRUCT(age BIGINT))"


def made_duck() -> duckdb.DuckDBPyConnection:
    """DuckDB with the tables, without rows."""
    made = duckdb.connect()
    made.execute(f"{_TABLES}; CREATE TABLE u (id BIGINT, name VARCHAR)")
    return made


def tree_of(duck: duckdb.DuckDBPyConnection, sql: str) -> Node:
    """The parse tree of a query."""
    text = "SELECT json_serialize_sql($1, skip_null := true, skip_empty := true, skip_default := true)"
    found: Node = json.loads(duck.execute(text, [sql]).fetchall()[0][0])
    assert not found["error"], found
    return found


def text_of(duck: duckdb.DuckDBPyConnection, tree: Node) -> str:
    """The text of a parse tree, in which our own names are short."""
    found = str(duck.execute("SELECT json_deserialize_sql($1)", [json.dumps(tree)]).fetchall()[0][0])
    return found.replace("lakelet_", "")


def parts_of(
    duck: duckdb.DuckDBPyConnection, sql: str, names: Sequence[str] | None = None, large: str = "tuv"
) -> QueryParts | None:
    """The parts of a query, of whose tables some are large; a table with an earlier name is larger."""

    def names_of(node: Node) -> Sequence[str]:
        try:
            return duck.sql(text_of(duck, {"error": False, "statements": [{"node": node}]})).columns
        except duckdb.Error as error:
            raise NotSplitError from error

    def chosen(ways: Sequence[SplitWay]) -> SplitWay | None:
        found = min(ways, key=lambda way: sorted(way.split))
        return found if found.split & set(large) else None

    given = duck.sql(sql).columns if names is None else names
    return query_parts(tree_of(duck, sql), _COLUMNS, given, names_of, chosen)
