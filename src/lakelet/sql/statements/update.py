"""UPDATE t [[AS] a] SET column = expression, … [FROM …] [WHERE …] [RETURNING …]."""

from __future__ import annotations

from lakelet.catalog.sql_result import SqlResult
from lakelet.sql.context import Context
from lakelet.sql.statement import Statement
from lakelet.sql.statements.change.assignments import read_assignments
from lakelet.sql.statements.change.change_clauses import Action, Change, Clause, When
from lakelet.sql.statements.change.row_change import run_change
from lakelet.sql.statements.text.spans import read_common_tables, read_returning, read_span, read_target


def run_update(context: Context, statement: Statement) -> SqlResult:
    """Updates rows; returns the snapshot and the number of updated rows."""
    return run_change(context, statement, read_update(context, statement))


def read_update(context: Context, statement: Statement) -> Change:
    """Reads the statement."""
    reader = statement.reader
    common = read_common_tables(statement, "UPDATE")
    reader.expect("UPDATE")
    target = read_target(context, reader, common, "SET")
    reader.expect("SET")
    assignments = read_assignments(reader, target, "FROM", "WHERE", "RETURNING")
    source = read_span(reader, "WHERE", "RETURNING", what="a table") if reader.accept("FROM") else None
    where = read_span(reader, "RETURNING") if reader.accept("WHERE") else None
    returning = read_returning(reader)
    clause = Clause(When.MATCHED, Action.UPDATE, assignments=assignments)
    return Change("UPDATE", target, (clause,), common, source, where=where, returning=returning)
