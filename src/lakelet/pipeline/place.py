"""The place of a definition in its file, for messages."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.errors import InvalidError


@dataclass(frozen=True, slots=True)
class Place:
    """A file and a line of it, counted from 1; without a line the file as a whole."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def invalid(self, message: str) -> InvalidError:
        """An error that names the place."""
        return InvalidError(f"{self}: {message}")
