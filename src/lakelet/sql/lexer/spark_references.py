"""Find the qualified table references of a Spark SQL statement: database.table, or catalog.database.table.

    SELECT o.id FROM shop.orders VERSION AS OF 3 AS o, shop.items   ->   shop.orders at version 3, shop.items

A reference follows FROM, JOIN, INTO, UPDATE or TABLE, or after a comma of a FROM list. The FROM of a function
(`extract(year FROM t.x)`) and of `IS DISTINCT FROM` is none. This module works on tokens, not tables: whether a
lake has such a table is for the caller to resolve. Unqualified names, and names of more than three parts, are not reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lakelet.errors import InvalidError
from lakelet.sql.lexer.spark_words import Word

_QUERY_STARTS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")
_ENDS_OF_FROM = (
    *("SELECT", "WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "SET", "VIEW", "|>"),
    *("ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET"),
    *("UNION", "EXCEPT", "MINUS", "INTERSECT"),
)
# Keywords that follow the pipe | with a list that is not one of tables.
_PIPED = ("AGGREGATE", "EXTEND", "DROP")
_BEFORE_TABLE = ("FROM", "JOIN", "INTO", "UPDATE", "TABLE")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Reference:
    """A table of a database, at a version, and the span of text that says so. `after` is the keyword before it; `catalog` is
    there where the name has three parts."""

    database: str
    table: str
    start: int
    end: int
    after: str
    version: int | str | None = None
    timestamp: str | None = None
    catalog: str | None = None


@dataclass(slots=True)
class _Level:
    """The parser's state inside one pair of parentheses."""

    is_query: bool
    in_from: bool = False
    expects: str = ""


def references(words: Sequence[Word]) -> list[Reference]:
    """The references of a statement, in their order."""
    return tables_read(words, reference_at)


def tables_read(
    words: Sequence[Word], parse: Callable[[Sequence[Word], int, str], tuple[Found | None, int]]
) -> list[Found]:
    """What `parse` makes of each place where a statement names a table: it gets the words, the place and the keyword before it,
    and returns a reference, or None for something else, and the position behind it."""
    found: list[Found] = []
    levels = [_Level(is_query=True)]
    place = 0
    while place < len(words):
        word, level = words[place], levels[-1]
        keyword = word.keyword
        expected, level.expects = level.expects, ""
        place += 1
        if keyword == "(":
            levels.append(_opened(words, place, expected))
        elif keyword == ")":
            if len(levels) > 1:
                levels.pop()
        elif keyword in _BEFORE_TABLE and not names_something(words, place - 1):
            if _begins_tables(words, place - 1, level):
                level.expects = keyword
                level.in_from = keyword in ("FROM", "JOIN") or level.in_from
            elif expected and keyword == "TABLE":
                level.expects = expected
        elif keyword == ",":
            level.expects = "FROM" if level.in_from else ""
        elif keyword in _ENDS_OF_FROM or _pipes(words, place - 1):
            level.in_from = False
        elif keyword in ("LATERAL", "OVERWRITE") and not expected:
            level.expects = "INTO" if keyword == "OVERWRITE" else ""
        elif expected and word.is_name:
            if keyword == "LATERAL":
                level.expects = expected
                continue
            reference, place = parse(words, place - 1, expected)
            if reference is not None:
                found.append(reference)
    return found


def _opened(words: Sequence[Word], place: int, expected: str) -> _Level:
    """The level that a parenthesis opens: a subquery, joined tables, or an expression."""
    first = next((word.keyword for word in words[place:] if word.keyword != "("), "")
    if first in _QUERY_STARTS:
        return _Level(is_query=True, in_from=bool(expected), expects=expected)
    if expected:
        return _Level(is_query=True, in_from=True, expects=expected)
    return _Level(is_query=False)


def _begins_tables(words: Sequence[Word], place: int, level: _Level) -> bool:
    """Whether a keyword is followed by tables."""
    if words[place].keyword == "TABLE":
        # Table functions take TABLE(…) among their arguments.
        return True
    return level.is_query and not compares(words, place)


def compares(words: Sequence[Word], place: int) -> bool:
    """Whether a FROM is that of IS [NOT] DISTINCT FROM."""
    before = [word.keyword for word in words[max(0, place - 3) : place]]
    return before[-2:] == ["IS", "DISTINCT"] or before == ["IS", "NOT", "DISTINCT"]


def _pipes(words: Sequence[Word], place: int) -> bool:
    """Whether a pipe of one character ends the list of tables; otherwise it may be an operator of an ON condition."""
    return words[place].keyword == "|" and place + 1 < len(words) and words[place + 1].keyword in _PIPED


def names_something(words: Sequence[Word], place: int) -> bool:
    """Whether a word is part of a longer name (`t.from`), whatever else it means."""
    return place > 0 and words[place - 1].keyword == "."


def reference_at(words: Sequence[Word], place: int, after: str) -> tuple[Reference | None, int]:
    """The reference that begins at a token, None where it is something else, and the position behind it."""
    start = place
    parts = [words[place].text]
    place += 1
    while place + 1 < len(words) and words[place].keyword == "." and words[place + 1].is_name:
        parts.append(words[place + 1].text)
        place += 2
    while is_suffix(words, place):
        parts[-1] += f"${words[place + 1].text}"
        place += 2
    is_function = after != "INTO" and place < len(words) and words[place].keyword == "("
    if len(parts) not in (2, 3) or is_function:
        return None, place
    version, timestamp, place = _time_travel(words, place)
    end = words[place - 1].end
    catalog = parts[0] if len(parts) == 3 else None
    return Reference(parts[-2], parts[-1], words[start].start, end, after, version, timestamp, catalog), place


def is_suffix(words: Sequence[Word], place: int) -> bool:
    """Whether `$name` follows without a gap."""
    if place + 1 >= len(words) or words[place].keyword != "$":
        return False
    return words[place].start == words[place - 1].end and words[place + 1].start == words[place].end


def _time_travel(words: Sequence[Word], place: int) -> tuple[int | str | None, str | None, int]:
    """The version or timestamp of a reference, and the position behind it."""
    at = place + 1 if place < len(words) and words[place].keyword == "FOR" else place
    clause = [word.keyword for word in words[at : at + 3]]
    if clause[1:] != ["AS", "OF"] or clause[0] not in ("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME"):
        return None, None, place
    what, at = clause[0], at + 3
    if what in ("TIMESTAMP", "SYSTEM_TIME") and at < len(words) and words[at].keyword in ("TIMESTAMP", "DATE"):
        at += 1
    value = words[at] if at < len(words) else None
    if what in ("VERSION", "SYSTEM_VERSION"):
        if value is not None and value.kind == "number" and value.text.isdigit():
            return int(value.text), None, at + 1
        if value is not None and value.kind == "string":
            return value.text, None, at + 1
    elif value is not None and value.kind == "string":
        return None, value.text, at + 1
    found = "nothing" if value is None else repr(value.text)
    kind = "a number or the name of a tag" if what in ("VERSION", "SYSTEM_VERSION") else "a moment as text"
    raise InvalidError(f"{what} AS OF: expected {kind} in quotes, found {found} at character {words[at - 1].end + 1}")
