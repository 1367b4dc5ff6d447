"""CREATE and DROP CATALOG, and the databases of catalogs.

    CREATE CATALOG [IF NOT EXISTS] name WITH ('type' = 'rest', 'uri' = '…')    DROP CATALOG [IF EXISTS] name
    CREATE DATABASE [IF NOT EXISTS] catalog.database    DROP DATABASE [IF EXISTS] catalog.database [CASCADE]
    SHOW DATABASES IN catalog

A catalog is stored in the lake once a connection to it succeeded. Dropping it removes only its registration: its tables stay.
"""

from __future__ import annotations

import pyarrow as pa

from lakelet.catalog.names import matching
from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import AlreadyExistsError
from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.catalog.table_creation import drop_table
from lakelet.sql.context import Context
from lakelet.sql.iceberg.names import iceberg_database, known_catalog
from lakelet.sql.iceberg.table_words import read_properties
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.statement import Statement
from lakelet.sql.statements.show import show_names
from lakelet.sql.statements.text.clauses import placed, read_if_exists, read_if_not_exists

_MOST_SHOWN = 5


def run_create_catalog(context: Context, statement: Statement) -> SqlResult:
    """CREATE CATALOG, from CATALOG on."""
    reader = statement.reader
    reader.expect("CATALOG")
    if_not_exists = read_if_not_exists(reader)
    word = reader.peek()
    name = reader.name("the name of a catalog")
    if not (reader.accept("WITH") or reader.accept("OPTIONS") or reader.accept("TBLPROPERTIES")):
        raise reader.error("WITH and the properties of the catalog, such as ('type' = 'rest', 'uri' = '…')")
    at = reader.peek()
    properties = read_properties(reader)
    reader.finish()
    if not {"type", "uri"} & set(properties):
        raise SqlError("expected at least 'type' or 'uri' among the properties", reader.text, at.start)
    catalogs = context.lake.catalogs
    try:
        with placed(reader, word):
            catalogs.create(name, properties)
    except AlreadyExistsError:
        if not if_not_exists:
            raise
        return SqlResult.done(f"catalog {name} exists")
    return SqlResult.done(f"created catalog {name}")


def run_drop_catalog(context: Context, statement: Statement) -> SqlResult:
    """DROP CATALOG, from CATALOG on."""
    reader = statement.reader
    reader.expect("CATALOG")
    if_exists = read_if_exists(reader)
    word = reader.peek()
    name = reader.name("the name of a catalog")
    reader.finish()
    catalogs = context.lake.catalogs
    there = matching(name, catalogs.names())
    if there is None and if_exists:
        return SqlResult.done(f"catalog {name} does not exist")
    with placed(reader, word):
        catalogs.drop(known_catalog(context, name))
    return SqlResult.done(f"dropped catalog {there}")


def run_show_databases(context: Context, statement: Statement) -> SqlResult:
    """SHOW DATABASES IN catalog, from IN on."""
    reader = statement.reader
    reader.one_of("IN", "FROM")
    word = reader.peek()
    name = reader.name("the name of a catalog")
    with placed(reader, word):
        databases = context.lake.catalogs.open(known_catalog(context, name)).namespaces()
    return show_names(reader, "database", databases)


def run_create_database(context: Context, statement: Statement, *, if_not_exists: bool) -> SqlResult:
    """CREATE DATABASE, from catalog.database on."""
    reader = statement.reader
    catalog, name = read_database(context, reader)
    for clause in ("COMMENT", "LOCATION", "WITH"):
        if reader.at(clause):
            raise SqlError(f"{clause}: a database has but a name here", reader.text, reader.peek().start)
    reader.finish()
    if matching(name, catalog.namespaces()) is not None:
        if if_not_exists:
            return SqlResult.done(f"database {catalog.name}.{name} exists")
        raise AlreadyExistsError(f"database {f'{catalog.name}.{name}'!r} exists")
    catalog.create_namespace(name, if_not_exists=if_not_exists)
    return SqlResult.done(f"created database {catalog.name}.{name}")


def run_drop_database(context: Context, statement: Statement, *, if_exists: bool) -> SqlResult:
    """DROP DATABASE, from catalog.database on."""
    reader = statement.reader
    word = reader.peek()
    catalog, name = read_database(context, reader)
    cascade = reader.accept("CASCADE")
    if not cascade:
        reader.accept("RESTRICT")
    reader.finish()
    if if_exists and matching(name, catalog.namespaces()) is None:
        return SqlResult.done(f"database {catalog.name}.{name} does not exist")
    with placed(reader, word):
        there = iceberg_database(catalog, name)
    tables = catalog.tables(there)
    if tables and not cascade:
        shown = ", ".join(tables[:_MOST_SHOWN]) + (", …" if len(tables) > _MOST_SHOWN else "")
        raise SqlError(
            f"database {catalog.name}.{there} holds {len(tables)} tables ({shown}): drop them first, or say CASCADE",
            reader.text,
            word.start,
        )
    for table in tables:
        drop_table(catalog, f"{there}.{table}")
    catalog.drop_namespace(there)
    return SqlResult.done(f"dropped database {catalog.name}.{there}")


def run_describe_database(context: Context, statement: Statement) -> SqlResult:
    """DESCRIBE DATABASE, from catalog.database on."""
    reader = statement.reader
    word = reader.peek()
    catalog, name = read_database(context, reader)
    reader.finish()
    with placed(reader, word):
        there = iceberg_database(catalog, name)
    rows = [("Name", there), ("Catalog", catalog.name), ("Tables", str(len(catalog.tables(there))))]
    return SqlResult.of_rows({"info_name": pa.string(), "info_value": pa.string()}, rows)


def read_database(context: Context, reader: WordReader) -> tuple[IcebergCatalog, str]:
    """Reads catalog.database; the catalog must be registered."""
    word = reader.peek()
    parts = reader.name_parts("catalog.database")
    with placed(reader, word):
        return context.lake.catalogs.open(known_catalog(context, parts[0])), parts[1]
