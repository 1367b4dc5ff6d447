"""Rewrite whole-row references: the name of a table where a column's is expected.

    UPDATE t SET note = to_json(t)    ->    to_json(struct_pack(id := t.id, note := t.note))

In the statement's query a table has internal columns besides its own, which are no part of such a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lakelet.sql.context import Context
from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.statement import Statement
from lakelet.sql.statements.text.query_text import QueryText, Span


def whole_rows(
    context: Context,
    statement: Statement,
    spans: Sequence[Span],
    alias: str,
    columns: Sequence[str],
    others: Sequence[str],
) -> dict[int, str]:
    """The replacement at each position where `alias` is a row of these columns; `others` are columns of other tables."""
    known = {name.lower() for name in (*columns, *others)}
    suspect = [span for span in spans if _names_alone(statement, span, alias)]
    if not suspect or alias.lower() in known:
        return {}
    text = QueryText(statement).add("SELECT ")
    for number, span in enumerate(suspect):
        text.add(", (" if number else "(").add_span(span).add(")")
    with context.engine.space() as space:
        tree = space.tree(text.text)
    packed = ", ".join(f"{quoted(name)} := {quoted(alias)}.{quoted(name)}" for name in columns)
    places = [text.place_of(int(node["query_location"])) for node in _columns(tree) if _is(node, alias)]
    return {place: f"struct_pack({packed})" for place in places if place is not None}


def _names_alone(statement: Statement, span: Span, alias: str) -> bool:
    """Whether the name occurs without a column after it."""
    words = statement.reader.words
    for place in range(span.first, span.behind):
        behind = words[place + 1].keyword if place + 1 < len(words) else ""
        if words[place].is_name and words[place].text.lower() == alias.lower() and behind not in (".", "("):
            return True
    return False


def _columns(node: object) -> Iterator[dict[str, Any]]:
    if isinstance(node, list):
        for child in node:
            yield from _columns(child)
    elif isinstance(node, dict):
        if node.get("class") == "COLUMN_REF":
            yield node
        for child in node.values():
            yield from _columns(child)


def _is(node: dict[str, Any], alias: str) -> bool:
    names = [str(name).lower() for name in node.get("column_names", ())]
    return names == [alias.lower()] and "query_location" in node
