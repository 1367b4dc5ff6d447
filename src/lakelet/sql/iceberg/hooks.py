"""Where statements turn to Iceberg: a name of three parts comes next, and somebody else runs the rest.

Native statements ask here and load nothing of Iceberg for it; pyiceberg is loaded, or found missing, when such a name comes.
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
    """Whether a name of so many parts comes next: catalog.database.table, or catalog.database."""
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
    """Who runs a statement, as module:function of this package; InvalidError where pyiceberg is not installed."""
    # The error that says so is the lake's.
    _ = context.lake.catalogs
    module, _, name = handler.partition(":")
    found: Handler = getattr(import_module(f"lakelet.sql.iceberg.{module}"), name)
    return found
