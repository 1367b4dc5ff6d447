"""DESCRIBE: the columns of a table, more about it with EXTENDED, or the columns of any query.

    DESCRIBE [TABLE] [EXTENDED | FORMATTED] t [column]     DESCRIBE DATABASE d     DESCRIBE SELECT …

Columns are shown the way DuckDB shows those of a query, with the comment at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from lakelet.catalog.names import split_name
from lakelet.catalog.sql_result import SqlResult
from lakelet.lsm.engine.table_engine import column_rules
from lakelet.model.default_expressions import default_expressions
from lakelet.model.schema import TableSchema
from lakelet.model.types import Field
from lakelet.sql.context import Context
from lakelet.sql.iceberg.hooks import at_iceberg, iceberg_handler
from lakelet.sql.iceberg.names import is_iceberg
from lakelet.sql.statement import Statement
from lakelet.sql.statements.definition.column_words import read_path
from lakelet.sql.statements.definition.type_text import bare_type_text, default_text
from lakelet.sql.statements.text.given_table import given_table, newest_schema, read_database
from lakelet.table import Table

COLUMNS = {name: pa.string() for name in ("column_name", "column_type", "null", "key", "default", "comment")}
_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "PIVOT", "UNPIVOT", "SUMMARIZE", "SHOW", "DESCRIBE", "(")


def run_describe(context: Context, statement: Statement) -> SqlResult:
    """DESCRIBE or DESC."""
    reader = statement.reader
    reader.one_of("DESCRIBE", "DESC")
    if reader.peek().kind == "end":
        raise reader.error("the name of a table or a query")
    if reader.accept("DATABASE") or reader.accept("SCHEMA"):
        return _describe_database(context, statement)
    start = reader.place
    reader.accept("TABLE")
    extended = reader.accept("EXTENDED") or reader.accept("FORMATTED")
    if not extended and (reader.peek().keyword in _QUERIES or not reader.peek().is_name):
        return _describe_query(context, statement, start)
    before = reader.place
    parts = reader.name_parts("the name of a table")
    temporary = context.temporary.find(parts)
    if temporary is not None and reader.at_end and not _is_given(statement, parts):
        from lakelet.sql.temporary.describe import describe_temporary  # noqa: PLC0415 - few sessions have any.

        return describe_temporary(context, temporary)
    if reader.at("(") or (reader.at_end and _is_frame(context, statement, parts)):
        return _describe_query(context, statement, before, is_name=not reader.at("("))
    if is_iceberg(parts):
        if "$" in parts[-1] and split_name(parts[1:], parts[1]).system is not None:
            reader.finish()
            return _describe_query(context, statement, before, is_name=True)
        reader.place = before
        return iceberg_handler(context, "show:run_describe")(context, statement, extended=extended)
    if context.table_name(parts).system is not None or (len(parts) > 1 and parts[0].lower() == "sys"):
        reader.finish()
        return _describe_query(context, statement, before, is_name=True)
    given = given_table(context, reader, parts, reader.words[before])
    if reader.at_end and given.find() is None and context.names.find_view(given.name) is not None:
        return _describe_view(context, statement, before)
    path = None
    if not reader.at_end:
        reader.accept("COLUMN")
        path = read_path(reader)
    reader.finish()
    table = given.open()
    schema = newest_schema(table)
    if path is not None:
        field = path.field(schema)
        is_own = len(path.words) == 1
        return SqlResult.of_rows(COLUMNS, [column_row(field, schema, ".".join(path.resolve(schema)), is_own=is_own)])
    rows = column_rows(schema)
    return SqlResult.of_rows(COLUMNS, rows + (_details(table, given.shown, schema) if extended else []))


def _describe_view(context: Context, statement: Statement, start: int) -> SqlResult:
    rows = [
        (name, duck_type, "YES", None, None, None)
        for name, duck_type, *_ in _describe_query(context, statement, start, is_name=True)
    ]
    return SqlResult.of_rows(COLUMNS, rows)


def _is_given(statement: Statement, parts: Sequence[str]) -> bool:
    return len(parts) == 1 and statement.frames.has(parts[0])


def _is_frame(context: Context, statement: Statement, parts: Sequence[str]) -> bool:
    """Whether a name resolves to a data frame; a variable does only if there is no table of that name."""
    if len(parts) > 1:
        return False
    if statement.frames.given(parts[0]) is not None:
        return True
    is_variable = statement.frames.variable(parts[0]) is not None
    name = context.table_name(parts)
    return is_variable and context.names.find(name) is None and context.names.find_view(name) is None


def column_rows(schema: TableSchema) -> list[Sequence[str | None]]:
    """The columns of a table, one row each."""
    return [column_row(field, schema, field.name, is_own=True) for field in schema.fields]


def column_row(field: Field, schema: TableSchema, name: str, *, is_own: bool) -> Sequence[str | None]:
    """A column, or a field inside one, as a row."""
    keys = [("primary", schema.primary_keys), ("partition", schema.partition_keys)]
    key = ", ".join(role for role, names in keys if is_own and field.name in names)
    if is_own and not key:
        key = column_rules(schema).get(field.name, "")
    null = "YES" if field.type.nullable else "NO"
    default = default_text(field, default_expressions(schema) if is_own else {})
    return (name, bare_type_text(field.type), null, key or None, default, field.description)


def _details(table: Table, name: str, schema: TableSchema) -> list[Sequence[str | None]]:
    snapshot = table.latest_snapshot()
    facts = {
        "Name": name,
        "Location": table.location,
        "Comment": schema.comment,
        "Primary key": ", ".join(schema.primary_keys) or None,
        "Partitioned by": ", ".join(schema.partition_keys) or None,
        "Schema": str(schema.id),
        "Snapshot": None if snapshot is None else str(snapshot.id),
        "Rows stored": "0" if snapshot is None else str(snapshot.total_record_count),
        **{f"Option {key}": text for key, text in sorted(schema.options.items())},
    }
    return fact_rows(facts)


def fact_rows(facts: Mapping[str, str | None]) -> list[Sequence[str | None]]:
    """Properties of a table besides its columns, as rows below them."""
    empty = (None,) * (len(COLUMNS) - 2)
    return [("", None, *empty), ("# Table", None, *empty), *((key, text, *empty) for key, text in facts.items())]


def _describe_database(context: Context, statement: Statement) -> SqlResult:
    reader = statement.reader
    reader.accept("EXTENDED")
    if at_iceberg(reader, parts=2):
        return iceberg_handler(context, "catalog_statements:run_describe_database")(context, statement)
    name = read_database(context, reader)
    reader.finish()
    rows = [
        ("Name", name),
        ("Location", f"{context.lake.location}/{name}.db"),
        ("Tables", str(len(context.lake.tables(name)))),
    ]
    return SqlResult.of_rows({"info_name": pa.string(), "info_value": pa.string()}, rows)


def _describe_query(context: Context, statement: Statement, start: int, *, is_name: bool = False) -> SqlResult:
    """Lets DuckDB describe the rest of the statement: a query, or a relation."""
    reader = statement.reader
    first = reader.words[start]
    if not is_name and first.keyword in _QUERIES:
        query = reader.source_in_place(0, len(reader.words))
    else:
        query = f"DESCRIBE SELECT * FROM {reader.source(start, len(reader.words))}"
    return context.query(query, statement.params, statement.frames)
