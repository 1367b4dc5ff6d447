"""COPY: write rows to a file, or insert the rows of a file into a table.

    COPY orders (id, dt) TO 'orders.csv' (HEADER, DELIMITER ';')     COPY (SELECT …) TO 'x.parquet' (COMPRESSION zstd)
    COPY orders (id, dt) FROM 'orders.csv' (HEADER)                  COPY orders FROM 'orders/*.ndjson'

DuckDB writes and reads the files, as CSV, JSON or Parquet: by FORMAT, else by the file extension. A file is read in the types of
the table's columns, never in inferred ones, and its rows are one INSERT.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakelet.catalog.names import matching
from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import InvalidError
from lakelet.model.types import Field
from lakelet.sql.context import Context
from lakelet.sql.dispatch import run_statement
from lakelet.sql.engine.duck_types import duck_type
from lakelet.sql.lexer.errors import SqlError, nearest
from lakelet.sql.lexer.quotes import literal, quoted
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word, words_of
from lakelet.sql.query.query import Query
from lakelet.sql.statement import Statement
from lakelet.sql.statements.text.clauses import placed
from lakelet.sql.statements.text.given_table import given_table
from lakelet.storage.disk.own_files import check_outside

_FORMATS = {"parquet": "parquet", "json": "json", "ndjson": "json", "jsonl": "json", "csv": "csv", "tsv": "csv"}
_TO = {
    "csv": (
        *("DELIMITER", "DELIM", "SEP", "HEADER", "NULL", "NULLSTR", "QUOTE", "ESCAPE", "FORCE_QUOTE", "DATEFORMAT"),
        *("TIMESTAMPFORMAT", "COMPRESSION", "PREFIX", "SUFFIX"),
    ),
    "json": ("ARRAY", "COMPRESSION", "DATEFORMAT", "TIMESTAMPFORMAT"),
    "parquet": (
        "COMPRESSION",
        "CODEC",
        "COMPRESSION_LEVEL",
        "ROW_GROUP_SIZE",
        "ROW_GROUP_SIZE_BYTES",
        "PARQUET_VERSION",
    ),
}
# Options of COPY … FROM, and their names in DuckDB's reader functions.
_FROM = {
    "csv": {
        **dict.fromkeys(("DELIMITER", "DELIM", "SEP"), "delim"),
        **dict.fromkeys(("NULL", "NULLSTR"), "nullstr"),
        **{name: name.lower() for name in ("HEADER", "QUOTE", "ESCAPE", "COMMENT", "SKIP", "ENCODING", "COMPRESSION")},
        **{name: name.lower() for name in ("DATEFORMAT", "TIMESTAMPFORMAT", "DECIMAL_SEPARATOR", "STRICT_MODE")},
        **{name: name.lower() for name in ("NULL_PADDING", "NEW_LINE", "MAX_LINE_SIZE", "PARALLEL", "THOUSANDS")},
    },
    "json": {name: name.lower() for name in ("COMPRESSION", "DATEFORMAT", "TIMESTAMPFORMAT", "MAXIMUM_OBJECT_SIZE")},
    "parquet": {"BINARY_AS_STRING": "binary_as_string"},
}
_READERS = {"csv": "read_csv", "json": "read_json", "parquet": "read_parquet"}


def run_copy(context: Context, statement: Statement) -> SqlResult:
    """COPY in both directions."""
    reader = statement.reader
    reader.expect("COPY")
    if reader.at("("):
        first = reader.place + 1
        reader.expect("(")
        reader.expression()
        query = reader.source_in_place(first, reader.place)
        reader.expect(")")
        reader.expect("TO")
        return _to(context, statement, query)
    word = reader.peek()
    parts = reader.name_parts("the name of a table, or a query in parentheses")
    columns = reader.listed(lambda: _name(reader)) if reader.at("(") else []
    if reader.one_of("TO", "FROM") == "FROM":
        return _from(context, statement, parts, word, columns)
    chosen = ", ".join(quoted(column.text) for column in columns) or "*"
    return _to(context, statement, f"SELECT {chosen} FROM {'.'.join(quoted(part) for part in parts)}")


def _name(reader: WordReader) -> Word:
    word = reader.peek()
    reader.name("the name of a column")
    return word


def _to(context: Context, statement: Statement, query: str) -> SqlResult:
    reader = statement.reader
    path = reader.string("the name of a file in quotes")
    options = _options(reader)
    file_format = _format(reader, path, options)
    for key, (word, _) in options.items():
        if key not in _TO[file_format]:
            raise SqlError(
                f"option {key} of a {file_format} file{nearest(key, _TO[file_format])}", reader.text, word.start
            )
    check_outside(context.lake.location, path, "COPY TO")
    given = [f"FORMAT {file_format}", *(f"{key} {value}" for key, (_, value) in options.items())]
    rows = _write(context, statement, query, f"TO {literal(path)} ({', '.join(given)})")
    return SqlResult.done(f"copied {rows:,} {'row' if rows == 1 else 'rows'} to {path}")


def _write(context: Context, statement: Statement, text: str, target: str) -> int:
    """Writes the rows of a query to a file through DuckDB; returns the row count."""
    query = Query(context, text, statement.params, statement.frames, {})
    query.prepare()
    with query.space as space:
        return int(space.run(f"COPY ({query.placed.changed}) {target}", statement.params)[0][0])


def _from(
    context: Context, statement: Statement, parts: tuple[str, ...], word: Word, columns: Sequence[Word]
) -> SqlResult:
    reader = statement.reader
    path = reader.string("the name of a file in quotes")
    options = _options(reader)
    file_format = _format(reader, path, options)
    if len(parts) > 2:
        raise SqlError(
            "COPY … FROM: INSERT INTO … SELECT * FROM read_csv(…) fills an Iceberg table", reader.text, word.start
        )
    given = given_table(context, reader, parts, word)
    schema = given.open().schema
    fields = [_field(reader, column, schema.fields) for column in columns] or list(schema.fields)
    settings = []
    for key, (at, value) in options.items():
        if key not in _FROM[file_format]:
            raise SqlError(
                f"option {key} of a {file_format} file{nearest(key, _FROM[file_format])}", reader.text, at.start
            )
        settings.append(f"{_FROM[file_format][key]} = {value or 'true'}")
    if file_format != "parquet":
        types = ", ".join(f"{literal(field.name)}: {literal(duck_type(field.type))}" for field in fields)
        settings.append(f"columns = {{{types}}}")
    names = ", ".join(quoted(field.name) for field in fields)
    source = f"{_READERS[file_format]}({', '.join([literal(path), *settings])})"
    table = ".".join(quoted(part) for part in parts)
    text = f"INSERT INTO {table} ({names}) SELECT {names} FROM {source}"
    with placed(reader, word):
        return run_statement(context, Statement(WordReader(text, words_of(text)), statement.params, statement.frames))


def _field(reader: WordReader, word: Word, fields: Sequence[Field]) -> Field:
    found = matching(word.text, [field.name for field in fields])
    if found is None:
        hint = nearest(word.text, [field.name for field in fields])
        raise SqlError(f"column {word.text!r} is not there{hint}", reader.text, word.start)
    return next(field for field in fields if field.name == found)


def _options(reader: WordReader) -> dict[str, tuple[Word, str]]:
    """Reads [WITH] (NAME value, …), each value a literal, a name, or nothing."""
    found: dict[str, tuple[Word, str]] = {}
    reader.accept("WITH")

    def read() -> None:
        word = reader.peek()
        key = reader.name("an option").upper()
        reader.accept("=")
        value = ""
        if reader.peek().kind in ("string", "number", "word"):
            taken = reader.take()
            value = literal(taken.text) if taken.kind == "string" else taken.text
        if key in found:
            raise SqlError(f"option {key} is given twice", reader.text, word.start)
        found[key] = (word, value)

    if reader.at("("):
        reader.listed(read)
    reader.finish()
    return found


def _format(reader: WordReader, path: str, options: dict[str, tuple[Word, str]]) -> str:
    """The given format, else the one of the file extension."""
    given = options.pop("FORMAT", None)
    if given is not None:
        name = given[1].strip("'").lower()
        if name not in _FORMATS:
            raise SqlError(f"FORMAT {given[1]}: expected csv, json or parquet", reader.text, given[0].start)
        return _FORMATS[name]
    bare = path.lower().removesuffix(".gz").removesuffix(".zst")
    ending = bare.rsplit(".", 1)[-1]
    if ending not in _FORMATS:
        raise InvalidError(
            f"file {path!r}: expected an ending of csv, json, ndjson or parquet, or FORMAT among the options"
        )
    return _FORMATS[ending]
