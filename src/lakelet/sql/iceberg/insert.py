"""INSERT INTO and INSERT OVERWRITE of Iceberg tables: write the rows of a query and commit one snapshot.

    query ─ converted by DuckDB ─ batches ─ writers: files ─ transaction: one snapshot
    SET execution.engine = 'spark': the text of the query ─ Spark ─ files written by executors ─ one snapshot

An overwrite replaces the partition if PARTITION gives a value to every identity partition column; otherwise the partitions of the
new rows, or with the setting `dynamic-partition-overwrite` off all partitions that match PARTITION. Nothing is
visible before all rows are written, and files of an insert that fails are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import InvalidError
from lakelet.iceberg.schema.column_types import model_schema
from lakelet.iceberg.schema.partition_terms import shown_terms
from lakelet.iceberg.table import IcebergTable
from lakelet.iceberg.transaction import IcebergTransaction, MadeSnapshot
from lakelet.iceberg.write.local_insert import insert_batches
from lakelet.model.schema import TableSchema
from lakelet.sql.context import Context
from lakelet.sql.engine.execution import LOCAL_ENGINE, EngineInsert, insert_engine
from lakelet.sql.engine.settings import EXECUTION_ENGINE
from lakelet.sql.iceberg.given_iceberg import GivenIceberg, given_iceberg
from lakelet.sql.iceberg.partition_values import partition_column
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.statement import Statement
from lakelet.sql.statements.insert import CountedRows, InsertRows, is_dynamic, returned_rows
from lakelet.sql.statements.rows.insert_words import Insert


def run_insert(context: Context, statement: Statement, insert: Insert) -> SqlResult:
    """Inserts rows; returns the committed snapshot and the row count."""
    given = given_iceberg(context, statement.reader, insert.parts, insert.word)
    table = given.open()
    schema = model_schema(table)
    if insert.conflict is not None:
        raise SqlError(
            f"{given.shown} has no primary key, by which rows could be in conflict",
            statement.reader.text,
            insert.conflict.word.start,
        )
    returned = returned_rows(context, statement, insert, schema)
    for one in insert.partition:
        partition_column(statement.reader, one.word, table, schema)
    rows = InsertRows(context, statement, insert, schema, given.shown)
    fixed = rows.fixed()
    mode, partition = _mode(context, insert, table, schema, fixed)
    engine = context.settings.get(EXECUTION_ENGINE.name, EXECUTION_ENGINE.default).lower()
    if engine != LOCAL_ENGINE and insert.query is not None:
        if returned is not None:
            raise InvalidError(f"execution.engine = {engine!r} gives no rows back: leave RETURNING out")
        return _run_elsewhere(engine, given, rows, mode, partition, fixed)
    found = rows.rows(fixed)
    with found.result as result:
        counted = CountedRows(result, found.columns, fixed, schema)
        counted.fill(rows.defaults, rows.left_open(found.columns), fixed)
        made = insert_rows(table, counted.returning(returned), mode=mode, partition=partition, branch=given.name.branch)
    if returned is not None:
        return returned.result()
    return SqlResult.changed(None if made is None else made.id, counted.rows)


def insert_rows(
    table: IcebergTable,
    batches: Iterable[pa.RecordBatch],
    *,
    mode: str = "append",
    partition: Mapping[str, object] | None = None,
    branch: str | None = None,
) -> MadeSnapshot | None:
    """Writes rows in this process and commits their files as one snapshot; None if there is nothing to commit."""
    transaction = IcebergTransaction(table, branch=branch)
    return insert_batches(transaction, transaction.begin_insert(mode, partition), batches)


def _mode(
    context: Context, insert: Insert, table: IcebergTable, schema: TableSchema, fixed: Mapping[str, Any]
) -> tuple[str, Mapping[str, object] | None]:
    """The write mode, and the partition values that all rows share."""
    if not insert.overwrites:
        return "append", None
    names_all = bool(fixed) and len(fixed) == len(schema.partition_keys)
    if shown_terms(table) and not names_all and is_dynamic(context, {}):
        return "overwrite_partitions", None
    return "overwrite", fixed or None


def _run_elsewhere(
    engine: str,
    given: GivenIceberg,
    rows: InsertRows,
    mode: str,
    partition: Mapping[str, object] | None,
    fixed: Mapping[str, Any],
) -> SqlResult:
    insert, reader = rows.insert, given.reader
    assert insert.query is not None
    if insert.common is not None:
        raise InvalidError(f"execution.engine = {engine!r}: put WITH behind INSERT INTO, where the query begins")
    columns = None if insert.by_name else tuple(rows.columns(None, fixed))
    made, count = insert_engine(engine)(
        EngineInsert(
            lake=given.context.lake,
            query=reader.source(insert.query.first, insert.query.behind),
            params=rows.statement.params,
            frames=rows.statement.frames,
            table=(given.name.catalog, *_database_and_table(given)),
            mode=mode,
            partition=partition,
            fixed=fixed or None,
            columns=columns,
            by_name=insert.by_name,
            branch=given.name.branch,
        )
    )
    return SqlResult.changed(made, count)


def _database_and_table(given: GivenIceberg) -> tuple[str, str]:
    found = given.find() or given.name
    return found.database, found.table
