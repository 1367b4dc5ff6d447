"""Errors of SQL text: what was expected, what was found, and where."""

from __future__ import annotations

from lakelet.errors import InvalidError, NotFoundError
from lakelet.model.near_names import nearest

__all__ = ["SqlError", "UnknownNameError", "nearest"]


class _InText(Exception):
    """An error at a position of a text; `line` and `column` count from 1, `start` from 0."""

    def __init__(self, message: str, text: str, start: int) -> None:
        self.line = text.count("\n", 0, start) + 1
        self.column = start - (text.rfind("\n", 0, start) + 1) + 1
        self.reason = message
        self.text = text
        self.start = start
        super().__init__(f"line {self.line}, column {self.column}: {message}")


class SqlError(_InText, InvalidError):
    """A statement that is invalid, at the position of the offending word."""


class UnknownNameError(_InText, NotFoundError):
    """A name in a statement that does not exist."""
