"""What a row does to the row of its key."""

from __future__ import annotations

from enum import IntEnum


class RowKind(IntEnum):
    """The number is what data files store; odd ones take a row away."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    @property
    def short(self) -> str:
        """The two characters that changelogs show."""
        return SHORT_KINDS[self]


SHORT_KINDS = ("+I", "-U", "+U", "-D")
