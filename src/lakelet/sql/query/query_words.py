"""Classify names among the words of a query: files, DuckDB's own objects, and possible table names."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from lakelet.catalog.names import DEFAULT_DATABASE
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.words import Word

_CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE")
_FILE_SIGNS = frozenset("./*:")
_DUCKDBS_SCHEMAS = ("information_schema", "pg_catalog")
_DUCKDBS_NAMES = ("duckdb_", "pragma_", "sqlite_", "pg_")


def is_file(name: str) -> bool:
    """Whether a name is a file path or an address."""
    return bool(set(name) & _FILE_SIGNS)


def is_duckdbs(parts: Sequence[str]) -> bool:
    """Whether a name is a file path or one of DuckDB's own objects."""
    if len(parts) == 1:
        name = parts[0]
        return is_file(name) or name.lower().startswith(_DUCKDBS_NAMES)
    return parts[0].lower() in _DUCKDBS_SCHEMAS or (len(parts) == 3 and parts[0].lower() in ("system", "temp"))


def default_names(words: Sequence[Word], replaced: Collection[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """Edits that quote the name of the default database, which is a keyword of DuckDB."""
    for word, after in pairwise(words):
        inside = any(start <= word.start < end for start, end, _ in replaced)
        if word.keyword == DEFAULT_DATABASE.upper() and after.keyword == "." and not inside:
            yield word.start, word.end, f'"{word.text}"'


def named_tables(words: Sequence[Word]) -> set[tuple[str, ...]]:
    """Everything in a text that could be a table's name."""
    found: set[tuple[str, ...]] = set()
    for place, word in enumerate(words):
        if word.is_name:
            found.add((word.text,))
            if place + 2 < len(words) and words[place + 1].keyword == "." and words[place + 2].is_name:
                found.add((word.text, words[place + 2].text))
    return found


def check_only_reads(text: str, words: Sequence[Word]) -> None:
    """SqlError at a common table expression that changes a table: a commit holds the changes of one statement."""
    for place, word in enumerate(words[:-1]):
        if word.keyword != "AS":
            continue
        after = place + 1
        while words[after].keyword in ("NOT", "MATERIALIZED") and after + 2 < len(words):
            after += 1
        change = words[after + 1] if words[after].keyword == "(" and after + 1 < len(words) else None
        if change is not None and change.keyword in _CHANGES:
            raise SqlError(
                f"{change.keyword} in WITH: a query changes no table; run the change as a statement of its own, where "
                "RETURNING gives its rows",
                text,
                change.start,
            )
