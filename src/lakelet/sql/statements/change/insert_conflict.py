"""INSERT … ON CONFLICT and INSERT OR REPLACE / IGNORE: resolve rows whose key exists already.

    rows to insert, read once ─ joined with the rows of one snapshot by key ─ inserts and updates ─ one commit

The rows to insert are read once, when the statement begins; after a concurrent commit they are joined with the newest snapshot
again, so that nothing is computed from an outdated row. A plain INSERT into a table with a primary key needs none of this: it
replaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.catalog.names import matching
from lakelet.catalog.sql_result import SqlResult
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.schema import TableSchema
from lakelet.sink.rows.cast import RowCaster
from lakelet.sql.context import Context
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.query.relation import Rows
from lakelet.sql.statement import Statement
from lakelet.sql.statements.change.change_clauses import Action, Change, Clause, GivenRows, TakesAll, When
from lakelet.sql.statements.change.conflict_query import EXCLUDED
from lakelet.sql.statements.change.returned_rows import KeptBatches
from lakelet.sql.statements.change.row_change import run_change
from lakelet.sql.statements.rows.insert_words import Conflict, Insert
from lakelet.sql.statements.text.spans import Target


def run_conflict(
    context: Context,
    statement: Statement,
    insert: Insert,
    target: Target,
    batches: Iterable[pa.RecordBatch],
    given: Sequence[str],
) -> SqlResult:
    """Inserts new rows and resolves conflicts with existing ones; `given` are the columns that the statement gives values to."""
    conflict, schema = insert.conflict, target.table.schema
    assert conflict is not None
    _check(statement, insert, conflict, schema, target)
    kept = _kept(batches, schema)
    try:
        rows = GivenRows(partial(_numbered, kept), arrow_schema(schema.fields), tuple(given))
        new = Clause(When.NOT_MATCHED, Action.INSERT, takes_all=TakesAll.GIVEN)
        change = Change(
            "INSERT",
            target,
            (_matched(conflict), new),
            source_alias=EXCLUDED,
            given=rows,
            returning=insert.returning,
        )
        return run_change(context, statement, change)
    finally:
        kept.close()


def _matched(conflict: Conflict) -> Clause:
    """The clause for rows in conflict with an existing one."""
    match conflict.action:
        case "NOTHING":
            return Clause(When.MATCHED, Action.NOTHING)
        case "REPLACE":
            return Clause(When.MATCHED, Action.UPDATE, takes_all=TakesAll.GIVEN)
        case _:
            return Clause(When.MATCHED, Action.UPDATE, conflict.where, conflict.assignments)


def _check(statement: Statement, insert: Insert, conflict: Conflict, schema: TableSchema, target: Target) -> None:
    def error(message: str) -> SqlError:
        return SqlError(message, statement.reader.text, conflict.word.start)

    if insert.overwrites:
        raise error("INSERT OVERWRITE replaces rows, and has none to be in conflict with")
    if not schema.primary_keys:
        raise error(f"{target.shown} has no primary key, by which rows could be in conflict")
    if conflict.columns is not None:
        names = {matching(word.text, schema.names) for word in conflict.columns}
        if names != set(schema.primary_keys):
            raise error(f"expected the primary key ({', '.join(schema.primary_keys)}) as what rows are in conflict by")
    if matching(EXCLUDED, schema.names) is not None or target.alias.lower() == EXCLUDED:
        raise error(f"{EXCLUDED!r} names the rows to insert, and nothing else in the statement can be called so")


def _kept(batches: Iterable[pa.RecordBatch], schema: TableSchema) -> KeptBatches:
    """Buffer the rows, with all columns of the table, to be read again at every retry."""
    caster, kept, count = RowCaster(schema.fields), KeptBatches(arrow_schema(schema.fields)), 0
    try:
        for batch in batches:
            cast = caster.cast(batch, first_row=count)
            count += batch.num_rows
            kept.add(cast)
    except BaseException:
        kept.close()
        raise
    return kept


def _numbered(kept: KeptBatches, number: str) -> Rows:
    """The rows, with row numbers in a column of this name."""
    schema = pa.schema([*(one.with_nullable(True) for one in kept.schema), pa.field(number, pa.int64())])

    def read(columns: Sequence[str] | None, condition: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        wanted = pa.schema([one for one in schema if columns is None or one.name in columns])
        start = 0
        for batch in kept.batches():
            numbers = pa.array(np.arange(start, start + batch.num_rows))
            start += batch.num_rows
            arrays = [numbers if name == number else batch.column(name) for name in wanted.names]
            yield pa.RecordBatch.from_arrays(arrays, schema=wanted)

    return Rows(schema, read)
