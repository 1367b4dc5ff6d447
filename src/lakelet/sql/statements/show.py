"""SHOW: list the objects of a lake, and their properties.

    SHOW DATABASES   SHOW TABLES [IN db]   SHOW VIEWS [IN db]   SHOW COLUMNS IN t   SHOW PARTITIONS t   SHOW TBLPROPERTIES t
    SHOW CREATE TABLE t   SHOW CREATE VIEW v   SHOW TAGS IN t   SHOW BRANCHES IN t   SHOW CURRENT DATABASE   SHOW SETTINGS
    SHOW CATALOGS   SHOW DATABASES IN catalog   SHOW PROC '/tiered_cache_stats'

Names may be filtered by LIKE 'pattern', in which % and * match any text and _ one character, ignoring case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module

import pyarrow as pa

from lakelet.catalog.names import DEFAULT_DATABASE
from lakelet.catalog.sql_result import SqlResult
from lakelet.options import find_option
from lakelet.sql.context import Context
from lakelet.sql.iceberg.hooks import at_iceberg, iceberg_handler
from lakelet.sql.lexer.errors import SqlError, nearest
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.statement import Statement
from lakelet.sql.statements.definition.type_text import create_text, quoted_name
from lakelet.sql.statements.describe import COLUMNS, column_rows
from lakelet.sql.statements.text.clauses import (
    read_option_name,
    read_partition,
    resolve_partition,
)
from lakelet.sql.statements.text.given_table import GivenTable, newest_schema, read_database, read_table
from lakelet.sql.temporary.objects import TEMPORARY
from lakelet.table.upkeep.partitions import live_partitions

_TEXT = pa.string()
_EXPECTED = (
    "DATABASES, TABLES, VIEWS, COLUMNS, PARTITIONS, TBLPROPERTIES, CREATE TABLE, TAGS, BRANCHES, SETTINGS, CATALOGS or "
    "PROC"
)


def run_show(context: Context, statement: Statement) -> SqlResult:
    """SHOW in all its forms."""
    reader = statement.reader
    reader.expect("SHOW")
    word = reader.take()
    if _at_iceberg(reader, word):
        return iceberg_handler(context, "show:run_show")(context, statement, what=word.keyword)
    match word.keyword:
        case "CATALOGS":
            return show_names(reader, "catalog", context.lake.catalogs.names())
        case "DATABASES" | "SCHEMAS":
            if reader.peek().keyword in ("IN", "FROM"):
                return iceberg_handler(context, "catalog_statements:run_show_databases")(context, statement)
            return show_names(reader, "database", context.lake.databases())
        case "CURRENT":
            reader.one_of("DATABASE", "SCHEMA")
            reader.finish()
            return SqlResult.of_rows({"database": _TEXT}, [(context.database,)])
        case "TABLES":
            return _tables(context, reader)
        case "VIEWS":
            return _tables(context, reader, views=True)
        case "CREATE":
            if reader.accept("VIEW"):
                from lakelet.sql.statements.view import create_view_text  # noqa: PLC0415 - DuckDB loads with it.

                return create_view_text(context, reader)
            return _create_table(context, reader)
        case "COLUMNS" | "FIELDS":
            return _columns(context, reader)
        case "PARTITIONS":
            return _partitions(context, reader)
        case "TBLPROPERTIES" | "OPTIONS":
            return _options(context, reader)
        case "PROC":
            from lakelet.sql.metadata_cache.show_proc import show_proc  # noqa: PLC0415 - few ask for it.

            return show_proc(context, reader)
        case "SETTINGS":
            reader.finish()
            return SqlResult.of_rows({"name": _TEXT, "value": _TEXT}, sorted(context.settings.items()))
        case "TAGS":
            return show_names(reader, "tag", _table_of(context, reader).open().tag_names())
        case "BRANCHES":
            return show_names(reader, "branch", sorted(_table_of(context, reader).open().branch_names()))
    raise reader.error(_EXPECTED, word)


_OF_TABLES = ("CREATE", "COLUMNS", "FIELDS", "PARTITIONS", "TBLPROPERTIES", "OPTIONS", "TAGS", "BRANCHES")


def _at_iceberg(reader: WordReader, word: Word) -> bool:
    """Whether SHOW is about an Iceberg table, or the tables of a catalog's database; then reads up to the name."""
    start = reader.place
    if word.keyword == "CREATE":
        reader.accept("TABLE")
    reader.accept("IN") or reader.accept("FROM")
    if word.keyword in _OF_TABLES and at_iceberg(reader):
        return True
    if word.keyword == "TABLES" and reader.place > start and at_iceberg(reader, parts=2):
        return True
    reader.place = start
    return False


