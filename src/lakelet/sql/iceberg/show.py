"""SHOW and DESCRIBE of Iceberg tables."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakelet.catalog.sql_result import SqlResult
from lakelet.iceberg.schema.column_types import model_schema
from lakelet.iceberg.schema.partition_names import partition_names
from lakelet.iceberg.schema.partition_terms import PartitionTerm, shown_terms
from lakelet.iceberg.table import IcebergTable
from lakelet.model.schema import TableSchema
from lakelet.sql.context import Context
from lakelet.sql.iceberg.given_iceberg import GivenIceberg, read_iceberg
from lakelet.sql.iceberg.names import catalog_of, iceberg_database, iceberg_name
from lakelet.sql.lexer.errors import SqlError, nearest
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.statement import Statement
from lakelet.sql.statements.definition.column_words import read_path
from lakelet.sql.statements.definition.type_text import column_text, quoted_name, quoted_text
from lakelet.sql.statements.describe import COLUMNS, column_row, fact_rows
from lakelet.sql.statements.show import read_pattern, show_names
from lakelet.sql.statements.text.clauses import placed, read_option_name

_TEXT = pa.string()
# The index of the key in the row of a column.
_KEY = list(COLUMNS).index("key")


def run_show(context: Context, statement: Statement, *, what: str) -> SqlResult:
    """SHOW, from the name on: of a table, or for TABLES of a database."""
    reader = statement.reader
    if what == "TABLES":
        return _tables(context, reader)
    given = read_iceberg(context, reader)
    match what:
        case "CREATE":
            reader.finish()
            return SqlResult.of_rows({"create_table": _TEXT}, [(create_text(given.open()),)])
        case "COLUMNS" | "FIELDS":
            keep = read_pattern(reader)
            reader.finish()
            return SqlResult.of_rows(COLUMNS, [row for row in _column_rows(given.open()) if keep(str(row[0]))])
        case "PARTITIONS":
            return _partitions(given)
        case "TAGS":
            return show_names(reader, "tag", given.open().tag_names())
        case "BRANCHES":
            return show_names(reader, "branch", given.open().branch_names())
    return _properties(given)


def run_describe(context: Context, statement: Statement, *, extended: bool) -> SqlResult:
    """DESCRIBE, from the table's name on."""
    reader = statement.reader
    given = read_iceberg(context, reader)
    path = None
    if not reader.at_end:
        reader.accept("COLUMN")
        path = read_path(reader)
    reader.finish()
    table = given.open()
    if path is None:
        return SqlResult.of_rows(COLUMNS, _column_rows(table) + (_details(given, table) if extended else []))
    schema = model_schema(table)
    names = path.resolve(schema)
    row = column_row(path.field(schema), schema, ".".join(names), is_own=False)
    return SqlResult.of_rows(COLUMNS, [_with_key(row, shown_terms(table), names)])


def create_text(table: IcebergTable) -> str:
    """The CREATE TABLE statement of a table, without its location."""
    schema = model_schema(table)
    name = ".".join(quoted_name(part) for part in (table.catalog, *table.name.rsplit(".", 1)))
    text = f"CREATE TABLE {name} (\n  " + ",\n  ".join(column_text(field) for field in schema.fields) + "\n)"
    text += "\nUSING iceberg"
    if schema.comment is not None:
        text += f"\nCOMMENT {quoted_text(schema.comment)}"
    terms = [_term_text(term) for term in shown_terms(table)]
    if terms:
        text += f"\nPARTITIONED BY ({', '.join(terms)})"
    properties = {"format-version": str(table.format_version), **schema.options}
    shown = (f"{quoted_text(key)} = {quoted_text(value)}" for key, value in sorted(properties.items()))
    return text + "\nTBLPROPERTIES (\n  " + ",\n  ".join(shown) + "\n)"


def _term_text(term: PartitionTerm) -> str:
    """A term with its names quoted."""
    quoted = PartitionTerm(tuple(map(quoted_name, term.column)), term.transform)
    return str(quoted) if term.name is None else f"{quoted} AS {quoted_name(term.name)}"


def _tables(context: Context, reader: WordReader) -> SqlResult:
    word = reader.peek()
    parts = reader.name_parts("catalog.database")
    with placed(reader, word):
        catalog = catalog_of(context, iceberg_name(context, (*parts, "any")))
        return show_names(reader, "table", catalog.tables(iceberg_database(catalog, parts[1])))


def _partitions(given: GivenIceberg) -> SqlResult:
    given.reader.finish()
    table = given.open()
    if not shown_terms(table) and table.spec_id == 0:
        raise SqlError(f"table {given.shown!r} is not partitioned", given.reader.text, given.word.start)
    return SqlResult.of_rows({"partition": _TEXT}, [(name,) for name in partition_names(table, given.name.branch)])


def _properties(given: GivenIceberg) -> SqlResult:
    reader = given.reader
    key = None
    if reader.accept("("):
        word = reader.peek()
        key = read_option_name(reader)
        reader.expect(")")
    reader.finish()
    there = given.open().properties
    if key is not None and key not in there:
        raise SqlError(f"property '{key}' is not set{nearest(key, there)}", reader.text, word.start)
    return SqlResult.of_rows(
        {"key": _TEXT, "value": _TEXT}, sorted((known, text) for known, text in there.items() if key in (None, known))
    )


def _column_rows(table: IcebergTable) -> list[Sequence[str | None]]:
    schema, terms = model_schema(table), shown_terms(table)
    return [
        _with_key(column_row(field, schema, field.name, is_own=False), terms, (field.name,)) for field in schema.fields
    ]


def _with_key(
    row: Sequence[str | None], terms: Sequence[PartitionTerm], column: tuple[str, ...]
) -> Sequence[str | None]:
    """A column's row with its key: `partition`, or the transforms over the column."""
    made = ["partition" if term.transform == "identity" else str(term) for term in terms if term.column == column]
    return (*row[:_KEY], ", ".join(made) or None, *row[_KEY + 1 :])


def _details(given: GivenIceberg, table: IcebergTable) -> list[Sequence[str | None]]:
    schema: TableSchema = model_schema(table)
    snapshot, rows = table.snapshot_id(given.name.branch), table.row_count()
    return fact_rows(
        {
            "Name": given.shown,
            "Format": f"Iceberg, version {table.format_version}",
            "Location": table.location,
            "Comment": schema.comment,
            "Partitioned by": ", ".join(map(str, shown_terms(table))) or None,
            "Schema": str(schema.id),
            "Partition spec": str(table.spec_id),
            "Snapshot": None if snapshot is None else str(snapshot),
            "Rows stored": None if rows is None or given.name.branch is not None else str(rows),
            **{f"Property {key}": text for key, text in sorted(schema.options.items())},
        }
    )
