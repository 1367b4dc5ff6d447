"""CREATE TABLE and CREATE DATABASE.

CREATE TABLE AS creates the table, then writes its rows in one commit: if the query fails or a row does not convert, the table is
dropped again. It is kept only where it may have rows: after a commit whose outcome is unknown, or from another writer. A process
killed between the two leaves an empty table. OR REPLACE keeps the old table unchanged until all rows of the new one are written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakelet.catalog.given_definition import Columns
from lakelet.catalog.names import DEFAULT_DATABASE, SYSTEM_DATABASE, TableName
from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import AlreadyExistsError, CommitUnknownError, InvalidError, NotFoundError
from lakelet.model.default_expressions import default_expression_key
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
from lakelet.sql.iceberg.hooks import at_iceberg, at_iceberg_ref, iceberg_handler
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.statement import Statement
from lakelet.sql.statements.definition.table_definition import (
    TableDefinition,
    check_definition,
    key_name,
    read_definition,
)
from lakelet.sql.statements.refused import OBJECTS
from lakelet.sql.statements.rows.query_rows import CheckedRows, stored_types, table_columns
from lakelet.sql.statements.text.clauses import placed, read_if_not_exists
from lakelet.sql.statements.text.given_table import read_new_table
from lakelet.table import Table

# Options that refer to objects of their own table, such as branches and snapshots.
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
    replaces = reader.peek() if reader.at("OR") else None
    if replaces is not None:
        reader.expect("OR", "REPLACE")
    if reader.accept("TEMP") or reader.accept("TEMPORARY"):
        from lakelet.sql.temporary.creation import run_create_temporary  # noqa: PLC0415 - loaded when it comes, as in dispatch.

        return run_create_temporary(context, statement, replaces)
    if reader.accept("TABLE"):
        return _create_table(context, statement, replaces)
    if reader.accept("VIEW"):
        from lakelet.sql.statements.view import run_create_view  # noqa: PLC0415 - loaded when it comes, as in dispatch.

        return run_create_view(context, statement, replaces)
    if replaces is not None:
        _refuse_object(reader)
        raise reader.error("TABLE or VIEW")
    if reader.accept("DATABASE") or reader.accept("SCHEMA"):
        return _create_database(context, statement)
    if reader.at("CATALOG"):
        return iceberg_handler(context, "catalog_statements:run_create_catalog")(context, statement)
    if at_iceberg_ref(reader):
        return iceberg_handler(context, "alter:run_create_ref")(context, statement)
    _refuse_object(reader)
    raise reader.error("TABLE, VIEW, DATABASE or CATALOG")


def _refuse_object(reader: WordReader) -> None:
    """SqlError at what no lake has, with what to do instead."""
    word = reader.peek()
    if word.keyword in OBJECTS:
        raise SqlError(f"CREATE {word.keyword}: {OBJECTS[word.keyword]}", reader.text, word.start)


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


def _create_table(context: Context, statement: Statement, replaces: Word | None) -> SqlResult:
    reader = statement.reader
    if_not_exists = read_if_not_exists(reader)
    if replaces is not None and if_not_exists:
        raise SqlError("OR REPLACE and IF NOT EXISTS: one of them will do", reader.text, replaces.start)
    if at_iceberg(reader):
        if replaces is not None:
            raise SqlError("OR REPLACE: DROP TABLE an Iceberg table, then CREATE it", reader.text, replaces.start)
        run = iceberg_handler(context, "create:run_create_table")
        return run(context, statement, if_not_exists=if_not_exists)
    start = reader.place
    reader.name_parts("the name of a table")
    definition = read_definition(reader)
    reader.finish()
    # The database is looked up once the statement is known to be valid.
    reader.place = start
    name = read_new_table(context, reader)
    there = context.names.find(name)
    view = context.names.find_view(name) if there is None else None
    if view is not None:
        raise AlreadyExistsError(f"{view.full!r} is a view in {context.lake.location}: drop it first")
    if there is not None and replaces is None:
        if if_not_exists:
            return SqlResult.done(f"table {there.full} exists")
        raise AlreadyExistsError(f"table {there.full!r} exists in {context.lake.location}")
    new = _NewTable(context, statement, there or name, definition, replaces=there is not None)
    try:
        return new.create()
    except AlreadyExistsError:
        # Another writer created it concurrently.
        if if_not_exists:
            return SqlResult.done(f"table {name.full} exists")
        raise


@dataclass(frozen=True, slots=True)
class _NewTable:
    """A table to create; with `replaces` it replaces an existing one."""

    context: Context
    statement: Statement
    name: TableName
    definition: TableDefinition
    replaces: bool

    def create(self) -> SqlResult:
        """Creates the table."""
        definition = self.definition
        if definition.query is not None:
            return self._from_query()
        if definition.like is not None:
            self._like()
        else:
            fields = [column.as_field() for column in definition.columns]
            self._make(fields, [field.name for field in fields])
        return SqlResult.done(self._did)

    @property
    def _did(self) -> str:
        return f"{'replaced' if self.replaces else 'created'} table {self.name.full}"

    def _make(self, columns: Columns, names: list[str], rows: pa.RecordBatchReader | None = None) -> Table:
        definition = self.definition
        return self._with_keys(
            columns,
            [key_name(word, names) or word.text for word in definition.primary_key],
            [key_name(word, names) or word.text for word in definition.partition_keys],
            {**definition.option_values, **definition.default_options},
            definition.table_comment,
            rows,
        )

    def _with_keys(
        self,
        columns: Columns,
        primary_key: Sequence[str],
        partitioned_by: Sequence[str],
        options: dict[str, str],
        comment: str | None,
        rows: pa.RecordBatchReader | None = None,
    ) -> Table:
        lake, name = self.context.lake, self.name.full
        keys = {"primary_key": primary_key, "partitioned_by": partitioned_by}
        if self.replaces:
            return lake.replace_table(name, columns, rows, options=options, comment=comment, **keys)
        return self._in_database(
            lambda: lake.create_table(name, columns, options=dict(options), comment=comment, **keys)  # type: ignore[arg-type]
        )

    def _in_database(self, make: Callable[[], Table]) -> Table:
        """Creates a table; the default database is created with its first table, once that is known to be valid."""
        try:
            return make()
        except NotFoundError:
            if self.name.database != DEFAULT_DATABASE or DEFAULT_DATABASE in self.context.lake.databases():
                raise
            self.context.ensure_database(self.name.database)
            return make()

    def _like(self) -> None:
        """CREATE TABLE LIKE: with the columns, keys, comments and options of another table."""
        definition, reader, context = self.definition, self.statement.reader, self.context
        assert definition.like is not None
        assert definition.like_at is not None
        with placed(reader, definition.like_at):
            source = context.table_name(definition.like)
            if source.system is not None:
                raise InvalidError(
                    f"{'.'.join(definition.like)!r} names a system table; CREATE TABLE … AS keeps its rows"
                )
            schema = context.names.open(source).schema
        for word in (definition.key_at, *definition.partition_keys):
            if word is not None:
                raise SqlError("the keys come from the other table", reader.text, word.start)
        own = {option.name for option in _OWN}
        # A default expression is stored as an option, but belongs to its column.
        defaults = {default_expression_key(name) for name in schema.names}
        taken = [(key, text) for key, text in schema.options.items() if definition.like_options or key in defaults]
        options = {key: text for key, text in taken if key not in own} | definition.option_values
        comment = schema.comment if definition.table_comment is None else definition.table_comment
        self._with_keys(schema.fields, schema.primary_keys, schema.partition_keys, options, comment)

    def _from_query(self) -> SqlResult:
        """CREATE TABLE AS: with the columns and rows of a query."""
        definition, reader = self.definition, self.statement.reader
        assert definition.query is not None
        text = reader.source_in_place(*definition.query)
        with self.context.query(text, self.statement.params, self.statement.frames) as found:
            result = table_columns(found, [word.text for word in definition.names])
            names = list(result.columns)
            notes = stored_types(result)
            check_definition(reader, definition, names)
            counted = CheckedRows(result.schema, result.to_batches)
            rows = counted.reader() if definition.with_data else None
            if self.replaces:
                self._make(result.schema, names, rows)
            else:
                self._create_filled(result.schema, names, rows)
        if not definition.with_data:
            return SqlResult.done(f"{self._did}{notes}")
        return SqlResult.done(f"{self._did}, {counted.counted}{notes}")

    def _create_filled(self, schema: pa.Schema, names: list[str], rows: pa.RecordBatchReader | None) -> None:
        table = self._make(schema, names)
        if rows is None:
            return
        try:
            table.write(rows)
        except CommitUnknownError:
            raise
        except (Exception, KeyboardInterrupt):
            if table.latest_snapshot() is None:
                self.context.lake.drop_table(self.name.full, if_exists=True)
            raise
