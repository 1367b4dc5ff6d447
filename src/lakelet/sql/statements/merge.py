"""MERGE INTO t [[AS] a] USING (query | table) [AS s] {ON condition | USING (column, …)} WHEN … THEN … [RETURNING …].

WHEN MATCHED [AND condition] THEN UPDATE SET column = expression, … | UPDATE [SET * | BY NAME | BY POSITION] | DELETE
WHEN NOT MATCHED [BY TARGET] [AND condition] THEN INSERT [(column, …)] VALUES (…)
    | INSERT [* | BY NAME | BY POSITION | DEFAULT VALUES]
WHEN NOT MATCHED BY SOURCE [AND condition] THEN UPDATE SET column = expression, … | DELETE
and of each THEN DO NOTHING | THEN ERROR [message]
"""

from __future__ import annotations

from lakelet.catalog.sql_result import SqlResult
from lakelet.sql.context import Context
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.statement import Statement
from lakelet.sql.statements.change.assignments import read_assignments, read_columns, read_values
from lakelet.sql.statements.change.change_clauses import Action, Assignment, Change, Clause, TakesAll, When
from lakelet.sql.statements.change.row_change import run_change
from lakelet.sql.statements.text.query_text import Span
from lakelet.sql.statements.text.spans import ChangeTarget, read_common_tables, read_returning, read_span, read_target

_ENDS = ("WHEN", "RETURNING")


def run_merge(context: Context, statement: Statement) -> SqlResult:
    """Runs MERGE; returns the snapshot and the number of updated, inserted and deleted rows."""
    return run_change(context, statement, read_merge(context, statement))


def read_merge(context: Context, statement: Statement) -> Change:
    """Reads the statement."""
    reader = statement.reader
    common = read_common_tables(statement, "MERGE")
    reader.expect("MERGE", "INTO")
    target = read_target(context, reader, common, "USING")
    reader.expect("USING")
    source, alias = _read_source(reader)
    if alias is not None and alias.lower() == target.alias.lower():
        raise SqlError(f"both sides are called {alias}: give one of them an alias", reader.text, reader.peek().start)
    on, using = None, None
    if reader.accept("USING"):
        first = reader.place
        read_columns(reader)
        using = Span(first, reader.place)
    else:
        reader.expect("ON")
        on = read_span(reader, "WHEN")
    clauses = [_read_clause(reader, target)]
    while reader.at("WHEN"):
        word = reader.peek()
        clause = _read_clause(reader, target)
        if any(before.when is clause.when and before.condition is None for before in clauses):
            raise SqlError("this clause is never reached, for one before it has no condition", reader.text, word.start)
        clauses.append(clause)
    returning = read_returning(reader)
    return Change("MERGE", target, tuple(clauses), common, source, alias, on=on, using=using, returning=returning)


def _read_source(reader: WordReader) -> tuple[Span, str | None]:
    """Reads a table, a function call or a subquery, and its alias with column names; returns its span and the alias."""
    first = reader.place
    name: str | None = None
    if not reader.at("("):
        name = reader.name_parts("a table or a query in parentheses")[-1]
    if reader.accept("("):
        if not reader.at(")"):
            read_span(reader, what="a query")
        reader.expect(")")
    if reader.accept("AS") or (reader.peek().is_name and reader.peek().keyword not in ("ON", "USING")):
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
    if reader.accept("ERROR"):
        message = None if _clause_ends(reader) else read_span(reader, *_ENDS)
        return Clause(when, Action.ERROR, condition, message=message, word=word)
    if when is When.NOT_MATCHED:
        reader.expect("INSERT")
        return _read_insert(reader, condition, word)
    if reader.one_of("UPDATE", "DELETE") == "DELETE":
        return Clause(when, Action.DELETE, condition, word=word)
    takes_all = _read_takes_all(reader) if when is When.MATCHED else None
    if takes_all is None:
        reader.expect("SET")
        if when is When.MATCHED and reader.accept("*"):
            takes_all = TakesAll.EVERY
    if takes_all is not None:
        return Clause(when, Action.UPDATE, condition, takes_all=takes_all, word=word)
    return Clause(when, Action.UPDATE, condition, read_assignments(reader, target, *_ENDS), word=word)


def _read_takes_all(reader: WordReader) -> TakesAll | None:
    """Reads BY NAME or BY POSITION, which a star may follow; by position if neither is given, as in DuckDB."""
    if _clause_ends(reader):
        return TakesAll.BY_POSITION
    if not reader.accept("BY"):
        return None
    how = TakesAll.BY_NAME if reader.one_of("NAME", "POSITION") == "NAME" else TakesAll.BY_POSITION
    reader.accept("*")
    return how


def _clause_ends(reader: WordReader) -> bool:
    return reader.at_end or reader.peek().keyword in _ENDS


def _read_when(reader: WordReader) -> When:
    if reader.accept("MATCHED"):
        return When.MATCHED
    reader.expect("NOT", "MATCHED")
    if not reader.accept("BY"):
        return When.NOT_MATCHED
    return When.NOT_MATCHED if reader.one_of("TARGET", "SOURCE") == "TARGET" else When.NOT_MATCHED_BY_SOURCE


def _read_insert(reader: WordReader, condition: Span | None, word: Word) -> Clause:
    takes_all = TakesAll.EVERY if reader.accept("*") else _read_takes_all(reader)
    if takes_all is not None:
        return Clause(When.NOT_MATCHED, Action.INSERT, condition, takes_all=takes_all, word=word)
    if reader.accept("DEFAULT", "VALUES"):
        return Clause(When.NOT_MATCHED, Action.INSERT, condition, word=word)
    columns = read_columns(reader) if reader.at("(") else None
    reader.expect("VALUES")
    start = reader.peek()
    values = read_values(reader)
    if columns is None:
        return Clause(When.NOT_MATCHED, Action.INSERT, condition, values=tuple(values), word=start)
    if len(columns) != len(values):
        raise SqlError(f"expected {len(columns)} values, found {len(values)}", reader.text, start.start)
    assignments = tuple(Assignment(one, value) for one, value in zip(columns, values, strict=True))
    return Clause(When.NOT_MATCHED, Action.INSERT, condition, assignments, word=word)
