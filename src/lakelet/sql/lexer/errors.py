"""Errors of SQL text: what was expected, what was found, and where."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from lakelet.errors import InvalidError, NotFoundError

_MOST_SHOWN = 3


class _InText(Exception):
    """Something wrong at a place of a text; `line` and `column` count from 1."""

    def __init__(self, message: str, text: str, start: int) -> None:
        self.line = text.count("\n", 0, start) + 1
        self.column = start - (text.rfind("\n", 0, start) + 1) + 1
        self.reason = message
        self.text = text
        super().__init__(f"line {self.line}, column {self.column}: {message}")


class SqlError(_InText, InvalidError):
    """A statement that cannot be understood."""


class UnknownNameError(_InText, NotFoundError):
    """A name that is not there."""


def nearest(name: str, there: Iterable[str]) -> str:
    """A hint at the names that are meant instead, to stand behind a message."""
    known = sorted(there)
    folded = {other.lower(): other for other in known}
    found = [folded[other] for other in difflib.get_close_matches(name.lower(), folded, n=_MOST_SHOWN)]
    if found:
        return f"; did you mean {' or '.join(found)}?"
    shown = ", ".join(known[:_MOST_SHOWN]) + (", …" if len(known) > _MOST_SHOWN else "")
    return f"; there are {shown}" if known else "; there is none"
