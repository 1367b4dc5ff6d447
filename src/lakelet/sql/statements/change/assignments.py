"""Parse assignments to columns: the items of SET, and the values of VALUES.

    SET a = 1, b = DEFAULT            SET (a, b) = (1, DEFAULT)          SET (a, b) = ROW(1, 2)
    SET (a, b) = (SELECT x, y …)      SET (a, b) = 5                     SET r.x = 1, t.a = 2

A trailing comma is allowed, as in DuckDB.
"""

from __future__ import annotations

from typing import Protocol

from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.statements.change.change_clauses import Assignment
from lakelet.sql.statements.change.row_expressions import QUERIES
from lakelet.sql.statements.text.query_text import Span
from lakelet.sql.statements.text.spans import read_span


class Owner(Protocol):
    """The table whose columns are set."""

    @property
    def alias(self) -> str:
        """The alias that may qualify columns."""

    @property
    def qualifier(self) -> tuple[str, ...]:
        """The parts of the full name that may qualify columns."""


def read_assignments(reader: WordReader, target: Owner, *stops: str) -> tuple[Assignment, ...]:
    """Reads the items of SET up to one of these keywords."""
    found = _read_item(reader, target, stops)
    while reader.accept(","):
        if reader.at_end or reader.peek().keyword in stops:
            break
        found += _read_item(reader, target, stops)
    for place, one in enumerate(found):
        for before in found[:place]:
            if _overlap(one, before):
                raise SqlError(f"column {_shown(one)!r} is set twice", reader.text, one.column.start)
    return tuple(found)


def read_value(reader: WordReader, *stops: str) -> Span | None:
    """Reads an expression, or DEFAULT, which is None."""
    is_end = reader.peek(1).kind == "end" or reader.peek(1).keyword in (*stops, ")")
    if reader.at("DEFAULT") and is_end:
        reader.take()
        return None
    return read_span(reader, *stops)


def read_values(reader: WordReader) -> list[Span | None]:
    """Reads (expression, DEFAULT, …)."""
    return reader.listed(lambda: read_value(reader, ","))


def read_columns(reader: WordReader) -> list[Word]:
    """Reads (column, …); SqlError at a column named twice."""

    def column() -> Word:
        reader.name("a column")
        return reader.words[reader.place - 1]

    found = reader.listed(column)
    for place, word in enumerate(found):
        if word.text.lower() in [other.text.lower() for other in found[:place]]:
            raise SqlError(f"column {word.text!r} is named twice", reader.text, word.start)
    return found


def _read_item(reader: WordReader, target: Owner, stops: tuple[str, ...]) -> list[Assignment]:
    if not reader.at("("):
        path = _read_path(reader, target)
        reader.expect("=")
        return [Assignment(path[0], read_value(reader, ",", *stops), path=path[1:])]
    columns = read_columns(reader)
    reader.expect("=")
    start = reader.peek()
    if len(columns) > 1 and reader.at("(") and reader.peek(1).keyword in QUERIES:
        query = read_span(reader, ",", *stops)
        return [Assignment(one, query, part, len(columns)) for part, one in enumerate(columns)]
    values = _read_row(reader, stops)
    if values is None:
        value = read_value(reader, ",", *stops)
        return [Assignment(one, value) for one in columns]
    if len(values) != len(columns):
        raise SqlError(f"expected {len(columns)} values, found {len(values)}", reader.text, start.start)
    return [Assignment(one, value) for one, value in zip(columns, values, strict=True)]


def _read_row(reader: WordReader, stops: tuple[str, ...]) -> list[Span | None] | None:
    """Reads (…, …) or ROW(…, …); None, with nothing read, where they are part of a larger expression."""
    start = reader.place
    is_row = reader.accept("ROW")
    if reader.at("(") and reader.peek(1).keyword not in QUERIES:
        values = read_values(reader)
        ends = reader.at_end or reader.peek().keyword in (",", *stops)
        if ends and (is_row or len(values) > 1):
            return values
    reader.place = start
    return None


def _read_path(reader: WordReader, target: Owner) -> tuple[Word, ...]:
    """Reads a column, qualified or not, and the path of fields inside it."""
    first = reader.place
    reader.name_parts("a column")
    words = [word for word in reader.words[first : reader.place] if word.keyword != "."]
    for owner in (target.qualifier, (target.alias,)):
        named = [word.text.lower() for word in words[: len(owner)]]
        if len(words) > len(owner) > 0 and named == [part.lower() for part in owner]:
            return tuple(words[len(owner) :])
    return tuple(words)


def _overlap(one: Assignment, other: Assignment) -> bool:
    """Whether both set the same column, or one a field inside what the other sets."""
    left = [word.text.lower() for word in (one.column, *one.path)]
    right = [word.text.lower() for word in (other.column, *other.path)]
    return all(mine == theirs for mine, theirs in zip(left, right, strict=False))


def _shown(one: Assignment) -> str:
    return ".".join(word.text for word in (one.column, *one.path))
