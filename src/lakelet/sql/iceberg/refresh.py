"""REFRESH of an Iceberg table, or of a database of a catalog."""

from __future__ import annotations

from lakelet.catalog.sql_result import SqlResult
from lakelet.operations.metadata_cache import refresh_database, refresh_table
from lakelet.sql.context import Context
from lakelet.sql.iceberg.catalog_statements import read_database
from lakelet.sql.iceberg.given_iceberg import read_iceberg
from lakelet.sql.iceberg.names import iceberg_database
from lakelet.sql.metadata_cache.refresh import refreshed
from lakelet.sql.statement import Statement
from lakelet.sql.statements.text.clauses import placed


def run_refresh_table(context: Context, statement: Statement) -> SqlResult:
    """REFRESH TABLE, from catalog.database.table on; all branches are refreshed together."""
    reader = statement.reader
    given = read_iceberg(context, reader)
    reader.finish()
    table = given.open()
    with placed(reader, given.word):
        return refreshed(given.shown, refresh_table(context.lake, table))


def run_refresh_database(context: Context, statement: Statement) -> SqlResult:
    """REFRESH DATABASE, from catalog.database on."""
    reader = statement.reader
    word = reader.peek()
    catalog, name = read_database(context, reader)
    reader.finish()
    with placed(reader, word):
        there = iceberg_database(catalog, name)
    count = refresh_database(context.lake, there, catalog.name)
    return SqlResult.done(f"refreshed {count} tables of database {catalog.name}.{there}")
