"""DESCRIBE and SHOW of temporary tables and views."""

from __future__ import annotations

import pyarrow as pa

from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import InvalidError
from lakelet.sql.context import Context
from lakelet.sql.engine.duckdb_engine import TEMPORARY_DATABASE
from lakelet.sql.lexer.quotes import literal, quoted
from lakelet.sql.statements.definition.type_text import quoted_name
from lakelet.sql.statements.describe import COLUMNS
from lakelet.sql.temporary.objects import TEMPORARY, table_sql


def describe_temporary(context: Context, name: str) -> SqlResult:
    """The columns of a temporary table or view, as those of the lake's are shown."""
    if context.temporary.view(name) is not None:
        with context.query(f"DESCRIBE SELECT * FROM {TEMPORARY}.{quoted(name)}") as found:
            rows = [(column, kind, null, None, None, None) for column, kind, null, *_ in found]
        return SqlResult.of_rows(COLUMNS, rows)
    with context.engine.space(has_tables=False) as space:
        described = space.run(f"DESCRIBE {table_sql(name)}")
        comments = dict(
            space.run(
                f"SELECT column_name, comment FROM duckdb_columns() WHERE database_name = {literal(TEMPORARY_DATABASE)} "
                f"AND table_name = {literal(name)}"
            )
        )
    keys = {"PRI": "primary", "UNI": "unique"}
    return SqlResult.of_rows(
        COLUMNS,
        [
            (column, kind, null, keys.get(key, key), default, comments.get(column))
            for column, kind, null, key, default, _ in described
        ],
    )


def create_temporary_text(context: Context, name: str) -> SqlResult:
    """The CREATE statement of a temporary table; SHOW CREATE VIEW gives that of a view."""
    if context.temporary.view(name) is not None:
        raise InvalidError(f"{name!r} is a temporary view: SHOW CREATE VIEW shows it")
    with context.engine.space(has_tables=False) as space:
        rows = space.run(
            f"SELECT sql FROM duckdb_tables() WHERE database_name = {literal(TEMPORARY_DATABASE)} "
            f"AND table_name = {literal(name)}"
        )
    # A name without quotes is two letters shorter there.
    text = str(rows[0][0]).rstrip(";")
    columns = text[text.index("(", len(f"CREATE TABLE {quoted(name)}") - 2) :]
    return SqlResult.of_rows({"create_table": pa.string()}, [(f"CREATE TEMPORARY TABLE {quoted_name(name)}{columns}",)])
