"""MERGE INTO t [[AS] a] USING (query | table) [AS s] ON condition WHEN … THEN ….

WHEN MATCHED [AND condition] THEN UPDATE SET column = expression, … | UPDATE SET * | DELETE | DO NOTHING
WHEN NOT MATCHED [BY TARGET] [AND condition] THEN INSERT [(column, …)] VALUES (…) | INSERT * | DO NOTHING
WHEN NOT MATCHED BY SOURCE [AND condition] THEN UPDATE SET column = expression, … | DELETE | DO NOTHING
"""

from __future__ import annotations

from lakelet.sql.context import Context
from lakelet.sql.errors import SqlError
from lakelet.sql.result import SqlResult
from lakelet.sql.statement import Statement
from lakelet.sql.statements.change_clauses import (
    Action,
    Assignment,
    Change,
    Clause,
    When,
    read_assignments,
    read_value,
)
from lakelet.sql.statements.changing_rows import run_change
from lakelet.sql.statements.query_text import Span
from lakelet.sql.statements.spans import ChangeTarget, read_common_tables, read_span, read_target
from lakelet.sql.word_reader import WordReader
from lakelet.sql.words import Word


def run_merge(context: Context, statement: Statement) -> SqlResult:
    """Changes rows; gives the snapshot and how many rows were changed, put in or deleted."""
    return run_change(context, statement, read_merge(context, statement))


def read_merge(context: Context, statement: Statement) -> Change:
    """Reads the statement."""
    reader = statement.reader
    common = read_common_tables(statement, "MERGE")
    reader.expect("MERGE", "INTO")
    target = read_target(context, reader, "USING")
    reader.expect("USING")
    source, alias = _read_source(reader)
    if alias is not None and alias.lower() == target.alias.lower():
        raise SqlError(f"both sides are called {alias}: give one of them an alias", reader.text, reader.peek().start)
    reader.expect("ON")
    on = read_span(reader, "WHEN")
    clauses = [_read_clause(reader, target)]
    while not reader.at_end:
        word = reader.peek()
        clause = _read_clause(reader, target)
        if any(before.when is clause.when and before.condition is None for before in clauses):
            raise SqlError("this clause is never reached, for one before it has no condition", reader.text, word.start)
        clauses.append(clause)
    return Change("MERGE", target, tuple(clauses), common, source, alias, on)


def _read_source(reader: WordReader) -> tuple[Span, str | None]:
    """Reads a table, a call or a query in parentheses, and its alias with names for columns; gives all of it, and the alias."""
    first = reader.place
    name: str | None = None
    if not reader.at("("):
        name = reader.name_parts("a table or a query in parentheses")[-1]
    if reader.accept("("):
        if not reader.at(")"):
            read_span(reader, what="a query")
        reader.expect(")")
    if reader.accept("AS") or (reader.peek().is_name and not reader.at("ON")):
        name = reader.name("an alias")
        if reader.at("("):
            reader.listed(lambda: reader.name("a column"))
    return Span(first, reader.place), name


def _read_clause(reader: WordReader, target: ChangeTarget) -> Clause:
    word = reader.peek()
    reader.expect("WHEN")
    when = _read_when(reader)
    condition = read_span(reader, "THEN") if reader.accept("AND") else None
    reader.expect("THEN")
    if reader.accept("DO", "NOTHING"):
        return Clause(when, Action.NOTHING, condition, word=word)
    if when is When.NOT_MATCHED:
        reader.expect("INSERT")
        return _read_insert(reader, condition, word)
    if reader.one_of("UPDATE", "DELETE") == "DELETE":
        return Clause(when, Action.DELETE, condition, word=word)
    reader.expect("SET")
    if when is When.MATCHED and reader.accept("*"):
        return Clause(when, Action.UPDATE, condition, takes_all=True, word=word)
    return Clause(when, Action.UPDATE, condition, read_assignments(reader, target, "WHEN"), word=word)


def _read_when(reader: WordReader) -> When:
    if reader.accept("MATCHED"):
        return When.MATCHED
    reader.expect("NOT", "MATCHED")
    if not reader.accept("BY"):
        return When.NOT_MATCHED
    return When.NOT_MATCHED if reader.one_of("TARGET", "SOURCE") == "TARGET" else When.NOT_MATCHED_BY_SOURCE


def _read_insert(reader: WordReader, condition: Span | None, word: Word) -> Clause:
    if reader.accept("*"):
        return Clause(When.NOT_MATCHED, Action.INSERT, condition, takes_all=True, word=word)

    def column() -> Word:
        reader.name("a column")
        return reader.words[reader.place - 1]

    columns = reader.listed(column) if reader.at("(") else None
    reader.expect("VALUES")
    start = reader.peek()
    values = reader.listed(lambda: read_value(reader, ","))
    if columns is None:
        return Clause(When.NOT_MATCHED, Action.INSERT, condition, values=tuple(values), word=start)
    if len(columns) != len(values):
        raise SqlError(f"expected {len(columns)} values, found {len(values)}", reader.text, start.start)
    names = [one.text.lower() for one in columns]
    for place, one in enumerate(columns):
        if one.text.lower() in names[:place]:
            raise SqlError(f"column {one.text!r} is named twice", reader.text, one.start)
    assignments = tuple(Assignment(one, value) for one, value in zip(columns, values, strict=True))
    return Clause(When.NOT_MATCHED, Action.INSERT, condition, assignments, word=word)
