"""CREATE TABLE and CREATE DATABASE.

A table of a query is made before its rows are written, in one commit: a query that fails, or rows that do not fit, take the
table away again. It stays only where rows may be in it: after a commit whose outcome nobody knows, or by another writer.
A process that is killed between the two leaves an empty table.
"""

from __future__ import annotations

from collections.abc import Callable

from lakelet.catalog.lake import Columns
from lakelet.errors import AlreadyExistsError, CommitUnknownError, InvalidError, NotFoundError
from lakelet.options import (
    BRANCH,
    PATH,
    SCAN_FALLBACK_BRANCH,
    SCAN_SNAPSHOT_ID,
    SCAN_TAG_NAME,
    SCAN_TIMESTAMP,
    SCAN_TIMESTAMP_MILLIS,
    SCAN_VERSION,
)
from lakelet.sql.context import Context
from lakelet.sql.errors import SqlError
from lakelet.sql.iceberg.hooks import at_iceberg, at_iceberg_ref, iceberg_handler
from lakelet.sql.names import DEFAULT_DATABASE, SYSTEM_DATABASE, TableName
from lakelet.sql.result import SqlResult
from lakelet.sql.statement import Statement
from lakelet.sql.statements.clauses import placed, read_if_not_exists
from lakelet.sql.statements.given_table import read_new_table
from lakelet.sql.statements.query_rows import CheckedRows, query_columns, stored_types
from lakelet.sql.statements.refused import OBJECTS
from lakelet.sql.statements.table_definition import TableDefinition, check_definition, key_name, read_definition
from lakelet.sql.word_reader import WordReader
from lakelet.table import Table

# Options that name something of the very table they are set on.
_OWN = (
    BRANCH,
    PATH,
    SCAN_FALLBACK_BRANCH,
    SCAN_SNAPSHOT_ID,
    SCAN_TAG_NAME,
    SCAN_TIMESTAMP,
    SCAN_TIMESTAMP_MILLIS,
    SCAN_VERSION,
)


def run_create(context: Context, statement: Statement) -> SqlResult:
    """CREATE TABLE or CREATE DATABASE."""
    reader = statement.reader
    reader.expect("CREATE")
    if reader.at("OR"):
        word = reader.peek()
        reader.expect("OR", "REPLACE")
        raise SqlError(
            "OR REPLACE: drop the table first, so that it is plain that its rows go", reader.text, word.start
        )
    if reader.accept("TABLE"):
        return _create_table(context, statement)
    if reader.accept("DATABASE") or reader.accept("SCHEMA"):
        return _create_database(context, statement)
    if reader.at("CATALOG"):
        return iceberg_handler(context, "catalog_statements:run_create_catalog")(context, statement)
    if at_iceberg_ref(reader):
        return iceberg_handler(context, "altering:run_create_ref")(context, statement)
    word = reader.peek()
    if word.keyword in OBJECTS:
        raise SqlError(f"CREATE {word.keyword}: {OBJECTS[word.keyword]}", reader.text, word.start)
    raise reader.error("TABLE, DATABASE or CATALOG")


def _create_database(context: Context, statement: Statement) -> SqlResult:
    reader = statement.reader
    if_not_exists = read_if_not_exists(reader)
    if at_iceberg(reader, parts=2):
        run = iceberg_handler(context, "catalog_statements:run_create_database")
        return run(context, statement, if_not_exists=if_not_exists)
    word = reader.peek()
    name = reader.name("the name of a database")
    for clause in ("COMMENT", "LOCATION", "WITH"):
        if reader.at(clause):
            raise SqlError(f"{clause}: a database is a folder, and has but a name", reader.text, reader.peek().start)
    reader.finish()
    if name.lower() == SYSTEM_DATABASE:
        raise SqlError(f"{SYSTEM_DATABASE!r} is the database of system tables", reader.text, word.start)
    there = [other for other in context.lake.databases() if other.lower() == name.lower()]
    if there:
        if if_not_exists:
            return SqlResult.done(f"database {there[0]} exists")
        raise AlreadyExistsError(f"database {there[0]!r} exists in {context.lake.location}")
    with placed(reader, word):
        context.lake.create_database(name, if_not_exists=if_not_exists)
    return SqlResult.done(f"created database {name}")


