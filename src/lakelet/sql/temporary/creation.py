"""CREATE [OR REPLACE] TEMP[ORARY] TABLE | VIEW [IF NOT EXISTS] name …

A table is DuckDB's own, with its types, keys, defaults and checks. A view is stored as text, and checked by running it once.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import AlreadyExistsError
from lakelet.sql.context import Context
from lakelet.sql.engine.duckdb_engine import check_free
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.query.query import Query
from lakelet.sql.statement import Statement
from lakelet.sql.statements.text.clauses import placed, read_if_not_exists
from lakelet.sql.temporary.change import run_around_query
from lakelet.sql.temporary.objects import TemporaryView, is_temporary_name, table_sql
from lakelet.sql.temporary.target import Edit
from lakelet.sql.temporary.view_text import TemporaryViewText


def run_create_temporary(context: Context, statement: Statement, replaces: Word | None) -> SqlResult:
    """CREATE TEMP, after these keywords."""
    reader = statement.reader
    if reader.one_of("TABLE", "VIEW") == "VIEW":
        return _create_view(context, statement, replaces)
    head = reader.place
    if_not_exists = read_if_not_exists(reader)
    first = reader.place
    name = _read_name(reader)
    there = context.temporary.find((name,))
    if there is not None and context.temporary.view(there) is not None:
        raise AlreadyExistsError(f"{there!r} is a temporary view: DROP VIEW drops it")
    if there is not None and if_not_exists:
        return SqlResult.done(f"temporary table {there} exists")
    if there is not None and replaces is None:
        raise AlreadyExistsError(f"temporary table {there!r} exists")
    # The database of the table makes it temporary: TEMP is dropped.
    temp, end = reader.words[head - 2], reader.words[reader.place - 1].end
    edits = [(temp.start, temp.end, ""), (reader.words[first].start, end, table_sql(name))]
    query_words = _query_words(reader)
    with context.temporary.lock:
        context.engine.attach_temporary()
        if query_words is not None:
            rows = int(run_around_query(context, statement, query_words, edits).column(0)[0].as_py())
            counted = f", {rows:,} {'row' if rows == 1 else 'rows'}"
        else:
            _create_empty(context, statement, edits)
            counted = ""
    return SqlResult.done(f"{'created' if there is None else 'replaced'} temporary table {name}{counted}")


def _create_empty(context: Context, statement: Statement, edits: Sequence[Edit]) -> None:
    query = Query(context, statement.placed_source, statement.params, statement.frames, {}, lambda _, __: list(edits))
    query.prepare()
    with query.space as space:
        space.run(query.placed.changed, statement.params, query.placed)
        context.temporary.look(space)


def _read_name(reader: WordReader) -> str:
    word = reader.peek()
    parts = reader.name_parts("the name of a temporary object")
    if not is_temporary_name(parts):
        raise SqlError(
            f"{'.'.join(parts)!r}: what is temporary is in no database: {parts[-1]} or temp.{parts[-1]}",
            reader.text,
            word.start,
        )
    with placed(reader, word):
        check_free(parts[-1])
    return parts[-1]


def _query_words(reader: WordReader) -> tuple[int, int] | None:
    """The word range of the query after AS, None for a table defined by its columns."""
    place = reader.place
    if reader.at("("):
        depth = 0
        while place < len(reader.words):
            depth += (reader.words[place].keyword == "(") - (reader.words[place].keyword == ")")
            place += 1
            if not depth:
                break
    if place >= len(reader.words) or reader.words[place].keyword != "AS" or place + 1 == len(reader.words):
        return None
    behind = len(reader.words)
    last = [word.keyword for word in reader.words[-3:]]
    behind -= 3 if last == ["WITH", "NO", "DATA"] else 2 if last[1:] == ["WITH", "DATA"] else 0
    return (place + 1, behind) if behind > place + 1 else None


def _create_view(context: Context, statement: Statement, replaces: Word | None) -> SqlResult:
    reader = statement.reader
    if_not_exists = read_if_not_exists(reader)
    name = _read_name(reader)
    columns = reader.listed(lambda: reader.name("the name of a column")) if reader.at("(") else []
    reader.expect("AS")
    first = reader.peek()
    if reader.at_end:
        raise reader.error("a query")
    place = reader.place
    query = reader.rest()
    parameter = next((word for word in reader.words[place:] if word.kind == "parameter"), None)
    if parameter is not None:
        raise SqlError("a view has no parameters; PREPARE keeps a query that has", reader.text, parameter.start)
    if columns:
        named = ", ".join(quoted(column) for column in columns)
        query = f"SELECT * FROM ({query}) AS {quoted(name)}({named})"
    objects = context.temporary
    with objects.lock:
        there = objects.find((name,))
        if there is not None and objects.view(there) is None:
            raise AlreadyExistsError(f"{there!r} is a temporary table: DROP TABLE drops it")
        if there is not None and if_not_exists:
            return SqlResult.done(f"temporary view {there} exists")
        if there is not None and replaces is None:
            raise AlreadyExistsError(f"temporary view {there!r} exists")
        view = TemporaryView(name, query, context.database)
        # Errors of the query are reported at their position in the statement first.
        query_run = Query(context, reader.source_in_place(place, len(reader.words)), None, statement.frames, {})
        query_run.prepare()
        with query_run.space as space, placed(reader, first):
            space.bind(query_run.placed)
            text = TemporaryViewText(context, space).of(view)
        context.query(f"SELECT * FROM ({text}) AS {quoted(name)} LIMIT 0", None, statement.frames).close()
        objects.keep_view(view)
    return SqlResult.done(f"{'created' if there is None else 'replaced'} temporary view {name}")
