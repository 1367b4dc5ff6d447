"""Reading INSERT.

INSERT INTO t [PARTITION (k = value, …)] [(column, …) | BY NAME | BY POSITION] source
INSERT OVERWRITE [INTO | TABLE] t [PARTITION (k = value, k2, …)] [(column, …) | BY NAME | BY POSITION] source
source: VALUES (…), (…) | SELECT … | WITH … | FROM … | TABLE x | (query) | DEFAULT VALUES
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lakelet.sql.statement import Statement
from lakelet.sql.statements.assignments import read_columns, read_values
from lakelet.sql.statements.query_text import Span
from lakelet.sql.statements.row_expressions import QUERIES
from lakelet.sql.statements.spans import read_common_tables, read_rest, read_span
from lakelet.sql.word_reader import WordReader
from lakelet.sql.words import Word

_QUERIES = (*QUERIES, "(")


@dataclass(frozen=True, slots=True)
class ValuesRow:
    """A row of VALUES: where it stands, and its expressions, None for DEFAULT."""

    word: Word
    values: tuple[Span | None, ...]


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """A column named in PARTITION, and its value where it is given one."""

    word: Word
    value: Span | None


@dataclass(frozen=True, slots=True)
class Insert:
    """The statement. Rows are those of `values`, else those of `query`, else one of defaults; `word` is where the table's name,
    `parts`, begins."""

    parts: tuple[str, ...]
    word: Word
    overwrites: bool
    partition: tuple[PartitionColumn, ...] = ()
    columns: tuple[Word, ...] | None = None
    by_name: bool = False
    common: Span | None = None
    values: tuple[ValuesRow, ...] = ()
    query: Span | None = None


def read_insert(statement: Statement) -> Insert:
    """Reads the statement."""
    reader = statement.reader
    common = read_common_tables(statement, "INSERT")
    reader.expect("INSERT")
    overwrites = reader.one_of("INTO", "OVERWRITE") == "OVERWRITE"
    if not (overwrites and reader.accept("INTO")) and reader.at("TABLE") and reader.peek(1).is_name:
        reader.take()
    word = reader.peek()
    parts = reader.name_parts("a table")
    partition = tuple(reader.listed(lambda: _read_partition(reader))) if reader.accept("PARTITION") else ()
    columns = _read_columns(reader)
    by_name = columns is None and reader.accept("BY", "NAME")
    if not by_name and columns is None:
        reader.accept("BY", "POSITION")
    known = Insert(parts, word, overwrites, partition, columns, by_name, common)
    return _with_source(reader, known)


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
        reader.finish()
        return known
    if reader.peek().keyword not in _QUERIES:
        raise reader.error("VALUES or a query")
    values = _read_values(reader) if reader.at("VALUES") else ()
    query = None if values else read_rest(reader)
    return replace(known, values=values, query=query)


def _read_values(reader: WordReader) -> tuple[ValuesRow, ...]:
    """Reads VALUES (…), …; nothing where more follows, for then it is a query like any other."""
    start = reader.place
    reader.expect("VALUES")
    rows = []
    while True:
        word = reader.peek()
        rows.append(ValuesRow(word, tuple(read_values(reader))))
        if not reader.accept(",") or reader.at_end:
            break
    if reader.at_end:
        return tuple(rows)
    reader.place = start
    return ()
