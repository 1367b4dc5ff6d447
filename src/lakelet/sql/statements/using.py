"""`USE database`: where names without a database are looked for."""

from __future__ import annotations

from lakelet.sql.context import Context
from lakelet.sql.result import SqlResult
from lakelet.sql.statement import Statement


def run_use(context: Context, statement: Statement) -> SqlResult:
    """USE [DATABASE | SCHEMA] name."""
    reader = statement.reader
    reader.expect("USE")
    if reader.peek(1).is_name and reader.peek().keyword in ("DATABASE", "SCHEMA"):
        reader.take()
    name = reader.name("the name of a database")
    reader.finish()
    context.database = context.names.database(name)
    return SqlResult.done(f"using database {context.database}")
