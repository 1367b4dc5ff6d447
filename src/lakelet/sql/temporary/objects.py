"""The temporary tables and views of one session, by name.

Tables stand in an in-memory database of the session's DuckDB instance, which spills like everything there and goes with it;
views are kept as text, and expanded where a query names them. A name means the temporary object before a table of the lake:

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
    """A query, and the database in which its names are looked for."""

    name: str
    query: str
    database: str


class TemporaryObjects:
    """What a session has made for itself."""

    def __init__(self) -> None:
        # Held by statements that change temporary objects; queries need it not, for DuckDB shows them one version.
        self.lock = threading.RLock()
        self._tables: dict[str, str] = {}
        self._views: dict[str, TemporaryView] = {}

    def __bool__(self) -> bool:
        return bool(self._tables or self._views)

    def find(self, parts: Sequence[str]) -> str | None:
        """The temporary table or view that a name means, None for none."""
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
        """Keeps a view, in the place of one of its name."""
        self._views[view.name.lower()] = view

    def drop_view(self, name: str) -> None:
        """Lets a view go."""
        self._views.pop(name.lower(), None)

    def look(self, space: Space) -> None:
        """Asks DuckDB which tables there are, after a statement that makes, drops or renames one."""
        # By the full name of its function: the space may have another one that is called like it.
        rows = space.run(
            f"SELECT table_name FROM system.main.duckdb_tables() WHERE database_name = {literal(TEMPORARY_DATABASE)}"
        )
        self._tables = {str(name).lower(): str(name) for (name,) in rows}

    def clear(self) -> None:
        """Forgets all, with the engine that held it."""
        self._tables, self._views = {}, {}


def table_sql(name: str) -> str:
    """A temporary table as DuckDB finds it from anywhere in the instance."""
    return f"{TEMPORARY_DATABASE}.{_SCHEMA}.{quoted(name)}"


def is_temporary_name(parts: Sequence[str]) -> bool:
    """Whether a name can be that of a temporary object."""
    return _bare(parts) is not None


def _bare(parts: Sequence[str]) -> str | None:
    before = [part.lower() for part in parts[:-1]]
    return parts[-1] if before in ([], [TEMPORARY], [TEMPORARY, _SCHEMA]) else None
