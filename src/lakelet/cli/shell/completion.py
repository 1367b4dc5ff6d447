"""Completion at the cursor: a pure function of the text before it and of the names in the lake.

SELECT * FROM sh|            databases, tables          SELECT am|  … FROM shop.orders      its columns
SELECT * FROM shop.|         tables of shop             CALL sys.c|                         procedures
SELECT * FROM t$|            system tables              \\d sh|                              tables
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word, words_of

KEYWORDS = (
    "ALL",
    "ALTER",
    "AND",
    "ANTI",
    "ARRAY",
    "AS",
    "ASC",
    "AT",
    "BETWEEN",
    "BIGINT",
    "BINARY",
    "BOOLEAN",
    "BRANCH",
    "BUCKET",
    "BY",
    "CALL",
    "CASE",
    "CAST",
    "COLUMN",
    "COLUMNS",
    "COMMENT",
    "CREATE",
    "CROSS",
    "CURRENT_DATE",
    "CURRENT_TIMESTAMP",
    "DATABASE",
    "DATABASES",
    "DATE",
    "DECIMAL",
    "DEFAULT",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DOUBLE",
    "DROP",
    "ELSE",
    "END",
    "ENFORCED",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "EXTENDED",
    "FALSE",
    "FILTER",
    "FIRST",
    "FLOAT",
    "FOR",
    "FROM",
    "FULL",
    "FUNCTIONS",
    "GROUP",
    "HAVING",
    "IF",
    "IN",
    "INNER",
    "INSERT",
    "INT",
    "INTERSECT",
    "INTERVAL",
    "INTO",
    "IS",
    "JOIN",
    "KEY",
    "LEFT",
    "LIKE",
    "LIMIT",
    "MAP",
    "MATCHED",
    "MERGE",
    "NOT",
    "NULL",
    "NULLS",
    "OF",
    "OFFSET",
    "ON",
    "OPTIONS",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "OVERWRITE",
    "PARTITION",
    "PARTITIONED",
    "PARTITIONS",
    "PRIMARY",
    "PROCEDURES",
    "QUALIFY",
    "RENAME",
    "RESET",
    "RIGHT",
    "ROW",
    "SELECT",
    "SEMI",
    "SET",
    "SHOW",
    "SMALLINT",
    "SOME",
    "STRING",
    "TABLE",
    "TABLES",
    "TBLPROPERTIES",
    "THEN",
    "TIME",
    "TIMESTAMP",
    "TINYINT",
    "TO",
    "TRUE",
    "TRUNCATE",
    "UNION",
    "UPDATE",
    "USE",
    "USING",
    "VALUES",
    "VARBINARY",
    "VARCHAR",
    "VERSION",
    "VIEW",
    "WHEN",
    "WHERE",
    "WINDOW",
    "WITH",
)
_TABLE_BEFORE = ("FROM", "JOIN", "INTO", "UPDATE", "TABLE", "DESCRIBE", "DESC", "OVERWRITE", "USING", "LIKE", "EXISTS")
_DATABASE_BEFORE = ("USE", "DATABASE", "SCHEMA")
_TABLES_OF = ("FROM", "JOIN", "INTO", "UPDATE", "USING", "TABLE")
_TYPED = re.compile(r"[\w$.`\\?]*$")
_BACKSLASH = re.compile(r"\s*\\(?P<command>d|dt|c)\s+(?P<typed>\S*)$")


class Names(Protocol):
    """The names in a lake; every method may be called often."""

    def databases(self) -> Sequence[str]:
        """The names of databases."""
        ...

    def tables(self, database: str) -> Sequence[str]:
        """The names of a database's tables, none if it does not exist."""
        ...

    def columns(self, parts: Sequence[str]) -> Sequence[str]:
        """The names of a table's columns, none if it does not exist."""
        ...

    def procedures(self) -> Sequence[str]:
        """The names of procedures, with `sys.` before them."""
        ...

    def system_tables(self) -> Sequence[str]:
        """The names of system tables, which follow `$`."""
        ...

    def backslashes(self) -> Sequence[str]:
        """The shell's own commands."""
        ...

    @property
    def database(self) -> str:
        """The database in use."""
        ...


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Candidates that replace the last `length` characters."""

    texts: tuple[str, ...]
    length: int


def suggest(before: str, names: Names, after: str = "") -> Suggestions:
    """Candidates at the end of the first text, which is being typed; the second follows the cursor."""
    typed = _typed(before)
    own = _BACKSLASH.match(before)
    if own is not None:
        tables = own["command"] == "d"
        return _matching(own["typed"], _tables(own["typed"], names) if tables else names.databases())
    if before.lstrip().startswith("\\"):
        return _matching(before.lstrip(), names.backslashes())
    words = _words(before[: len(before) - len(typed)])
    if words is None:
        return Suggestions((), 0)
    if "$" in typed:
        stem = typed.rpartition("$")[0]
        return _matching(typed, [f"{stem}${name}" for name in names.system_tables()])
    last = words[-1].keyword if words else ""
    if last == "CALL":
        return _matching(typed, names.procedures())
    if last in _DATABASE_BEFORE:
        return _matching(typed, names.databases())
    if last in _TABLE_BEFORE or (last == "," and _in_from(words)):
        return _matching(typed, _tables(typed, names))
    used = _used_tables(words + _words_until_end(after))
    if "." in typed:
        return _matching(typed, _qualified(typed, used, names))
    columns = [column for parts in used.values() for column in names.columns(parts)]
    return _matching(typed, [*columns, *_cased(KEYWORDS, typed), *used])


def _typed(before: str) -> str:
    found = _TYPED.search(before)
    return found.group() if found else ""


def _tables(typed: str, names: Names) -> list[str]:
    """Candidates for a table: tables of the database in use, and databases as a prefix."""
    database, dot, _ = typed.rpartition(".")
    if dot:
        return [f"{database}.{table}" for table in names.tables(database)]
    return [*names.tables(names.database), *(f"{name}." for name in names.databases())]


def _qualified(typed: str, used: dict[str, tuple[str, ...]], names: Names) -> list[str]:
    """Columns behind the name or alias of a table, or tables behind a database."""
    owner = typed.rpartition(".")[0]
    if owner in used:
        return [f"{owner}.{column}" for column in names.columns(used[owner])]
    return [f"{owner}.{table}" for table in names.tables(owner)]


def _words(text: str) -> list[Word] | None:
    """The words of the last statement of a text; None inside a literal or a comment, where nothing is completed."""
    try:
        words = words_of(text)
    except SqlError:
        return None
    last = max((place for place, word in enumerate(words) if word.keyword == ";"), default=-1)
    return words[last + 1 :]


def _words_until_end(text: str) -> list[Word]:
    """The words after the cursor that belong to the same statement."""
    try:
        words = words_of(text)
    except SqlError:
        return []
    ends = [place for place, word in enumerate(words) if word.keyword == ";"]
    return words[: ends[0]] if ends else words


def _in_from(words: Sequence[Word]) -> bool:
    """Whether a comma at the end separates tables of FROM."""
    for word in reversed(words):
        if word.keyword in ("FROM", "JOIN"):
            return True
        if word.keyword in ("SELECT", "WHERE", "BY", "SET", "VALUES", "("):
            return False
    return False


def _used_tables(words: Sequence[Word]) -> dict[str, tuple[str, ...]]:
    """The tables of a statement by the names that its expressions use for them."""
    found: dict[str, tuple[str, ...]] = {}
    for place, word in enumerate(words):
        if word.keyword not in _TABLES_OF:
            continue
        reader = WordReader("", words[place + 1 :])
        if not reader.peek().is_name:
            continue
        parts = [reader.take().text]
        while reader.at(".") and reader.peek(1).is_name:
            reader.take()
            parts.append(reader.take().text)
        reader.accept("AS")
        alias = reader.peek()
        has_alias = alias.is_name and alias.keyword not in KEYWORDS
        found[alias.text if has_alias else parts[-1]] = tuple(parts)
    return found


def _cased(keywords: Iterable[str], typed: str) -> list[str]:
    """Keywords in the case that the user began to type."""
    return [word.lower() for word in keywords] if typed and typed == typed.lower() else list(keywords)


def _matching(typed: str, texts: Iterable[str]) -> Suggestions:
    low = typed.lower()
    return Suggestions(tuple(dict.fromkeys(text for text in texts if text.lower().startswith(low))), len(typed))
