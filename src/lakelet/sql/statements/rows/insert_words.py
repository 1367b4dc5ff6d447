"""The parser of INSERT.

INSERT [OR REPLACE | OR IGNORE] INTO t [AS a] [PARTITION (k = value, …)] [(column, …) | BY NAME | BY POSITION] source [conflict]
    [RETURNING …]
INSERT OVERWRITE [INTO | TABLE] t [PARTITION (k = value, k2, …)] [(column, …) | BY NAME | BY POSITION] source [RETURNING …]
source: VALUES (…), (…) | SELECT … | WITH … | FROM … | TABLE x | (query) | DEFAULT VALUES
conflict: ON CONFLICT [(column, …)] DO NOTHING | ON CONFLICT [(column, …)] DO UPDATE SET column = expression, … [WHERE …]
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.statement import Statement
from lakelet.sql.statements.change.assignments import read_assignments, read_columns, read_values
from lakelet.sql.statements.change.change_clauses import Assignment
from lakelet.sql.statements.change.row_expressions import QUERIES
from lakelet.sql.statements.text.query_text import Span
from lakelet.sql.statements.text.spans import read_common_tables, read_returning, read_span

_QUERIES = (*QUERIES, "(")


@dataclass(frozen=True, slots=True)
class ValuesRow:
    """A row of VALUES: its first word, and its expressions, None for DEFAULT."""

    word: Word
    values: tuple[Span | None, ...]


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """A column named in PARTITION, and its value where it is given one."""

    word: Word
    value: Span | None


@dataclass(frozen=True, slots=True)
class Conflict:
    """The conflict action for a row whose key exists: NOTHING, REPLACE of the columns that are given values, or UPDATE by
    assignments where the condition holds. `columns` are the key columns that the statement names."""

    word: Word
    action: Literal["NOTHING", "REPLACE", "UPDATE"]
    columns: tuple[Word, ...] | None = None
    assignments: tuple[Assignment, ...] = ()
    where: Span | None = None


@dataclass(frozen=True, slots=True)
class Insert:
    """A parsed INSERT. Its rows are those of `values`, else those of `query`, else one of defaults; `word` is the first of the
    table's name, `parts`."""

    parts: tuple[str, ...]
    word: Word
    overwrites: bool
    partition: tuple[PartitionColumn, ...] = ()
    columns: tuple[Word, ...] | None = None
    by_name: bool = False
    common: Span | None = None
    values: tuple[ValuesRow, ...] = ()
    query: Span | None = None
    given_alias: str | None = None
    conflict: Conflict | None = None
    returning: Span | None = None

    @property
    def alias(self) -> str:
        """The alias that qualifies the target's columns."""
        return self.given_alias or self.parts[-1]

    @property
    def qualifier(self) -> tuple[str, ...]:
        """The parts of the full name that may qualify them besides it."""
        return () if self.given_alias is not None else self.parts


def read_insert(statement: Statement) -> Insert:
    """Reads the statement."""
    reader = statement.reader
    common = read_common_tables(statement, "INSERT")
    reader.expect("INSERT")
    either = reader.peek()
    instead: Literal["NOTHING", "REPLACE"] | None = None
    if reader.accept("OR"):
        instead = "REPLACE" if reader.one_of("REPLACE", "IGNORE") == "REPLACE" else "NOTHING"
        if not reader.at("INTO"):
            raise reader.error("INTO")
    overwrites = reader.one_of("INTO", "OVERWRITE") == "OVERWRITE"
    if not (overwrites and reader.accept("INTO")) and reader.at("TABLE") and reader.peek(1).is_name:
        reader.take()
    word = reader.peek()
    parts = reader.name_parts("a table")
    alias = reader.name("an alias") if reader.accept("AS") else None
    partition = tuple(reader.listed(lambda: _read_partition(reader))) if reader.accept("PARTITION") else ()
    columns = _read_columns(reader)
    by_name = columns is None and reader.accept("BY", "NAME")
    if not by_name and columns is None:
        reader.accept("BY", "POSITION")
    known = Insert(parts, word, overwrites, partition, columns, by_name, common, given_alias=alias)
    known = _with_source(reader, known)
    conflict = None if instead is None else Conflict(either, instead)
    if reader.at("ON"):
        if conflict is not None:
            raise SqlError("OR REPLACE and OR IGNORE go without ON CONFLICT", reader.text, reader.peek().start)
        conflict = _read_conflict(reader, known)
    return replace(known, conflict=conflict, returning=read_returning(reader))


def _read_partition(reader: WordReader) -> PartitionColumn:
    reader.name("a partition column")
    word = reader.words[reader.place - 1]
    return PartitionColumn(word, read_span(reader, ",") if reader.accept("=") else None)


def _read_columns(reader: WordReader) -> tuple[Word, ...] | None:
    if not reader.at("(") or reader.peek(1).keyword in _QUERIES:
        return None
    return tuple(read_columns(reader))


def _with_source(reader: WordReader, known: Insert) -> Insert:
    if reader.accept("DEFAULT", "VALUES"):
        if known.columns is not None:
            raise SqlError("DEFAULT VALUES goes without a list of columns", reader.text, reader.peek(-2).start)
        return known
    if reader.peek().keyword not in _QUERIES:
        raise reader.error("VALUES or a query")
    behind = _source_end(reader)
    values = _read_values(reader, behind) if reader.at("VALUES") else ()
    query = None
    if not values:
        if behind == reader.place:
            raise reader.error("a query")
        query, reader.place = Span(reader.place, behind), behind
    return replace(known, values=values, query=query)


def _source_end(reader: WordReader) -> int:
    """The end of the source: before ON CONFLICT or RETURNING, else the end of the statement."""
    depth = 0
    for place in range(reader.place, len(reader.words)):
        keyword, before = reader.words[place].keyword, reader.words[place - 1].keyword
        after = [word.keyword for word in reader.words[place + 1 : place + 3]]
        if depth == 0 and keyword == "RETURNING" and before not in ("AS", "."):
            return place
        if (
            depth == 0
            and keyword == "ON"
            and after[:1] == ["CONFLICT"]
            and after[1:] in (["DO"], ["("], ["ON"], ["WHERE"])
        ):
            return place
        depth += (keyword in ("(", "[", "{")) - (keyword in (")", "]", "}"))
    return len(reader.words)


def _read_values(reader: WordReader, behind: int) -> tuple[ValuesRow, ...]:
    """Reads VALUES (…), …; empty if anything follows, for then it is an ordinary query."""
    start = reader.place
    reader.expect("VALUES")
    rows = []
    while True:
        word = reader.peek()
        rows.append(ValuesRow(word, tuple(read_values(reader))))
        if not reader.accept(",") or reader.place == behind:
            break
    if reader.place == behind:
        return tuple(rows)
    reader.place = start
    return ()


def _read_conflict(reader: WordReader, known: Insert) -> Conflict:
    word = reader.peek()
    reader.expect("ON", "CONFLICT")
    columns = tuple(reader.listed(lambda: _read_column(reader))) if reader.at("(") else None
    reader.expect("DO")
    if reader.one_of("NOTHING", "UPDATE") == "NOTHING":
        return Conflict(word, "NOTHING", columns)
    reader.expect("SET")
    assignments = read_assignments(reader, known, "WHERE", "RETURNING")
    where = read_span(reader, "RETURNING") if reader.accept("WHERE") else None
    return Conflict(word, "UPDATE", columns, assignments, where)


def _read_column(reader: WordReader) -> Word:
    reader.name("a column")
    return reader.words[reader.place - 1]
