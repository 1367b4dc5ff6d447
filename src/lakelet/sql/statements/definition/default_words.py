"""Parse the DEFAULT of a column definition: a literal, or an expression.

    DEFAULT 'none'    DEFAULT -1    DEFAULT current_timestamp + INTERVAL 1 DAY    DEFAULT (uuid())    DEFAULT lower('A' || 'b')

An expression ends where no operator follows, so that NOT NULL, COMMENT and the like may follow; one with keyword operators,
such as `1 IN (2, 3)`, must be in parentheses. A constant expression is stored as its literal, which other engines understand
too.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.model.literals import parse_literal
from lakelet.model.types import DataType, Field
from lakelet.sink.rows.defaults import folded
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.statements.text.clauses import Literal, placed, read_literal

_WHAT = "a literal or an expression as the default"
_OPENING = {"(": ")", "[": "]", "{": "}"}
_ENDS = (",", ")", ";", "]", "}")
# Keywords that continue the column definition, and begin no expression.
_CLAUSES = ("NOT", "COMMENT", "PRIMARY", "UNIQUE", "CHECK", "REFERENCES", "FIRST", "AFTER")
_UNITS = frozenset(
    unit + plural
    for unit in (
        *("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"),
        *("DECADE", "CENTURY", "MILLENNIUM"),
    )
    for plural in ("", "S")
)


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression as it was written, and its first word."""

    text: str
    word: Word


Default = Literal | Expression


@dataclass(frozen=True, slots=True)
class GivenDefault:
    """A parsed default, not yet checked against the column's type."""

    written: Default

    def of_type(self, reader: WordReader, data_type: DataType, column: str) -> Default:
        """The default of a column of this type; SqlError if it does not convert."""
        written = self.written
        with placed(reader, written.word):
            if isinstance(written, Literal):
                if written.text is not None:
                    parse_literal(written.text, data_type, f"default of column {column!r}")
                return written
            literal = folded(Field(-1, column, data_type), written.text)
            return written if literal is None else Literal(literal, written.word)


def read_default(reader: WordReader) -> GivenDefault:
    """Reads a literal or an expression."""
    start, word = reader.place, reader.peek()
    if _begins_literal(reader):
        literal = read_literal(reader, _WHAT)
        if not _goes_on(reader):
            return GivenDefault(literal)
        reader.place = start
    if word.kind == "end" or word.keyword in (*_ENDS, *_CLAUSES):
        raise reader.error(_WHAT)
    _skip_expression(reader)
    first, behind = start, reader.place
    if word.keyword == "(" and _closing(reader, start) == behind - 1 and behind - first > 2:
        first, behind = first + 1, behind - 1
    return GivenDefault(Expression(reader.source(first, behind), word))


def _begins_literal(reader: WordReader) -> bool:
    start = reader.place
    try:
        read_literal(reader)
    except SqlError:
        return False
    finally:
        reader.place = start
    return True


def _goes_on(reader: WordReader) -> bool:
    """Whether an operator comes next."""
    word = reader.peek()
    return (word.kind == "symbol" and word.keyword not in _ENDS) or reader.at("AT", "TIME", "ZONE")


def _skip_expression(reader: WordReader) -> None:
    _skip_value(reader)
    while _goes_on(reader):
        if reader.accept("AT", "TIME", "ZONE") or reader.peek().keyword not in _OPENING:
            while reader.peek().kind == "symbol" and reader.peek().keyword not in (*_ENDS, *_OPENING):
                reader.take()
            _skip_value(reader)
        else:
            # After a value: arguments, or a subscript.
            _skip_group(reader)


def _skip_value(reader: WordReader) -> None:
    word = reader.peek()
    while reader.peek().keyword in ("-", "+", "~", "@"):
        reader.take()
    word = reader.peek()
    if word.kind == "end" or word.keyword in _ENDS:
        raise reader.error("an expression")
    if word.keyword in _OPENING:
        _skip_group(reader)
    elif word.keyword == "CASE":
        _skip_case(reader)
    elif word.keyword == "INTERVAL":
        reader.take()
        _skip_value(reader)
        if reader.peek().keyword in _UNITS:
            reader.take()
    else:
        reader.take()
        if word.is_name and reader.peek().kind == "string":
            # DATE '2026-01-01'
            reader.take()


def _skip_group(reader: WordReader) -> None:
    reader.place = _closing(reader, reader.place) + 1


def _closing(reader: WordReader, place: int) -> int:
    """The index of the bracket that closes the group opened at a position."""
    open_words: list[str] = []
    for at in range(place, len(reader.words)):
        keyword = reader.words[at].keyword
        if keyword in _OPENING:
            open_words.append(_OPENING[keyword])
        elif open_words and keyword == open_words[-1]:
            open_words.pop()
            if not open_words:
                return at
    reader.place = len(reader.words)
    raise reader.error("a closing parenthesis")


def _skip_case(reader: WordReader) -> None:
    depth = 0
    while not reader.at_end:
        word = reader.peek()
        if word.keyword in _OPENING:
            _skip_group(reader)
            continue
        depth += (word.keyword == "CASE") - (word.keyword == "END")
        reader.take()
        if depth == 0:
            return
    raise reader.error("END")
