"""The parser of CREATE TABLE catalog.database.table, which accesses no table.

    CREATE TABLE [IF NOT EXISTS] name
      [(column type [NOT NULL] [COMMENT 'text'], …) | (column, …) where a query follows] [USING iceberg]
      [PARTITIONED BY (term, …)] [COMMENT 'text'] [WITH ('property' = 'value', …)] [LOCATION '…']
      [AS query [WITH [NO] DATA]]

The clauses may come in any order, AS last. TBLPROPERTIES and OPTIONS are synonyms of WITH.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lakelet.sql.iceberg.partition_words import GivenTerm, read_term
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.statements.definition.column_words import (
    ColumnDefinition,
    ColumnPath,
    at_bare_name,
    check_of_query,
    read_column,
)
from lakelet.sql.statements.definition.type_words import read_type
from lakelet.sql.statements.text.clauses import COMMENT_KEY, read_pairs, read_table_query

_REFUSED = {
    ("PRIMARY", "KEY"): "an Iceberg table checks no keys",
    ("CONSTRAINT",): "an Iceberg table checks no constraints",
    ("UNIQUE", "("): "an Iceberg table checks no keys",
    ("CHECK", "("): "an Iceberg table checks no conditions",
    ("FOREIGN", "KEY"): "an Iceberg table checks no foreign keys",
}
_REFUSED_CLAUSES = {
    "STORED": "the format of files is the property 'write.format.default'",
    "ROW": "the format of files is the property 'write.format.default'",
    "CLUSTERED": "buckets are made by PARTITIONED BY (bucket(16, id))",
    "DISTRIBUTED": "how rows are spread is the property 'write.distribution-mode'",
    "LIKE": "the columns are given, or come from a query",
    "PARTITION": "expected PARTITIONED BY",
}


@dataclass(slots=True)
class IcebergDefinition:
    """The clauses of a definition, filled while parsing."""

    columns: list[ColumnDefinition] = field(default_factory=list)
    # Names for the columns of a query.
    names: list[Word] = field(default_factory=list)
    terms: list[GivenTerm] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    properties_at: Word | None = None
    comment: str | None = None
    location: str | None = None
    query: tuple[int, int] | None = None
    with_data: bool = True


def read_iceberg_definition(reader: WordReader) -> IcebergDefinition:
    """Reads everything after the name of the table, up to the end."""
    found = IcebergDefinition()
    opening = reader.peek()
    if reader.at("("):
        reader.listed(lambda: _element(reader, found), "the columns in parentheses")
    seen: set[str] = set()
    while not reader.at_end and found.query is None:
        word = reader.peek()
        clause = _CLAUSES.get(word.keyword)
        if clause is None or (word.keyword == "PARTITIONED" and not reader.at("PARTITIONED", "BY")):
            if word.keyword in _REFUSED_CLAUSES:
                raise SqlError(f"{word.keyword}: {_REFUSED_CLAUSES[word.keyword]}", reader.text, word.start)
            raise reader.error("USING, PARTITIONED BY, COMMENT, WITH, LOCATION, AS or the end of the statement")
        name, read = clause
        if name in seen:
            raise SqlError(f"{word.keyword} is given twice", reader.text, word.start)
        seen.add(name)
        reader.take()
        read(reader, found)
    check_of_query(reader, found.names, is_query=found.query is not None)
    if found.columns and found.query is not None:
        at = found.columns[0].name
        raise SqlError("the columns come from the query: give their names and types there", reader.text, at.start)
    if not found.columns and found.query is None:
        raise reader.error("the columns in parentheses, or AS and a query", opening)
    names: set[str] = set()
    for column in found.columns:
        if column.name.text.lower() in names:
            raise SqlError(f"column {column.name.text!r} is given twice", reader.text, column.name.start)
        names.add(column.name.text.lower())
    return found


def read_properties(reader: WordReader) -> dict[str, str]:
    """Reads ('key' = 'value', …); any key may be set, for other engines have keys of their own."""
    return read_pairs(reader, "property", "a property cannot be NULL: UNSET takes it away")


def _element(reader: WordReader, found: IcebergDefinition) -> None:
    for keywords, reason in _REFUSED.items():
        if reader.at(*keywords):
            raise SqlError(f"{' '.join(keywords).removesuffix(' (')}: {reason}", reader.text, reader.peek().start)
    if at_bare_name(reader):
        found.names.append(reader.take())
        return
    column = read_column(reader)
    if column.key is not None:
        raise SqlError("PRIMARY KEY: an Iceberg table checks no keys", reader.text, column.key.start)
    if column.default is not None:
        raise SqlError(
            "DEFAULT: default values need format version 3 of Iceberg, and versions 1 and 2 are written",
            reader.text,
            column.default.word.start,
        )
    found.columns.append(column)


def _using(reader: WordReader, _: IcebergDefinition) -> None:
    word = reader.peek()
    name = reader.name("iceberg")
    if name.upper() != "ICEBERG":
        raise SqlError(
            f"USING {name}: a table of a catalog is an Iceberg table; the lake's own are named database.table",
            reader.text,
            word.start,
        )


def _partitioned(reader: WordReader, found: IcebergDefinition) -> None:
    reader.expect("BY")

    def read() -> GivenTerm:
        term = read_term(reader)
        if term.is_column and len(term.path.words) == 1 and reader.peek().kind == "word":
            # The syntax of Hive: the column is defined in PARTITIONED BY.
            data_type = read_type(reader)
            comment = reader.string() if reader.accept("COMMENT") else None
            path = ColumnPath(reader, term.path.words)
            found.columns.append(ColumnDefinition(path, data_type, comment=comment))
        return term

    found.terms = reader.listed(read)


def _comment(reader: WordReader, found: IcebergDefinition) -> None:
    reader.accept("=")
    found.comment = reader.string()


def _with(reader: WordReader, found: IcebergDefinition) -> None:
    found.properties_at = reader.peek()
    found.properties = read_properties(reader)
    comment = found.properties.pop(COMMENT_KEY, None)
    found.comment = comment if found.comment is None else found.comment


def _location(reader: WordReader, found: IcebergDefinition) -> None:
    found.location = reader.string("the address of a folder in quotes")


def _as(reader: WordReader, found: IcebergDefinition) -> None:
    found.query, found.with_data = read_table_query(reader)


_Clause = Callable[[WordReader, IcebergDefinition], None]
_CLAUSES: dict[str, tuple[str, _Clause]] = {
    "USING": ("USING", _using),
    "PARTITIONED": ("PARTITIONED BY", _partitioned),
    "COMMENT": ("COMMENT", _comment),
    "WITH": ("WITH", _with),
    "TBLPROPERTIES": ("WITH", _with),
    "OPTIONS": ("WITH", _with),
    "LOCATION": ("LOCATION", _location),
    "AS": ("AS", _as),
}
