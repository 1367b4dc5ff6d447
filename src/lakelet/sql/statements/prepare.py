"""PREPARE, EXECUTE and DEALLOCATE: statements with parameters, kept under a name until the session ends.

    PREPARE later AS SELECT * FROM orders WHERE id > ?     EXECUTE later(10)     EXECUTE named(least := 10)     DEALLOCATE later

A prepared statement is stored as text: it is planned at each execution, on the then newest versions.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import AlreadyExistsError
from lakelet.sql.context import Context
from lakelet.sql.dispatch import keywords, run_statement
from lakelet.sql.lexer.errors import SqlError, UnknownNameError, nearest
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word, words_of
from lakelet.sql.statement import Params, Statement

_PREPARED = ("PREPARE", "EXECUTE", "DEALLOCATE")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prepared statement: its text and its words."""

    text: str
    words: tuple[Word, ...]


def run_prepare(context: Context, statement: Statement) -> SqlResult:
    """PREPARE name AS statement."""
    reader = statement.reader
    reader.expect("PREPARE")
    name = reader.name("a name for the statement")
    reader.expect("AS")
    word = reader.peek()
    known = [*keywords(), "("]
    if word.keyword not in known or word.keyword in _PREPARED:
        raise reader.error("a statement to prepare")
    if name.lower() in context.prepared:
        raise AlreadyExistsError(f"statement {name!r} is prepared already: DEALLOCATE {name} lets it go")
    text = reader.rest()
    context.prepared[name.lower()] = Prepared(text, tuple(words_of(text)))
    return SqlResult.done(f"prepared statement {name}")


def run_execute(context: Context, statement: Statement) -> SqlResult:
    """EXECUTE name, with values in parentheses."""
    reader = statement.reader
    reader.expect("EXECUTE")
    word = reader.peek()
    prepared = _found(context, reader)
    values: list[object] = []
    named: dict[str, object] = {}
    if reader.at("(") and reader.peek(1).keyword != ")":
        reader.listed(lambda: _value(context, statement, values, named))
    elif reader.accept("("):
        reader.expect(")")
    reader.finish()
    if values and named:
        raise SqlError("values are given by their order or by their names, not both", reader.text, word.start)
    params: Params = named or values or None
    return run_statement(context, Statement(WordReader(prepared.text, prepared.words), params, statement.frames))


def run_deallocate(context: Context, statement: Statement) -> SqlResult:
    """DEALLOCATE name, or ALL."""
    reader = statement.reader
    reader.expect("DEALLOCATE")
    reader.accept("PREPARE")
    if reader.accept("ALL"):
        reader.finish()
        context.prepared.clear()
        return SqlResult.done("no statement is prepared")
    name = reader.peek().text
    _found(context, reader)
    reader.finish()
    del context.prepared[name.lower()]
    return SqlResult.done(f"deallocated statement {name}")


def _found(context: Context, reader: WordReader) -> Prepared:
    word = reader.peek()
    name = reader.name("the name of a prepared statement")
    found = context.prepared.get(name.lower())
    if not isinstance(found, Prepared):
        hint = nearest(name, context.prepared)
        raise UnknownNameError(f"no statement is prepared as {name!r}{hint}", reader.text, word.start)
    return found


def _value(context: Context, statement: Statement, values: list[object], named: dict[str, object]) -> None:
    """Reads a value, with its name if it has one."""
    reader = statement.reader
    name = None
    if reader.peek().is_name and reader.peek(1).keyword in (":=", "=>"):
        name = reader.name()
        reader.take()
    expression = reader.expression(",")
    with context.query(f"SELECT {expression} AS v", statement.params, statement.frames) as result:
        value = result.rows()[0][0]
    if name is None:
        values.append(value)
    else:
        named[name] = value
