"""UPDATE t [[AS] a] SET column = expression, … [FROM …] [WHERE …]."""

from __future__ import annotations

from lakelet.sql.context import Context
from lakelet.sql.result import SqlResult
from lakelet.sql.statement import Statement
from lakelet.sql.statements.change_clauses import Action, Change, Clause, When, read_assignments
from lakelet.sql.statements.changing_rows import run_change
from lakelet.sql.statements.spans import read_common_tables, read_span, read_target


def run_update(context: Context, statement: Statement) -> SqlResult:
    """Changes rows; gives the snapshot and how many rows changed."""
    return run_change(context, statement, read_update(context, statement))


def read_update(context: Context, statement: Statement) -> Change:
    """Reads the statement."""
    reader = statement.reader
    common = read_common_tables(statement, "UPDATE")
    reader.expect("UPDATE")
    target = read_target(context, reader, "SET")
    reader.expect("SET")
    assignments = read_assignments(reader, target, "FROM", "WHERE", "RETURNING")
    source = read_span(reader, "WHERE", "RETURNING", what="a table") if reader.accept("FROM") else None
    where = read_span(reader, "RETURNING") if reader.accept("WHERE") else None
    reader.finish()
    clause = Clause(When.MATCHED, Action.UPDATE, assignments=assignments)
    return Change("UPDATE", target, (clause,), common, source, where=where)
