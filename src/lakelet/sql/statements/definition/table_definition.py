"""The parser of CREATE TABLE, which accesses no table.

    CREATE TABLE [IF NOT EXISTS] name
      [(column type [NOT NULL] [DEFAULT value] [COMMENT 'text'] [PRIMARY KEY], …, [PRIMARY KEY (column, …) [NOT ENFORCED]])]
      [(column, …, [PRIMARY KEY (column, …)]) where a query follows]
      [COMMENT 'text'] [PARTITIONED BY (column [type], …)] [WITH ('option' = 'value', …)]
      [AS query | LIKE table [INCLUDING OPTIONS | EXCLUDING OPTIONS]]

The clauses may come in any order. TBLPROPERTIES and OPTIONS are synonyms of WITH; USING paimon is accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lakelet.catalog.names import matching
from lakelet.model.default_expressions import default_expression_key
from lakelet.sql.lexer.errors import SqlError, nearest
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
from lakelet.sql.statements.refused import CONSTRAINTS
from lakelet.sql.statements.text.clauses import GivenOptions, read_options, read_table_query

_REFUSED_ELEMENTS = {
    ("UNIQUE", "("): CONSTRAINTS["UNIQUE"],
    ("CHECK", "("): CONSTRAINTS["CHECK"],
    ("FOREIGN", "KEY"): CONSTRAINTS["FOREIGN"],
    ("WATERMARK", "FOR"): "a table has no watermarks; every snapshot may have one",
    ("PERIOD", "FOR"): "a table has no periods; every version of it can be read",
}
_REFUSED_CLAUSES = {
    "LOCATION": "the location of a table follows from its name",
    "STORED": "the format of files is the option 'file.format'",
    "ROW": "the format of files is the option 'file.format'",
    "CLUSTERED": "buckets are the options 'bucket' and 'bucket-key'",
    "DISTRIBUTED": "buckets are the options 'bucket' and 'bucket-key'",
    "CLUSTER": "a table is not clustered",
    "PARTITION": "expected PARTITIONED BY",
    "SORTED": "a table with a PRIMARY KEY is sorted by it",
}
_PAIMON = ("PAIMON", "LAKELET")


@dataclass(slots=True)
class TableDefinition:
    """The clauses of a definition, filled while parsing."""

    columns: list[ColumnDefinition] = field(default_factory=list)
    # Names for the columns of a query.
    names: list[Word] = field(default_factory=list)
    primary_key: list[Word] = field(default_factory=list)
    key_at: Word | None = None
    partition_keys: list[Word] = field(default_factory=list)
    options: GivenOptions | None = None
    comment: str | None = None
    # The table of LIKE, and whether its options are copied.
    like: tuple[str, ...] | None = None
    like_at: Word | None = None
    like_options: bool = True
    # The word range of the query; `with_data` is false for WITH NO DATA.
    query: tuple[int, int] | None = None
    with_data: bool = True

    @property
    def option_values(self) -> dict[str, str]:
        """The options given."""
        return {} if self.options is None else dict(self.options.values)

    @property
    def default_options(self) -> dict[str, str]:
        """The options that store default expressions of columns."""
        found = [(column.name.text, column.expression) for column in self.columns]
        return {default_expression_key(name): text for name, text in found if text is not None}

    @property
    def table_comment(self) -> str | None:
        """The comment, given by itself or among the options."""
        return self.comment if self.comment is not None or self.options is None else self.options.comment


def read_definition(reader: WordReader) -> TableDefinition:
    """Reads everything after the name of the table, up to the end."""
    found = TableDefinition()
    has_parentheses = reader.at("(")
    if has_parentheses:
        opening = reader.peek()
        reader.listed(lambda: _element(reader, found), "the columns in parentheses")
    seen: set[str] = set()
    while not reader.at_end and found.query is None:
        word = reader.peek()
        clause = _CLAUSES.get(word.keyword)
        if clause is None or (word.keyword == "PARTITIONED" and not reader.at("PARTITIONED", "BY")):
            if word.keyword in _REFUSED_CLAUSES:
                raise SqlError(f"{word.keyword}: {_REFUSED_CLAUSES[word.keyword]}", reader.text, word.start)
            raise reader.error("COMMENT, PARTITIONED BY, WITH, AS, LIKE or the end of the statement")
        name, read = clause
        if name in seen:
            raise SqlError(f"{word.keyword} is given twice", reader.text, word.start)
        if name in ("LIKE", "AS") and seen & {"LIKE", "AS"}:
            raise SqlError("LIKE and AS each say what the columns are: one of them will do", reader.text, word.start)
        seen.add(name)
        reader.take()
        read(reader, found)
    check_of_query(reader, found.names, is_query=found.query is not None)
    if found.columns and (found.query is not None or found.like is not None):
        source = "query" if found.query is not None else "other table"
        at = found.columns[0].name
        raise SqlError(f"the columns come from the {source}: give their names and types there", reader.text, at.start)
    if not found.columns and found.query is None and found.like is None:
        if has_parentheses:
            raise SqlError("a table needs at least one column", reader.text, opening.start)
        raise reader.error("the columns in parentheses, AS or LIKE")
    if found.columns:
        check_definition(reader, found, [column.name.text for column in found.columns])
    return found


def check_definition(reader: WordReader, found: TableDefinition, columns: list[str]) -> None:
    """SqlError at a duplicate column or at an unknown key column."""
    seen: set[str] = set()
    for column in found.columns:
        name = column.name.text
        if name.lower() in seen:
            raise SqlError(f"column {name!r} is given twice", reader.text, column.name.start)
        seen.add(name.lower())
    for role, words in (("primary key", found.primary_key), ("partition", found.partition_keys)):
        keys: set[str] = set()
        for word in words:
            key = key_name(word, columns)
            if key is None:
                hint = nearest(word.text, columns)
                raise SqlError(f"{role} column {word.text!r} is not a column{hint}", reader.text, word.start)
            if key in keys:
                raise SqlError(f"{role} column {word.text!r} is given twice", reader.text, word.start)
            keys.add(key)


def key_name(word: Word, columns: list[str]) -> str | None:
    """The column that a key names."""
    return matching(word.text, columns)


# ---------------------------------------------------------------------- inside the parentheses


def _element(reader: WordReader, found: TableDefinition) -> None:
    word = reader.peek()
    for keywords, reason in _REFUSED_ELEMENTS.items():
        if reader.at(*keywords):
            raise SqlError(f"{word.keyword}: {reason}", reader.text, word.start)
    if reader.at("CONSTRAINT") and reader.peek(2).keyword in ("PRIMARY", *CONSTRAINTS):
        # Keys have no names; other engines write them nevertheless.
        reader.place += 2
        word = reader.peek()
        if word.keyword in CONSTRAINTS:
            raise SqlError(f"{word.keyword}: {CONSTRAINTS[word.keyword]}", reader.text, word.start)
    if reader.at("PRIMARY", "KEY"):
        _set_key(reader, found, word, _key_columns(reader))
        return
    if at_bare_name(reader):
        found.names.append(reader.take())
        return
    column = read_column(reader)
    found.columns.append(column)
    if column.key is not None:
        _set_key(reader, found, column.key, [column.name])


def _key_columns(reader: WordReader) -> list[Word]:
    reader.expect("PRIMARY", "KEY")
    words = reader.listed(lambda: _column_name(reader))
    reader.accept("NOT", "ENFORCED")
    return words


def _set_key(reader: WordReader, found: TableDefinition, word: Word, columns: list[Word]) -> None:
    if found.key_at is not None:
        raise SqlError(
            "a table has one primary key; of several columns it is PRIMARY KEY (a, b)", reader.text, word.start
        )
    found.key_at, found.primary_key = word, columns


def _column_name(reader: WordReader) -> Word:
    word = reader.peek()
    reader.name("the name of a column")
    return word


# ---------------------------------------------------------------------- clauses


def _comment(reader: WordReader, found: TableDefinition) -> None:
    reader.accept("=")
    found.comment = reader.string()


def _partitioned(reader: WordReader, found: TableDefinition) -> None:
    reader.expect("BY")

    def read() -> Word:
        word = _column_name(reader)
        if reader.at("("):
            raise SqlError(
                f"{word.text}(…): a table is partitioned by columns, not by functions of them", reader.text, word.start
            )
        if reader.peek().kind == "word":
            # The syntax of Hive: the column is defined in PARTITIONED BY.
            data_type = read_type(reader)
            comment = reader.string() if reader.accept("COMMENT") else None
            found.columns.append(ColumnDefinition(ColumnPath(reader, (word,)), data_type, comment=comment))
        return word

    found.partition_keys = reader.listed(read)


def _with(reader: WordReader, found: TableDefinition) -> None:
    found.options = read_options(reader)


def _using(reader: WordReader, found: TableDefinition) -> None:
    word = reader.peek()
    name = reader.name("paimon")
    if name.upper() == "ICEBERG":
        raise SqlError(
            "USING iceberg: an Iceberg table is named with its catalog, as in iceberg.database.table",
            reader.text,
            word.start,
        )
    if name.upper() not in _PAIMON:
        raise SqlError(
            f"USING {name}: every table is a Paimon table; the format of its files is the option 'file.format'",
            reader.text,
            word.start,
        )


def _like(reader: WordReader, found: TableDefinition) -> None:
    found.like_at = reader.peek()
    found.like = reader.name_parts("the name of a table")

    def read() -> None:
        includes = reader.one_of("INCLUDING", "EXCLUDING") == "INCLUDING"
        what = reader.peek()
        reader.one_of("OPTIONS", "ALL")
        if what.keyword == "ALL" and not includes:
            raise SqlError("EXCLUDING ALL leaves nothing to be like", reader.text, what.start)
        found.like_options = includes

    if reader.accept("("):
        read()
        while not reader.accept(")"):
            read()
    while reader.peek().keyword in ("INCLUDING", "EXCLUDING"):
        read()


def _as(reader: WordReader, found: TableDefinition) -> None:
    found.query, found.with_data = read_table_query(reader)


_Clause = Callable[[WordReader, TableDefinition], None]
_CLAUSES: dict[str, tuple[str, _Clause]] = {
    "COMMENT": ("COMMENT", _comment),
    "PARTITIONED": ("PARTITIONED BY", _partitioned),
    "WITH": ("WITH", _with),
    "TBLPROPERTIES": ("WITH", _with),
    "OPTIONS": ("WITH", _with),
    "USING": ("USING", _using),
    "LIKE": ("LIKE", _like),
    "AS": ("AS", _as),
}
