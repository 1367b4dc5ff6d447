"""Refuse aggregates, window functions, UNNEST and stars in expressions of a single row.

    UPDATE t SET a = max(a)                    refused, as DuckDB refuses it
    UPDATE t SET a = (SELECT max(a) FROM t)    fine: the aggregate is in a subquery

The expressions run inside a generated query, where DuckDB would apply these to all rows of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lakelet.sql.context import Context
from lakelet.sql.engine.duckdb_engine import Space
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.query.parse_tree import only_select
from lakelet.sql.statement import Statement
from lakelet.sql.statements.text.query_text import QueryText, Span

QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "PIVOT", "UNPIVOT")
_AGGREGATES = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'aggregate'"
_AGGREGATE, _WINDOW, _UNNEST, _STAR = "an aggregate", "a window function", "UNNEST", "a star"
# The names of DuckDB's aggregates, queried once.
_known: set[str] = set()


def check_row_expressions(
    context: Context, statement: Statement, spans: Sequence[Span], what: str, *, stars: bool = False
) -> None:
    """SqlError at an expression over more than one row; `stars` allows stars."""
    suspect = [span for span in spans if stars or _has_sign(statement, span)]
    if not suspect:
        return
    text = QueryText(statement).add("SELECT ")
    for number, span in enumerate(suspect):
        text.add(", " if number else "").add_span(span)
    with context.engine.space() as space:
        tree = space.tree(text.text)
        if tree.get("error"):
            # The statement's own query reports the syntax error.
            return
        select = only_select(tree)
        if select is None or select.get("from_table", {}).get("type") != "EMPTY" or set(select) & _MORE:
            raise _error(statement, spans[0], f"expected expressions in {what}, found a query")
        for node in _outside_queries(select.get("select_list", ())):
            found = _about_rows(node, space)
            if found is not None and not (stars and found == _STAR):
                raise text.error_at(int(node.get("query_location", 0)), f"{found} cannot stand in {what}")


_MORE = frozenset(("modifiers", "where_clause", "group_expressions", "having", "qualify", "sample"))


def _has_sign(statement: Statement, span: Span) -> bool:
    """Whether an expression has a call or a star."""
    return any(word.keyword in ("(", "*") for word in statement.reader.words[span.first : span.behind])


def _outside_queries(node: object) -> Iterator[dict[str, Any]]:
    """The expression nodes of a tree, without those of subqueries."""
    if isinstance(node, (list, tuple)):
        for child in node:
            yield from _outside_queries(child)
    elif isinstance(node, dict):
        if "class" in node:
            yield node
        for name, child in node.items():
            if name != "subquery":
                yield from _outside_queries(child)


def _about_rows(node: dict[str, Any], space: Space) -> str | None:
    match node.get("class"):
        case "WINDOW":
            return _WINDOW
        case "STAR":
            return _STAR
        case "FUNCTION":
            name = str(node.get("function_name", "")).lower()
            if name == "unnest":
                return _UNNEST
            if not _known:
                _known.update(str(row[0]).lower() for row in space.run(_AGGREGATES))
            return _AGGREGATE if name in _known else None
        case _:
            return None


def _error(statement: Statement, span: Span, message: str) -> SqlError:
    return SqlError(message, statement.reader.text, statement.reader.words[span.first].start)
