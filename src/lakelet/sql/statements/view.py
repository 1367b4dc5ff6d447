"""CREATE VIEW, DROP VIEW and SHOW CREATE VIEW.

    CREATE [OR REPLACE] VIEW [IF NOT EXISTS] v [(column, …)] [COMMENT 'text'] AS query
    DROP VIEW [IF EXISTS] v [CASCADE | RESTRICT]

A view is checked when it is created: that it reads only tables and views, and that it can be run.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakelet.catalog.names import DEFAULT_DATABASE, TableName
from lakelet.catalog.sql_result import SqlResult
from lakelet.catalog.views import View
from lakelet.errors import AlreadyExistsError
from lakelet.sql.context import Context
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.quotes import literal, quoted
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.statement import Statement
from lakelet.sql.statements.definition.type_text import quoted_name
from lakelet.sql.statements.text.clauses import placed, read_dependents, read_if_exists, read_if_not_exists
from lakelet.sql.statements.text.given_table import read_new_table, read_table
from lakelet.sql.views.expand import ViewText


def run_create_view(context: Context, statement: Statement, replaces: Word | None) -> SqlResult:
    """CREATE VIEW, after these keywords."""
    reader = statement.reader
    if_not_exists = read_if_not_exists(reader)
    if replaces is not None and if_not_exists:
        raise SqlError("OR REPLACE and IF NOT EXISTS: one of them will do", reader.text, replaces.start)
    word = reader.peek()
    name = read_new_table(context, reader)
    columns = reader.listed(lambda: reader.name("the name of a column")) if reader.at("(") else []
    comment = reader.string() if reader.accept("COMMENT") else None
    reader.expect("AS")
    if reader.at_end:
        raise reader.error("a query")
    query = _query(reader, name, columns)
    view = View(query, context.database, comment, context.lake.now_ms(), name.database)
    there = context.names.find_view(name)
    if there is not None and replaces is None:
        if if_not_exists:
            return SqlResult.done(f"view {there.full} exists")
        raise AlreadyExistsError(f"view {there.full!r} exists in {context.lake.location}")
    table = context.names.find(name)
    if table is not None:
        raise AlreadyExistsError(f"{table.full!r} is a table in {context.lake.location}: drop it first")
    kept = there or name
    with placed(reader, word):
        _check(context, view, kept)
    if kept.database == DEFAULT_DATABASE:
        context.ensure_database(kept.database)
    context.lake.keep_view(kept.full, view, replace=there is not None)
    return SqlResult.done(f"{'created' if there is None else 'replaced'} view {kept.full}")


def _query(reader: WordReader, name: TableName, columns: Sequence[str]) -> str:
    """The query to store, with the given column names."""
    query = reader.rest()
    if not columns:
        return query
    named = ", ".join(quoted(column) for column in columns)
    return f"SELECT * FROM ({query}) AS {quoted(name.table)}({named})"


def _check(context: Context, view: View, name: TableName) -> None:
    """Raises the errors that a reader of the view would get."""
    with context.engine.space() as space:
        text = ViewText(context, space, is_new=True).of(view, name.full)
    context.query(f"SELECT * FROM ({text}) AS v LIMIT 0").close()


def run_drop_view(context: Context, statement: Statement) -> SqlResult:
    """DROP VIEW, after these keywords."""
    reader = statement.reader
    if_exists = read_if_exists(reader)
    given = read_table(context, reader)
    read_dependents(reader)
    reader.finish()
    there = context.names.find_view(given.name)
    if there is None:
        if context.names.find(given.name) is not None:
            raise SqlError(f"{given.shown!r} is a table: DROP TABLE drops it", reader.text, given.word.start)
        if if_exists:
            return SqlResult.done(f"view {given.shown} does not exist")
        with placed(reader, given.word):
            context.names.existing_view(given.name)
    assert there is not None
    context.lake.drop_view(there.full)
    return SqlResult.done(f"dropped view {there.full}")


def create_view_text(context: Context, reader: WordReader) -> SqlResult:
    """SHOW CREATE VIEW, after these keywords: the CREATE VIEW statement of the view."""
    start = reader.place
    temporary = context.temporary.find(reader.name_parts("the name of a view"))
    own = None if temporary is None else context.temporary.view(temporary)
    if own is not None:
        reader.finish()
        return SqlResult.done(f"CREATE TEMPORARY VIEW {quoted_name(own.name)} AS {own.query}")
    reader.place = start
    given = read_table(context, reader)
    reader.finish()
    with placed(reader, given.word):
        there = context.names.existing_view(given.name)
    view = context.names.view(there)
    comment = "" if view.comment is None else f" COMMENT {literal(view.comment)}"
    name = f"{quoted_name(there.database)}.{quoted_name(there.table)}"
    return SqlResult.done(f"CREATE VIEW {name}{comment} AS {view.query}")
