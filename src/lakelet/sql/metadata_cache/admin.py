"""`ADMIN SET FRONTEND CONFIG ("name" = "value", …)`: settings and actions of the metadata cache, all of them or none."""

from __future__ import annotations

from lakelet.catalog.sql_result import SqlResult
from lakelet.operations.metadata_cache import change_cache
from lakelet.sql.context import Context
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.statement import Statement
from lakelet.sql.statements.text.clauses import placed


def run_admin(context: Context, statement: Statement) -> SqlResult:
    """ADMIN SET FRONTEND CONFIG (…)."""
    reader = statement.reader
    reader.expect("ADMIN", "SET", "FRONTEND", "CONFIG")
    word = reader.peek()
    changes = reader.listed(lambda: _change(reader))
    reader.finish()
    with placed(reader, word):
        return SqlResult.done(change_cache(context.lake, changes))


def _change(reader: WordReader) -> tuple[str, str]:
    name = _text(reader, "the name of a configuration in quotes")
    reader.expect("=")
    return name, _text(reader, "its value in quotes")


def _text(reader: WordReader, what: str) -> str:
    """A text in quotes of either kind."""
    return reader.string(what) if reader.peek().kind == "string" else reader.name(what)
