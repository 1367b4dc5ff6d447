"""Statements on temporary tables, which DuckDB runs as they are written.

    INSERT INTO t SELECT … FROM shop.orders        ->     INSERT INTO <session's database>.t SELECT … FROM shop.orders

Only the name of the target is replaced. Tables of the lake are registered as for a query; where the rows of a statement are one
query, they are pruned by its conditions too. Everything else, from ON CONFLICT to CHECK, is DuckDB's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa

from lakelet.catalog.sql_result import SqlResult
from lakelet.sql.context import Context
from lakelet.sql.engine.engine_errors import Placed
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word
from lakelet.sql.query.query import Query
from lakelet.sql.statement import Statement
from lakelet.sql.temporary.objects import table_sql
from lakelet.sql.temporary.target import Edit, Target, target_of

_ROWS = ("INSERT", "UPDATE", "DELETE", "MERGE", "COPY")
_QUERIES = ("SELECT", "WITH", "FROM", "TABLE", "(")


def temporary_target(context: Context, reader: WordReader) -> tuple[Target, str] | None:
    """The target of a statement and its name, if it is a temporary object."""
    if not context.temporary:
        return None
    target = target_of(reader)
    name = None if target is None else context.temporary.find(target.parts)
    if target is None or name is None or _is_copied_out(target, reader.words):
        return None
    return target, name


def run_temporary(context: Context, statement: Statement, target: Target, name: str) -> SqlResult:
    """Runs a statement on a temporary table or view."""
    kind, reader = target.words[0], statement.reader
    word = reader.words[target.first]
    is_view = context.temporary.view(name) is not None
    if kind == "DROP" and is_view != ("VIEW" in target.words):
        kinds = ("view", "VIEW") if is_view else ("table", "TABLE")
        raise SqlError(f"{name!r} is a temporary {kinds[0]}: DROP {kinds[1]} drops it", reader.text, word.start)
    if is_view:
        return _about_view(context, statement, target, name)
    with context.temporary.lock:
        found = _run(context, statement, target, name)
    if kind in _ROWS or kind == "TRUNCATE":
        if found.num_columns == 1 and found.column_names == ["Count"] and not _returns(reader.words):
            return SqlResult.changed(None, int(found.column(0)[0].as_py()))
        return SqlResult.of_table(found)
    return SqlResult.done(f"{'dropped' if kind == 'DROP' else 'changed'} temporary table {name}")


def _about_view(context: Context, statement: Statement, target: Target, name: str) -> SqlResult:
    reader = statement.reader
    if target.words[0] != "DROP":
        raise SqlError(
            f"{name!r} is a temporary view, which can only be read; CREATE OR REPLACE TEMP VIEW makes it anew",
            reader.text,
            reader.words[target.first].start,
        )
    reader.place = target.behind
    if not reader.accept("CASCADE"):
        reader.accept("RESTRICT")
    reader.finish()
    context.temporary.drop_view(name)
    return SqlResult.done(f"dropped temporary view {name}")


def _run(context: Context, statement: Statement, target: Target, name: str) -> pa.Table:
    query_words = _only_query(statement.reader.words, target)
    if query_words is not None:
        edit = (statement.reader.words[target.first].start, statement.reader.words[target.behind - 1].end)
        return run_around_query(context, statement, query_words, [(*edit, table_sql(name))])

    def edits(text: str, words: Sequence[Word]) -> list[Edit]:
        # Views may have been expanded in the text: find the target again.
        again = target_of(WordReader(text, words)) or target
        return again.edits(words, name)

    query = Query(context, statement.placed_source, statement.params, statement.frames, {}, edits)
    query.prepare()
    with query.space as space:
        found = space.table(query.placed.changed, statement.params, query.placed)
        if target.words[0] in ("DROP", "ALTER"):
            context.temporary.look(space)
    return found


def run_around_query(
    context: Context, statement: Statement, query_words: tuple[int, int], edits: Sequence[Edit]
) -> pa.Table:
    """Runs a statement with an embedded query, which is prepared by itself; `edits` are of the rest of the statement."""
    reader = statement.reader
    first, behind = query_words
    text = reader.source_in_place(first, behind)
    query = Query(context, text, statement.params, statement.frames, {})
    query.prepare()
    with query.space as space:
        inner = query.placed
        if inner.text == text:
            inside = list(inner.edits)
        else:
            inside = [(reader.words[first].start, reader.words[behind - 1].end, inner.changed.strip())]
        placed = Placed(statement.placed_source, tuple(sorted((*edits, *inside))))
        found = space.table(placed.changed, statement.params, placed)
        if reader.words[0].keyword == "CREATE":
            context.temporary.look(space)
    return found


def _only_query(words: Sequence[Word], target: Target) -> tuple[int, int] | None:
    """The word range of the query of INSERT, if nothing around it could name tables too."""
    if target.words[0] != "INSERT" or words[0].keyword == "WITH":
        return None
    place, depth = target.behind, 0
    reader = WordReader("", words)
    reader.place = place
    if reader.at("(") and reader.peek(1).keyword not in _QUERIES:
        while place < len(words) and (depth or place == target.behind or words[place - 1].keyword != ")"):
            depth += (words[place].keyword == "(") - (words[place].keyword == ")")
            place += 1
        reader.place = place
    if reader.accept("BY"):
        reader.take()
    if reader.peek().keyword not in _QUERIES or _returns(words):
        return None
    has_conflict = any(one.keyword == "ON" and after.keyword == "CONFLICT" for one, after in pairwise(words))
    return None if has_conflict else (reader.place, len(words))


def _is_copied_out(target: Target, words: Sequence[Word]) -> bool:
    """Whether rows are copied from the table to a file, which is handled as a query."""
    if target.words[0] != "COPY":
        return False
    return next((word.keyword for word in words[target.behind :] if word.keyword in ("TO", "FROM")), "") != "FROM"


def _returns(words: Sequence[Word]) -> bool:
    return any(word.keyword == "RETURNING" for word in words)
