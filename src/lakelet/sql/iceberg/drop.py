"""DROP TABLE and TRUNCATE TABLE of Iceberg tables.

The files of a dropped table are deleted, unless its property `gc.enabled` is false or the catalog does not delete files. TRUNCATE
commits a snapshot that removes all rows of the table, or of one partition: older snapshots still have them.
"""

from __future__ import annotations

from lakelet.catalog.sql_result import SqlResult
from lakelet.iceberg.catalog.table_creation import drop_table
from lakelet.iceberg.schema.column_types import model_schema
from lakelet.iceberg.transaction import IcebergTransaction
from lakelet.sql.context import Context
from lakelet.sql.iceberg.given_iceberg import read_iceberg
from lakelet.sql.iceberg.partition_values import resolve_values
from lakelet.sql.statement import Statement
from lakelet.sql.statements.text.clauses import partition_words, read_dependents, read_partition


def run_drop_table(context: Context, statement: Statement, *, if_exists: bool) -> SqlResult:
    """DROP TABLE."""
    reader = statement.reader
    given = read_iceberg(context, reader)
    given.no_branch("a branch is dropped by ALTER TABLE … DROP BRANCH")
    # Files are always removed at once.
    reader.accept("PURGE")
    read_dependents(reader)
    reader.finish()
    there = given.find()
    if there is None:
        if if_exists:
            return SqlResult.done(f"table {given.shown} does not exist")
        given.open()
    name = (there or given.name).full
    with_files = drop_table(given.catalog, name)
    return SqlResult.done(f"dropped table {given.name.catalog}.{name}" + ("" if with_files else "; its files stay"))


def run_truncate(context: Context, statement: Statement) -> SqlResult:
    """TRUNCATE TABLE, or of one partition."""
    reader = statement.reader
    given = read_iceberg(context, reader)
    words = read_partition(reader) if reader.accept("PARTITION") else {}
    reader.finish()
    table = given.open()
    values = resolve_values(reader, words, table, model_schema(table))
    transaction = IcebergTransaction(table, branch=given.name.branch)
    transaction.begin_insert("overwrite", values or None)
    made = transaction.finish_insert()
    what = f"partition {partition_words(values)} of table {given.shown}" if values else f"table {given.shown}"
    return SqlResult.done(f"emptied {what}" if made is not None else f"{what} was empty")
