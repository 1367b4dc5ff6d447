"""Dispatch a statement to its handler by its first keywords. Handler modules are imported on first use."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from lakelet.catalog.sql_result import SqlResult
from lakelet.sql.context import Context
from lakelet.sql.lexer.errors import SqlError, nearest
from lakelet.sql.statement import Statement
from lakelet.sql.statements import refused

Handler = Callable[[Context, Statement], SqlResult]

_STATEMENTS = {
    "CREATE": "statements.create:run_create",
    "DROP": "statements.drop:run_drop",
    "TRUNCATE": "statements.drop:run_truncate",
    "ALTER": "statements.alter:run_alter",
    "RENAME": "statements.alter:run_rename",
    "COMMENT": "statements.alter:run_comment",
    "SHOW": "statements.show:run_show",
    "DESCRIBE": "statements.describe:run_describe",
    "DESC": "statements.describe:run_describe",
    "INSERT": "statements.insert:run_insert",
    "UPDATE": "statements.update:run_update",
    "DELETE": "statements.delete:run_delete",
    "MERGE": "statements.merge:run_merge",
    "CALL": "procedures.call:run_call",
    "USE": "statements.use:run_use",
    "SET": "statements.set:run_set",
    "RESET": "statements.set:run_reset",
    "EXPLAIN": "statements.explain:run_explain",
    "PRAGMA": "statements.pragma:run_pragma",
    "PREPARE": "statements.prepare:run_prepare",
    "EXECUTE": "statements.prepare:run_execute",
    "DEALLOCATE": "statements.prepare:run_deallocate",
    "COPY": "statements.copy:run_copy",
    "ADMIN": "metadata_cache.admin:run_admin",
    "REFRESH": "metadata_cache.refresh:run_refresh",
}
_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(", "PIVOT", "UNPIVOT", "SUMMARIZE")
# Data changes that may follow common table expressions.
_WITH_CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE")


def run_statement(context: Context, statement: Statement) -> SqlResult:
    """Runs one statement."""
    reader = statement.reader
    first = reader.peek().keyword
    if first == "WITH":
        first = _behind_common_tables(statement)
    if first in refused.STATEMENTS or first in (*_STATEMENTS, *_QUERIES):
        context.profile.check_statement(reader.peek().keyword)
        context.profile.check_statement(first)
    if first in _QUERIES or reader.at("SHOW", "ALL", "TABLES"):
        return context.query(statement.placed_source, statement.params, statement.frames)
    if first in refused.STATEMENTS:
        word = reader.peek()
        raise SqlError(f"{first}: {refused.STATEMENTS[first]}", reader.text, word.start)
    if context.temporary:
        from lakelet.sql.temporary.change import run_temporary, temporary_target  # noqa: PLC0415 - few sessions have any.

        found = temporary_target(context, reader)
        if found is not None:
            return run_temporary(context, statement, *found)
    if first not in _STATEMENTS:
        known = (*_STATEMENTS, *(word for word in _QUERIES if word != "("))
        raise reader.error(f"a statement{nearest(first, known)}")
    module, _, name = _STATEMENTS[first].partition(":")
    handler: Handler = getattr(import_module(f"lakelet.sql.{module}"), name)
    return handler(context, statement)


def keywords() -> list[str]:
    """The first keywords of all statements."""
    return sorted((*_STATEMENTS, *(word for word in _QUERIES if word != "(")))


def _behind_common_tables(statement: Statement) -> str:
    """The keyword of a statement that begins with WITH: that of a query, unless a data change follows the CTEs."""
    depth = 0
    for word in statement.reader.words:
        depth += (word.keyword == "(") - (word.keyword == ")")
        if depth == 0 and word.keyword in (*_WITH_CHANGES, "SELECT", "FROM", "VALUES"):
            return word.keyword
    return "SELECT"
