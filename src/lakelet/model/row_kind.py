"""The row kind: insert, update before, update after, delete."""

from __future__ import annotations

from enum import IntEnum


class RowKind(IntEnum):
    """What a row does to its key. The number is what data files store; odd ones retract a row."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    @property
    def short(self) -> str:
        """The two characters that changelogs show."""
        return SHORT_KINDS[self]


SHORT_KINDS = ("+I", "-U", "+U", "-D")
