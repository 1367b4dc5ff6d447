"""DROP TABLE, DROP DATABASE and TRUNCATE TABLE.

TRUNCATE is a commit that removes all rows of the table, or of one partition: older snapshots still have them.
"""

from __future__ import annotations

from lakelet.catalog.names import matching
from lakelet.catalog.sql_result import SqlResult
from lakelet.sql.context import Context
from lakelet.sql.iceberg.hooks import at_iceberg, at_iceberg_ref, iceberg_handler
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.statement import Statement
from lakelet.sql.statements.text.clauses import (
    partition_words,
    placed,
    read_dependents,
    read_if_exists,
    read_partition,
    resolve_partition,
)
from lakelet.sql.statements.text.given_table import newest_schema, read_table

_INSTEAD = {
    "BRANCH": "CALL sys.delete_branch drops one, DROP BRANCH b ON catalog.database.table one of an Iceberg table",
    "TAG": "CALL sys.delete_tag drops one, DROP TAG t ON catalog.database.table one of an Iceberg table",
    "INDEX": "there are no indexes",
    "FUNCTION": "there are no functions but those of DuckDB",
    "MACRO": "there are no functions but those of DuckDB",
    "SEQUENCE": "there are no sequences",
    "TYPE": "there are no types but those of the format",
    "TRIGGER": "there are no triggers",
    "MATERIALIZED": "there are no materialized views; DROP VIEW drops a view, DROP TABLE a table",
}


def run_drop(context: Context, statement: Statement) -> SqlResult:
    """DROP TABLE or DROP DATABASE."""
    reader = statement.reader
    reader.expect("DROP")
    if reader.accept("TABLE"):
        return _drop_table(context, statement)
    if reader.accept("DATABASE") or reader.accept("SCHEMA"):
        return _drop_database(context, statement)
    if reader.accept("VIEW"):
        from lakelet.sql.statements.view import run_drop_view  # noqa: PLC0415 - loaded when it comes, as in dispatch.

        return run_drop_view(context, statement)
    if reader.at("CATALOG"):
        return iceberg_handler(context, "catalog_statements:run_drop_catalog")(context, statement)
    if at_iceberg_ref(reader):
        return iceberg_handler(context, "alter:run_drop_ref")(context, statement)
    word = reader.peek()
    if word.keyword in _INSTEAD:
        raise SqlError(f"DROP {word.keyword}: {_INSTEAD[word.keyword]}", reader.text, word.start)
    raise reader.error("TABLE, VIEW, DATABASE or CATALOG")


def _drop_table(context: Context, statement: Statement) -> SqlResult:
    reader = statement.reader
    if_exists = read_if_exists(reader)
    if at_iceberg(reader):
        return iceberg_handler(context, "drop:run_drop_table")(context, statement, if_exists=if_exists)
    given = read_table(context, reader)
    if given.name.branch is not None:
        raise SqlError("a branch is dropped by CALL sys.delete_branch", reader.text, given.word.start)
    # Files are always removed at once.
    reader.accept("PURGE")
    read_dependents(reader)
    reader.finish()
    there = given.find()
    if there is None:
        if context.names.find_view(given.name) is not None:
            raise SqlError(f"{given.shown!r} is a view: DROP VIEW drops it", reader.text, given.word.start)
        if if_exists:
            return SqlResult.done(f"table {given.shown} does not exist")
        there = given.existing()
    context.lake.drop_table(there.full, if_exists=if_exists)
    return SqlResult.done(f"dropped table {there.full}")


def _drop_database(context: Context, statement: Statement) -> SqlResult:
    reader = statement.reader
    if_exists = read_if_exists(reader)
    if at_iceberg(reader, parts=2):
        return iceberg_handler(context, "catalog_statements:run_drop_database")(context, statement, if_exists=if_exists)
    word = reader.peek()
    name = reader.name("the name of a database")
    cascade = reader.accept("CASCADE")
    if not cascade:
        reader.accept("RESTRICT")
    reader.finish()
    there = matching(name, context.lake.databases())
    if there is None:
        if if_exists:
            return SqlResult.done(f"database {name} does not exist")
        with placed(reader, word):
            there = context.names.database(name)
    for what, names in (("tables", context.lake.tables(there)), ("views", context.lake.views(there))):
        if names and not cascade:
            shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
            raise SqlError(
                f"database {there!r} holds {len(names)} {what} ({shown}): drop them first, or say CASCADE",
                reader.text,
                word.start,
            )
    context.lake.drop_database(there, cascade=cascade, if_exists=if_exists)
    return SqlResult.done(f"dropped database {there}")


def run_truncate(context: Context, statement: Statement) -> SqlResult:
    """TRUNCATE TABLE, or one partition of it."""
    reader = statement.reader
    reader.expect("TRUNCATE")
    reader.accept("TABLE")
    if at_iceberg(reader):
        return iceberg_handler(context, "drop:run_truncate")(context, statement)
    target = read_table(context, reader)
    given = read_partition(reader) if reader.accept("PARTITION") else {}
    reader.finish()
    table = target.open()
    spec = resolve_partition(reader, given, newest_schema(table), target.shown)
    made = table.new_commit().overwrite(spec).commit(())
    what = f"partition {partition_words(spec)} of table {target.shown}" if spec else f"table {target.shown}"
    return SqlResult.done(f"emptied {what}" if made is not None else f"{what} was empty")
