"""Dispatch statements on a name of three parts to the handlers of Iceberg tables.

Native statements call this without importing anything of Iceberg; pyiceberg is imported, or found missing, at such a name.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from lakelet.sql.lexer.word_reader import WordReader

if TYPE_CHECKING:
    from lakelet.catalog.sql_result import SqlResult
    from lakelet.sql.context import Context

Handler = Callable[..., "SqlResult"]
_PARTS = 3
# BRANCH IF NOT EXISTS name ON
_MOST_BEFORE_ON = 6


def at_iceberg(reader: WordReader, *, parts: int = _PARTS, ahead: int = 0) -> bool:
    """Whether a name of exactly `parts` parts comes next: catalog.database.table, or catalog.database."""
    for part in range(parts):
        if not reader.peek(ahead + 2 * part).is_name:
            return False
        if (reader.peek(ahead + 2 * part + 1).keyword == ".") != (part < parts - 1):
            return False
    return True


def at_iceberg_ref(reader: WordReader) -> bool:
    """Whether BRANCH or TAG comes next, with its name and ON catalog.database.table."""
    if not (reader.at("BRANCH") or reader.at("TAG")):
        return False
    words = [reader.peek(ahead).keyword for ahead in range(_MOST_BEFORE_ON)]
    return any(word == "ON" and at_iceberg(reader, ahead=place + 1) for place, word in enumerate(words))


def iceberg_handler(context: Context, handler: str) -> Handler:
    """The handler of a statement, given as module:function of this package; InvalidError if pyiceberg is not installed."""
    # Raises the lake's error if pyiceberg is not installed.
    _ = context.lake.catalogs
    module, _, name = handler.partition(":")
    found: Handler = getattr(import_module(f"lakelet.sql.iceberg.{module}"), name)
    return found
