"""The execution context of a statement: the lake, the database in use, the settings and the query engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from lakelet.catalog.lake import Lake
from lakelet.catalog.names import DEFAULT_DATABASE, LakeNames, TableName, split_name
from lakelet.catalog.sql_result import SqlResult
from lakelet.sql.engine.duckdb_engine import Engine
from lakelet.sql.engine.engine_errors import Placed
from lakelet.sql.engine.frames import Frames
from lakelet.sql.engine.settings import METADATA_CACHE
from lakelet.sql.profile import LOCAL, SqlProfile
from lakelet.sql.query.relation import Relation
from lakelet.sql.statement import Params
from lakelet.sql.temporary.objects import TemporaryObjects

if TYPE_CHECKING:
    from lakelet.sql.query.plans import Plans
    from lakelet.sql.statements.prepare import Prepared
    from lakelet.table import Table


class Context:
    """The state of a session; resolves table names and runs queries for statements."""

    def __init__(self, lake: Lake, profile: SqlProfile = LOCAL) -> None:
        self.lake = lake
        self.profile = profile
        self.database = DEFAULT_DATABASE
        self.settings: dict[str, str] = {}
        self.names = LakeNames(lake, lambda: self.is_cached)
        self.engine = Engine(profile.engine_settings(lake.location))
        # Prepared statements, by their names in lower case.
        self.prepared: dict[str, Prepared] = {}
        self.temporary = TemporaryObjects()

    @cached_property
    def plans(self) -> Plans:
        """The cached plans of the latest queries."""
        from lakelet.sql.query.plans import Plans  # noqa: PLC0415 - a query without tables does without.

        return Plans()

    @property
    def is_cached(self) -> bool:
        """Whether the session takes metadata from the lake's cache."""
        return self.settings.get(METADATA_CACHE.name, METADATA_CACHE.default).lower() != "off"

    def table_name(self, parts: Sequence[str]) -> TableName:
        """Parse a table name; one part is a table of the database in use."""
        return split_name(parts, self.database)

    def table(self, parts: Sequence[str]) -> Table:
        """The table of that name, on its branch; NotFoundError names the nearest."""
        return self.names.open(self.table_name(parts))

    def ensure_database(self, name: str) -> None:
        """Creates the default database if it is missing; any other needs CREATE DATABASE."""
        if name == DEFAULT_DATABASE:
            self.lake.create_database(name, if_not_exists=True)

    def query(
        self,
        text: str,
        params: Params = None,
        frames: Frames | Mapping[str, object] | None = None,
        relations: Mapping[str, Relation] | None = None,
    ) -> SqlResult:
        """Runs a query over the lake's tables. `frames` (anything that holds Arrow data) and `relations` are visible under
        their names, before tables of the lake."""
        from lakelet.sql.query.query import run_query  # noqa: PLC0415 - it needs the context, for system tables.

        visible = frames if isinstance(frames, Frames) else Frames(frames)
        return run_query(self, text, params, visible, relations or {})

    def literals(self, text: str) -> SqlResult:
        """Runs a query of literals and generated text, without names to resolve."""
        return self.engine.space(has_tables=False).result(text, None, Placed(text))
