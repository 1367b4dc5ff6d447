"""Time travel clauses of a query, replaced by names that DuckDB can resolve.

    FROM shop.orders FOR VERSION AS OF 3             a snapshot id, or a tag as text
    FROM shop.orders FOR TIMESTAMP AS OF '2026-01-01 12:00:00'    UTC where no zone is given; milliseconds as a number
    FROM shop.orders VERSION AS OF 3, FOR SYSTEM_VERSION AS OF 3, FOR SYSTEM_TIME AS OF …     the same
    FROM shop.orders AT (VERSION => 3)               DuckDB's own spelling, before or after an alias

The table with its version is replaced by a unique name, under which the query's space registers that version.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.query.stand_in import stand_in

_VERSIONS = ("VERSION", "SYSTEM_VERSION")
_TIMES = ("TIMESTAMP", "SYSTEM_TIME")
# Keywords that may follow a table and are not its alias.
_NO_ALIAS = frozenset(
    (
        *(
            "WHERE",
            "GROUP",
            "HAVING",
            "WINDOW",
            "QUALIFY",
            "ORDER",
            "LIMIT",
            "OFFSET",
            "FETCH",
            "SAMPLE",
            "TABLESAMPLE",
        ),
        *("UNION", "EXCEPT", "INTERSECT", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "POSITIONAL"),
        *("ASOF", "ANTI", "SEMI", "ON", "USING", "PIVOT", "UNPIVOT", "SELECT", "FOR", "SET", "WHEN", "AT"),
    )
)
Value = int | str | datetime | None


@dataclass(frozen=True, slots=True)
class Travel:
    """A table at a version: its name, the snapshot id or tag, or the timestamp, and the name that replaces it."""

    parts: tuple[str, ...]
    stand_in: str
    version: int | str | None = None
    timestamp: int | str | datetime | None = None


def travels(
    text: str, words: Sequence[Word], value_of: Callable[[str], object]
) -> tuple[list[Travel], list[tuple[int, int, str]]]:
    """The time travel clauses of a query, and the edits (start, end, new text) that replace them by names.

    `value_of` evaluates an expression, such as a parameter.
    """
    found: list[Travel] = []
    edits: list[tuple[int, int, str]] = []
    reader = WordReader(text, words)
    while not reader.at_end:
        start = reader.place
        clause = _clause(reader)
        if clause is None:
            reader.place = start + 1
            continue
        unit, expression = clause
        name_from, name_behind, alias = _name_before(words, start)
        if name_from == name_behind:
            raise SqlError("a version can only follow the name of a table", text, words[start].start)
        parts = tuple(word.text for word in words[name_from:name_behind] if word.is_name)
        name = stand_in(parts[-1], "@", words, [travel.stand_in for travel in found])
        value = _checked(value_of(expression), unit, text, words[start].start)
        if unit == "VERSION":
            found.append(Travel(parts, name, version=value))  # type: ignore[arg-type]
        else:
            found.append(Travel(parts, name, timestamp=value))
        behind = words[reader.place - 1].end
        called = text[words[name_behind].start : words[start - 1].end] if alias else ""
        if not called and not alias_follows(reader):
            called = f"AS {quoted(parts[-1])}"
        new = f"{quoted(name)} {called}".rstrip()
        edits.append((words[name_from].start, behind, new))
    return found, edits


def _clause(reader: WordReader) -> tuple[str, str] | None:
    """The kind of version and its expression, if a time travel clause comes next."""
    if reader.accept("AT", "("):
        for unit in ("VERSION", "TIMESTAMP"):
            if reader.accept(unit, "=>"):
                expression = reader.expression()
                reader.expect(")")
                return unit, expression
        return None
    reader.accept("FOR")
    for unit in (*_VERSIONS, *_TIMES):
        if reader.accept(unit, "AS", "OF"):
            first = reader.place
            if reader.peek().keyword in ("TIMESTAMP", "DATE", "TIMESTAMPTZ") and reader.peek(1).kind == "string":
                reader.take()
            if reader.peek().keyword == "(":
                reader.listed(lambda: reader.expression(","))
            elif reader.peek().kind in ("string", "number", "parameter"):
                reader.take()
            else:
                raise reader.error(
                    "a snapshot id, a tag in quotes, a moment in quotes, or an expression in parentheses"
                )
            return ("VERSION" if unit in _VERSIONS else "TIMESTAMP"), reader.source(first, reader.place)
    return None


def _name_before(words: Sequence[Word], place: int) -> tuple[int, int, bool]:
    """The start and end of the table name before a position, and whether an alias is between them."""
    behind, alias = place, False
    if behind > 1 and words[behind - 1].is_name and words[behind - 2].keyword == "AS":
        behind, alias = behind - 2, True
    elif (
        behind > 1 and words[behind - 1].is_name and words[behind - 2].is_name and not _before_table(words[behind - 2])
    ):
        behind, alias = behind - 1, True
    start = behind
    if start > 0 and words[start - 1].is_name:
        start -= 1
        while start > 1 and words[start - 1].keyword == "." and words[start - 2].is_name:
            start -= 2
    return start, behind, alias


def _before_table(word: Word) -> bool:
    return word.keyword in ("FROM", "JOIN", "TABLE", "INTO", "UPDATE", "USING", "DESCRIBE", "SUMMARIZE", "LATERAL")


def alias_follows(reader: WordReader) -> bool:
    """Whether an alias of the table comes next."""
    word = reader.peek()
    return word.keyword == "AS" or (word.is_name and word.keyword not in _NO_ALIAS)


def _checked(value: object, unit: str, text: str, place: int) -> Value:
    if isinstance(value, Decimal) and value == value.to_integral_value():
        value = int(value)
    if unit == "VERSION" and isinstance(value, (int, str)) and not isinstance(value, bool):
        return value
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if unit == "TIMESTAMP" and isinstance(value, (int, str, datetime)) and not isinstance(value, bool):
        return value
    expected = "a snapshot id or the name of a tag" if unit == "VERSION" else "a moment"
    raise SqlError(f"expected {expected}, found {value!r}", text, place)
