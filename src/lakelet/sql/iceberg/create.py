"""CREATE TABLE catalog.database.table.

CREATE TABLE AS creates the table, then writes its rows in one commit: if the query fails or a row does not convert, the table is
dropped again. It is kept only where it may have rows: after a commit whose outcome is unknown, or from another writer. A process
killed between the two leaves an empty table.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import AlreadyExistsError, CommitUnknownError
from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.catalog.table_creation import TablePlan, check_version, create_table, drop_table
from lakelet.iceberg.schema.column_types import iceberg_schema
from lakelet.iceberg.schema.partition_terms import PartitionTerm, check_terms
from lakelet.iceberg.table import IcebergTable
from lakelet.model.arrow.arrow_types import from_arrow
from lakelet.model.schema import TableSchema
from lakelet.model.types import Field
from lakelet.sql.context import Context
from lakelet.sql.iceberg.given_iceberg import GivenIceberg, read_iceberg
from lakelet.sql.iceberg.insert import insert_rows
from lakelet.sql.iceberg.names import iceberg_database
from lakelet.sql.iceberg.table_words import IcebergDefinition, read_iceberg_definition
from lakelet.sql.statement import Statement
from lakelet.sql.statements.rows.query_rows import CheckedRows, stored_types, table_columns
from lakelet.sql.statements.text.clauses import placed
from lakelet.storage.paths import check_name

_VERSION = "format-version"


def run_create_table(context: Context, statement: Statement, *, if_not_exists: bool) -> SqlResult:
    """Creates a table, with the rows of a query for CREATE TABLE AS."""
    reader = statement.reader
    given = read_iceberg(context, reader)
    given.no_branch("a branch is made by ALTER TABLE … CREATE BRANCH")
    definition = read_iceberg_definition(reader)
    reader.finish()
    catalog = given.catalog
    with placed(reader, given.word):
        check_name(given.name.table, "table")
        database = iceberg_database(catalog, given.name.database)
    if definition.properties_at is not None:
        with placed(reader, definition.properties_at):
            check_version(definition.properties.get(_VERSION, "2"))
    name = f"{database}.{given.name.table}"
    shown = f"{given.name.catalog}.{name}"
    there = given.find()
    if there is not None:
        if if_not_exists:
            return SqlResult.done(f"table {there.shown} exists")
        raise AlreadyExistsError(f"table {there.shown!r} exists")
    try:
        if definition.query is not None:
            return _create_from_query(statement, given, name, definition)
        fields = [column.as_field() for column in definition.columns]
        for column, field in zip(definition.columns, fields, strict=True):
            with placed(reader, column.name):
                iceberg_schema([field], format_version=_version(definition))
        _create(catalog, name, given, definition, fields)
    except AlreadyExistsError:
        # Another writer created it concurrently.
        if if_not_exists:
            return SqlResult.done(f"table {shown} exists")
        raise
    return SqlResult.done(f"created table {shown}")


def _create(
    catalog: IcebergCatalog, name: str, given: GivenIceberg, definition: IcebergDefinition, fields: Sequence[Field]
) -> IcebergTable:
    return create_table(
        catalog,
        name,
        TablePlan(
            fields,
            _terms(given, definition, fields),
            definition.properties,
            definition.comment,
            definition.location,
        ),
    )


def _terms(given: GivenIceberg, definition: IcebergDefinition, fields: Sequence[Field]) -> list[PartitionTerm]:
    """The partition terms of the table; SqlError at a term that does not fit the columns."""
    numbered = tuple(Field(number, field.name, field.type) for number, field in enumerate(fields, 1))
    schema = TableSchema(0, numbered, len(numbered), (), (), {}, None, 0)
    found: list[PartitionTerm] = []
    for term in definition.terms:
        found.append(term.term(schema))
        with placed(given.reader, term.word):
            check_terms(fields, found, format_version=_version(definition))
    return found


def _version(definition: IcebergDefinition) -> int:
    return int(definition.properties.get(_VERSION, "2"))


def _create_from_query(
    statement: Statement, given: GivenIceberg, name: str, definition: IcebergDefinition
) -> SqlResult:
    """Creates the table with the columns and rows of a query."""
    context, reader = given.context, given.reader
    assert definition.query is not None
    text = reader.source_in_place(*definition.query)
    with context.query(text, statement.params, statement.frames) as found:
        result = table_columns(found, [word.text for word in definition.names])
        notes = stored_types(result)
        fields = [
            Field(-1, column.name, from_arrow(column.type, where=f"column {column.name!r}")) for column in result.schema
        ]
        catalog = given.catalog
        table = _create(catalog, name, given, definition, fields)
        counted = CheckedRows(result.schema, result.to_batches)
        if definition.with_data:
            try:
                insert_rows(table, counted.reader())
            except CommitUnknownError:
                raise
            except (Exception, KeyboardInterrupt):
                if table.reloaded().snapshot_id() is None:
                    drop_table(catalog, name)
                raise
    shown = f"{given.name.catalog}.{name}"
    if not definition.with_data:
        return SqlResult.done(f"created table {shown}{notes}")
    return SqlResult.done(f"created table {shown}, {counted.counted}{notes}")
