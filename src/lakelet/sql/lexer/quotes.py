"""Quote names and texts for DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Iterable


def quoted(name: str) -> str:
    """A quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("'", "''") + "'"


def listed(texts: Iterable[str]) -> str:
    """A list of string literals."""
    return f"[{', '.join(literal(text) for text in texts)}]"
