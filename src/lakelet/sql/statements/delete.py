"""DELETE FROM t [[AS] a] [USING …] [WHERE …] [RETURNING …]."""

from __future__ import annotations

from lakelet.catalog.sql_result import SqlResult
from lakelet.sql.context import Context
from lakelet.sql.statement import Statement
from lakelet.sql.statements.change.change_clauses import Action, Change, Clause, When
from lakelet.sql.statements.change.row_change import run_change
from lakelet.sql.statements.text.spans import read_common_tables, read_returning, read_span, read_target


def run_delete(context: Context, statement: Statement) -> SqlResult:
    """Deletes rows; returns the snapshot and the number of deleted rows."""
    return run_change(context, statement, read_delete(context, statement))


def read_delete(context: Context, statement: Statement) -> Change:
    """Reads the statement."""
    reader = statement.reader
    common = read_common_tables(statement, "DELETE")
    reader.expect("DELETE", "FROM")
    target = read_target(context, reader, common, "USING", "WHERE", "RETURNING")
    source = read_span(reader, "WHERE", "RETURNING", what="a table") if reader.accept("USING") else None
    where = read_span(reader, "RETURNING") if reader.accept("WHERE") else None
    returning = read_returning(reader)
    clause = Clause(When.MATCHED, Action.DELETE)
    return Change("DELETE", target, (clause,), common, source, where=where, returning=returning)
