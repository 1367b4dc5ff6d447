"""The temporary tables and views of one session, by name.

Tables are in an in-memory database of the session's DuckDB instance, which spills like everything there and is dropped with it;
views are stored as text, and expanded where a query names them. A temporary object shadows a table of the lake:

    t    temp.t    temp.main.t

Threads that share a session share these. Statements that change them run one after the other.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakelet.sql.engine.duckdb_engine import TEMPORARY_DATABASE, Space
from lakelet.sql.lexer.quotes import literal, quoted

# The catalog by which DuckDB's SQL names temporary objects, and the schema in it.
TEMPORARY = "temp"
_SCHEMA = "main"


@dataclass(frozen=True, slots=True)
class TemporaryView:
    """A query, and the database in which its names are resolved."""

    name: str
    query: str
    database: str


class TemporaryObjects:
    """The registry of a session's temporary tables and views."""

    def __init__(self) -> None:
        # Held by statements that change temporary objects; queries need it not, for DuckDB shows them one version.
        self.lock = threading.RLock()
        self._tables: dict[str, str] = {}
        self._views: dict[str, TemporaryView] = {}

    def __bool__(self) -> bool:
        return bool(self._tables or self._views)

    def find(self, parts: Sequence[str]) -> str | None:
        """The temporary table or view that a name resolves to, if any."""
        name = _bare(parts)
        if name is None:
            return None
        view = self._views.get(name.lower())
        return view.name if view is not None else self._tables.get(name.lower())

    def view(self, name: str) -> TemporaryView | None:
        """The view of a name that `find` gave."""
        return self._views.get(name.lower())

    def names(self, *, views: bool) -> Iterator[str]:
        """The names of tables, or of views."""
        return iter(sorted(view.name for view in self._views.values()) if views else sorted(self._tables.values()))

    def keep_view(self, view: TemporaryView) -> None:
        """Stores a view, replacing one of its name."""
        self._views[view.name.lower()] = view

    def drop_view(self, name: str) -> None:
        """Drops a view."""
        self._views.pop(name.lower(), None)

    def look(self, space: Space) -> None:
        """Refreshes the list of tables from DuckDB, after a statement that creates, drops or renames one."""
        # By the qualified name of the function: the space may define another of the same name.
        rows = space.run(
            f"SELECT table_name FROM system.main.duckdb_tables() WHERE database_name = {literal(TEMPORARY_DATABASE)}"
        )
        self._tables = {str(name).lower(): str(name) for (name,) in rows}

    def clear(self) -> None:
        """Clears the registry when the engine is closed."""
        self._tables, self._views = {}, {}


def table_sql(name: str) -> str:
    """The qualified name of a temporary table in the DuckDB instance."""
    return f"{TEMPORARY_DATABASE}.{_SCHEMA}.{quoted(name)}"


def is_temporary_name(parts: Sequence[str]) -> bool:
    """Whether a name can be that of a temporary object."""
    return _bare(parts) is not None


def _bare(parts: Sequence[str]) -> str | None:
    before = [part.lower() for part in parts[:-1]]
    return parts[-1] if before in ([], [TEMPORARY], [TEMPORARY, _SCHEMA]) else None
