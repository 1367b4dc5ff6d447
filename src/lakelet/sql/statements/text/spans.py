"""Parsers shared by INSERT, UPDATE, DELETE and MERGE: targets, common table expressions, and the ends of expressions."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.errors import InvalidError
from lakelet.sql.context import Context
from lakelet.sql.iceberg.hooks import at_iceberg
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.statement import Statement
from lakelet.sql.statements.text.query_text import Span
from lakelet.table import Table

_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")


class Target:
    """The target of a statement: its written name, the opened table, and the alias that qualifies its columns."""

    def __init__(self, context: Context, parts: tuple[str, ...], alias: str | None) -> None:
        name = context.table_name(parts)
        if name.system is not None:
            raise InvalidError(f"{'.'.join(parts)}: a system table cannot be changed")
        self.parts = parts
        self.table: Table = context.table(parts)
        self.alias = alias or parts[-1]
        self.full_name = f"{name.database}.{parts[-1]}"

    @property
    def shown(self) -> str:
        """The table's name, for errors."""
        return self.table.name

    @property
    def qualifier(self) -> tuple[str, ...]:
        """What columns may be qualified by, beside the alias."""
        return self.parts if self.alias == self.parts[-1] else ()


@dataclass(frozen=True, slots=True)
class IcebergTarget:
    """An Iceberg table that a statement changes, with the first word of its name; it is opened when the statement runs."""

    parts: tuple[str, ...]
    word: Word
    alias: str

    @property
    def full_name(self) -> str:
        """The full name by which the statement may reference it again."""
        return ".".join(self.parts)

    @property
    def shown(self) -> str:
        """The table's name, for errors."""
        return self.full_name

    @property
    def qualifier(self) -> tuple[str, ...]:
        """What columns may be qualified by, beside the alias."""
        return self.parts if self.alias == self.parts[-1] else ()


ChangeTarget = Target | IcebergTarget


def read_target(context: Context, reader: WordReader, common: Span | None, *stops: str) -> ChangeTarget:
    """Reads `table [[AS] alias]`, which ends before one of these keywords."""
    word, is_iceberg = reader.peek(), at_iceberg(reader)
    parts = reader.name_parts("a table")
    alias = None
    if reader.accept("AS") or (reader.peek().is_name and reader.peek().keyword not in stops):
        alias = reader.name("an alias")
    if is_iceberg:
        return IcebergTarget(parts, word, alias or parts[-1])
    _check_common_names(reader, common, parts, word)
    return Target(context, parts, alias)


def read_common_tables(statement: Statement, keyword: str) -> Span | None:
    """Reads `WITH name AS (…), …` before a statement, up to its keyword."""
    reader = statement.reader
    if not reader.at("WITH"):
        return None
    return read_span(reader, keyword)


def _check_common_names(reader: WordReader, common: Span | None, parts: tuple[str, ...], word: Word) -> None:
    """SqlError at `word` if the target has the name of a common table expression, whose rows cannot be changed."""
    if common is None or len(parts) > 1:
        return
    depth = 0
    for place in range(common.first, common.behind):
        one = reader.words[place]
        before = reader.words[place - 1].keyword if place > common.first else ""
        if depth == 0 and before in ("WITH", "RECURSIVE", ",") and one.text.lower() == parts[0].lower():
            message = f"{one.text!r} is a common table of the statement, whose rows cannot be changed"
            raise SqlError(message, reader.text, word.start)
        depth += (one.keyword in _OPENING) - (one.keyword in _CLOSING)


def read_span(reader: WordReader, *stops: str, what: str = "an expression") -> Span:
    """Reads up to one of these keywords or signs, a closing parenthesis of an outer pair, or the end.

    Parenthesised text and CASE … END never stop it, nor does the FROM of IS DISTINCT FROM.
    """
    first = reader.place
    depth = cases = 0
    while not reader.at_end:
        keyword = reader.peek().keyword
        if depth == 0 and keyword in _CLOSING:
            break
        if depth == 0 and cases == 0 and keyword in stops and not _is_distinct_from(reader, first):
            break
        depth += (keyword in _OPENING) - (keyword in _CLOSING)
        is_field = reader.place > first and reader.words[reader.place - 1].keyword == "."
        if depth == 0 and not is_field:
            cases += (keyword == "CASE") - (keyword == "END" and cases > 0)
        reader.take()
    if depth:
        raise reader.error("a closing parenthesis")
    if reader.place == first:
        raise reader.error(what)
    return Span(first, reader.place)


def read_returning(reader: WordReader) -> Span | None:
    """Reads RETURNING and its list, to the end of the statement."""
    if reader.accept("RETURNING"):
        return read_rest(reader, "an expression")
    reader.finish()
    return None


def read_rest(reader: WordReader, what: str = "a query") -> Span:
    """Reads the rest of the statement."""
    if reader.at_end:
        raise reader.error(what)
    first, reader.place = reader.place, len(reader.words)
    return Span(first, reader.place)


def _is_distinct_from(reader: WordReader, first: int) -> bool:
    return (
        reader.peek().keyword == "FROM"
        and reader.place > first
        and reader.words[reader.place - 1].keyword == "DISTINCT"
    )