def _create_table(context: Context, statement: Statement) -> SqlResult:
    reader = statement.reader
    if_not_exists = read_if_not_exists(reader)
    if at_iceberg(reader):
        run = iceberg_handler(context, "creating:run_create_table")
        return run(context, statement, if_not_exists=if_not_exists)
    start = reader.place
    reader.name_parts("the name of a table")
    definition = read_definition(reader)
    reader.finish()
    # Whether there is such a database is asked once the statement makes sense.
    reader.place = start
    name = read_new_table(context, reader)
    there = context.names.find(name)
    if there is not None:
        if if_not_exists:
            return SqlResult.done(f"table {there.full} exists")
        raise AlreadyExistsError(f"table {there.full!r} exists in {context.lake.location}")
    try:
        if definition.query is not None:
            return _create_from_query(context, statement, name, definition)
        if definition.like is not None:
            _create_like(context, reader, name, definition)
        else:
            fields = [column.as_field() for column in definition.columns]
            _make(context, name, fields, definition, [field.name for field in fields])
    except AlreadyExistsError:
        # Somebody made it in the meantime.
        if if_not_exists:
            return SqlResult.done(f"table {name.full} exists")
        raise
    return SqlResult.done(f"created table {name.full}")


def _make(context: Context, name: TableName, columns: Columns, definition: TableDefinition, names: list[str]) -> Table:
    return _in_database(
        context,
        name,
        lambda: context.lake.create_table(
            name.full,
            columns,
            primary_key=[key_name(word, names) or word.text for word in definition.primary_key],
            partitioned_by=[key_name(word, names) or word.text for word in definition.partition_keys],
            options=definition.option_values,
            comment=definition.table_comment,
        ),
    )


def _in_database(context: Context, name: TableName, make: Callable[[], Table]) -> Table:
    """Makes a table; the default database is made with its first table, once that is known to be a sound one."""
    try:
        return make()
    except NotFoundError:
        if name.database != DEFAULT_DATABASE or DEFAULT_DATABASE in context.lake.databases():
            raise
        context.ensure_database(name.database)
        return make()


def _create_like(context: Context, reader: WordReader, name: TableName, definition: TableDefinition) -> None:
    """With the columns, keys, comments and options of another table."""
    assert definition.like is not None
    assert definition.like_at is not None
    with placed(reader, definition.like_at):
        source = context.table_name(definition.like)
        if source.system is not None:
            raise InvalidError(f"{'.'.join(definition.like)!r} names a system table; CREATE TABLE … AS keeps its rows")
        schema = context.names.open(source).schema
    for word in (definition.key_at, *definition.partition_keys):
        if word is not None:
            raise SqlError("the keys come from the other table", reader.text, word.start)
    own = {option.name for option in _OWN}
    taken = schema.options.items() if definition.like_options else ()
    options = {key: text for key, text in taken if key not in own} | definition.option_values
    comment = definition.table_comment
    _in_database(
        context,
        name,
        lambda: context.lake.create_table(
            name.full,
            schema.fields,
            primary_key=schema.primary_keys,
            partitioned_by=schema.partition_keys,
            options=options,
            comment=schema.comment if comment is None else comment,
        ),
    )


def _create_from_query(
    context: Context, statement: Statement, name: TableName, definition: TableDefinition
) -> SqlResult:
    """With the columns and rows of a query."""
    reader = statement.reader
    assert definition.query is not None
    text = reader.source_in_place(*definition.query)
    with context.query(text, statement.params, statement.frames) as result:
        names = query_columns(result.schema)
        notes = stored_types(result)
        check_definition(reader, definition, names)
        table = _make(context, name, result.schema, definition, names)
        counted = CheckedRows(result.schema, result.to_batches)
        if definition.with_data:
            try:
                table.write(counted.reader())
            except CommitUnknownError:
                raise
            except (Exception, KeyboardInterrupt):
                if table.latest_snapshot() is None:
                    context.lake.drop_table(name.full, if_exists=True)
                raise
    if not definition.with_data:
        return SqlResult.done(f"created table {name.full}{notes}")
    return SqlResult.done(f"created table {name.full}, {counted.counted}{notes}")
