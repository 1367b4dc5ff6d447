"""`USE database`: set the database in which unqualified names are resolved."""

from __future__ import annotations

from lakelet.catalog.sql_result import SqlResult
from lakelet.sql.context import Context
from lakelet.sql.iceberg.hooks import at_iceberg
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.statement import Statement


def run_use(context: Context, statement: Statement) -> SqlResult:
    """USE [DATABASE | SCHEMA] name."""
    reader = statement.reader
    reader.expect("USE")
    if reader.peek(1).is_name and reader.peek().keyword in ("DATABASE", "SCHEMA"):
        reader.take()
    if at_iceberg(reader, parts=2):
        raise SqlError(
            "tables of a catalog are named in full, as catalog.database.table: USE is for the lake's own databases",
            reader.text,
            reader.peek().start,
        )
    name = reader.name("the name of a database")
    reader.finish()
    context.database = context.names.database(name)
    return SqlResult.done(f"using database {context.database}")
