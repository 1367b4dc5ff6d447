"""The place of a definition in its file, for messages, and what a path in the file means."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from lakelet.errors import InvalidError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


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


def absolute_path(path: str, folder: str) -> str:
    """A path or an address; a relative path starts from the folder."""
    if not path or _SCHEME.match(path) or os.path.isabs(path):
        return path
    return os.path.normpath(os.path.join(folder, path))