def _tables(context: Context, reader: WordReader, *, views: bool = False) -> SqlResult:
    what = "view" if views else "table"
    database = context.database
    if reader.accept("IN") or reader.accept("FROM"):
        if reader.peek().text.lower() == TEMPORARY and TEMPORARY not in context.lake.databases():
            reader.take()
            return show_names(reader, what, context.temporary.names(views=views))
        database = read_database(context, reader)
        return show_names(reader, what, context.lake.views(database) if views else context.lake.tables(database))
    own = list(context.temporary.names(views=views))
    if database == DEFAULT_DATABASE and database not in context.lake.databases():
        # The default database is created with its first table.
        return show_names(reader, what, own)
    names = context.lake.views(database) if views else context.lake.tables(database)
    return show_names(reader, what, sorted({*names, *own}) if own else names)


def _create_table(context: Context, reader: WordReader) -> SqlResult:
    reader.expect("TABLE")
    temporary = _of_temporary(context, reader, "create_temporary_text")
    if temporary is not None:
        return temporary
    given = read_table(context, reader)
    reader.finish()
    table, there = given.open(), given.existing()
    text = create_text(f"{quoted_name(there.database)}.{quoted_name(there.table)}", newest_schema(table))
    return SqlResult.of_rows({"create_table": _TEXT}, [(text,)])


def _columns(context: Context, reader: WordReader) -> SqlResult:
    reader.accept("IN") or reader.accept("FROM")
    described = _of_temporary(context, reader, "describe_temporary")
    if described is not None:
        return described
    given = read_table(context, reader)
    if reader.accept("IN") or reader.accept("FROM"):
        given = replace(given, name=replace(given.name, database=read_database(context, reader)))
    keep = read_pattern(reader)
    reader.finish()
    rows = column_rows(newest_schema(given.open()))
    return SqlResult.of_rows(COLUMNS, [row for row in rows if keep(str(row[0]))])


def _of_temporary(context: Context, reader: WordReader, show: str) -> SqlResult | None:
    """The result for a temporary table or view; None, with nothing read, for any other name."""
    start = reader.place
    name = context.temporary.find(reader.name_parts("the name of a table")) if reader.peek().is_name else None
    if name is None or not reader.at_end:
        reader.place = start
        return None
    module = import_module("lakelet.sql.temporary.describe")
    found: SqlResult = getattr(module, show)(context, name)
    return found


def _partitions(context: Context, reader: WordReader) -> SqlResult:
    target = _table_of(context, reader)
    given = read_partition(reader) if reader.accept("PARTITION") else {}
    reader.finish()
    table = target.open()
    schema = newest_schema(table)
    if not schema.partition_keys:
        raise SqlError(f"table {target.shown!r} is not partitioned", reader.text, target.word.start)
    spec = resolve_partition(reader, given, schema, target.shown)
    found = live_partitions(table, schema, [spec])
    return SqlResult.of_rows({"partition": _TEXT}, [(partition.name(schema),) for partition in found])


def _options(context: Context, reader: WordReader) -> SqlResult:
    given = _table_of(context, reader)
    key = None
    if reader.accept("("):
        word = reader.peek()
        key = read_option_name(reader)
        reader.expect(")")
    reader.finish()
    options = newest_schema(given.open()).options
    if key is not None and key not in options and find_option(key) is None:
        raise SqlError(f"option '{key}' is not set{nearest(key, options)}", reader.text, word.start)
    rows = [(known, text) for known, text in options.items() if key in (None, known)]
    return SqlResult.of_rows({"key": _TEXT, "value": _TEXT}, sorted(rows))


def _table_of(context: Context, reader: WordReader) -> GivenTable:
    """Reads the name of a table, with IN or FROM before it or not."""
    reader.accept("IN") or reader.accept("FROM")
    return read_table(context, reader)


def show_names(reader: WordReader, column: str, names: Iterable[str]) -> SqlResult:
    """Names, filtered by LIKE."""
    keep = read_pattern(reader)
    reader.finish()
    return SqlResult.of_rows({column: _TEXT}, [(name,) for name in names if keep(name)])


class _Pattern:
    """Matches names against a pattern."""

    def __init__(self, text: str, *, wanted: bool) -> None:
        signs = {"%": ".*", "*": ".*", "_": "."}
        self._regex = re.compile("".join(signs.get(letter, re.escape(letter)) for letter in text), re.I | re.S)
        self._wanted = wanted

    def __call__(self, name: str) -> bool:
        return (self._regex.fullmatch(name) is not None) == self._wanted


def read_pattern(reader: WordReader) -> _Pattern:
    """Reads [NOT] LIKE 'pattern', or the pattern alone; without one all names match."""
    wanted = not reader.accept("NOT")
    if reader.accept("LIKE") or reader.accept("ILIKE") or not wanted or reader.peek().kind == "string":
        return _Pattern(reader.string("a pattern in quotes"), wanted=wanted)
    return _Pattern("%", wanted=True)
