"""Resolve names of tables as statements write them.

    orders                   in the database that is used
    shop.orders              in another
    shop.orders$branch_dev   a branch
    shop.orders$files        a system table, of a branch as well: shop.orders$branch_dev$files

Upper and lower case matter only where they distinguish two names, as in DuckDB and Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError, NotFoundError
from lakelet.model.near_names import nearest

if TYPE_CHECKING:
    from lakelet.catalog.views import View
    from lakelet.table import Table

BRANCH = "branch_"
# The database in use by default, which is created with the first table in it, as in Paimon.
DEFAULT_DATABASE = "default"
# The database of system tables about the whole lake.
SYSTEM_DATABASE = "sys"


@dataclass(frozen=True, slots=True)
class TableName:
    """A table name, with its branch and the system table about it."""

    database: str
    table: str
    branch: str | None = None
    system: str | None = None

    @property
    def full(self) -> str:
        """`database.table`, as the lake spells it."""
        return f"{self.database}.{self.table}"


def split_name(parts: Sequence[str], database: str) -> TableName:
    """Parse a name of one or two parts, as it is written; one part is in `database`."""
    if len(parts) > 2:
        raise InvalidError(f"{'.'.join(parts)!r}: expected table or database.table, found {len(parts)} parts")
    table, *suffixes = parts[-1].split("$")
    branch = system = None
    for suffix in suffixes:
        if suffix.lower().startswith(BRANCH) and branch is None and system is None:
            branch = suffix[len(BRANCH) :]
        elif system is None:
            system = suffix.lower()
        else:
            raise InvalidError(
                f"{parts[-1]!r}: after '$' a branch or a system table is expected, such as t$branch_dev or t$files"
            )
    if not table or branch == "" or system == "":
        raise InvalidError(f"{parts[-1]!r} is no name of a table")
    return TableName(parts[0] if len(parts) == 2 else database, table, branch, system)


class LakeNames:
    """Resolves names in a lake. `is_cached` says whether tables that are opened use the lake's metadata cache."""

    def __init__(self, lake: Lake, is_cached: Callable[[], bool] = lambda: True) -> None:
        self.lake = lake
        self._is_cached = is_cached

    def database(self, name: str) -> str:
        """The database of that name; NotFoundError suggests the nearest."""
        there = self.lake.databases()
        found = only_match(name, there, "database")
        if found is None:
            raise NotFoundError(f"database {name!r} is not in {self.lake.location}{nearest(name, there)}")
        return found

    def find(self, name: TableName) -> TableName | None:
        """The table as the lake spells it, None where there is none."""
        if self._exists(name):
            return name
        database = matching(name.database, self.lake.databases())
        if database is None:
            return None
        table = matching(name.table, self.lake.tables(database))
        return None if table is None else TableName(database, table, name.branch, name.system)

    def existing(self, name: TableName) -> TableName:
        """The table as the lake spells it; NotFoundError suggests the nearest."""
        found = self.find(name)
        if found is not None:
            return found
        if self.find_view(name) is not None:
            raise InvalidError(f"{name.full!r} is a view, which can only be read, in the version that its query says")
        databases = self.lake.databases()
        # Who names no database may mean any of them.
        may_be_any = name.database == DEFAULT_DATABASE
        every = [f"{database}.{table}" for database in databases if may_be_any for table in self.lake.tables(database)]
        elsewhere = [other for other in every if other.split(".", 1)[1].lower() == name.table.lower()]
        if may_be_any and DEFAULT_DATABASE not in databases:
            hint = nearest(name.full, elsewhere or every)
        else:
            database = self.database(name.database)
            there = self.lake.tables(database)
            alike = [f"{database}.{other}" for other in there if other.lower() == name.table.lower()]
            if len(alike) > 1:
                raise ambiguous(name.full, alike, "table")
            hint = nearest(name.full, elsewhere) if elsewhere else nearest(name.table, there)
        raise NotFoundError(f"table {name.full!r} is not in {self.lake.location}{hint}")

    def open(self, name: TableName) -> Table:
        """The table, on its branch."""
        table = self._as_written(name) or self.lake.table(self.existing(name).full)
        if not self._is_cached():
            from lakelet.table.table import Table  # noqa: PLC0415 - it is loaded with the table.

            table = Table(table.name, table.home.uncached())
        return table if name.branch is None else table.on_branch(name.branch)

    def _as_written(self, name: TableName) -> Table | None:
        """The table whose name is spelled as it is in the lake."""
        try:
            return self.lake.table(name.full)
        except (InvalidError, NotFoundError):
            return None

    def find_view(self, name: TableName) -> TableName | None:
        """The view as the lake spells it, None where there is none."""
        if name.branch is not None or name.system is not None:
            return None
        database = matching(name.database, self.lake.databases())
        view = None if database is None else matching(name.table, self.lake.views(database))
        return None if database is None or view is None else TableName(database, view)

    def existing_view(self, name: TableName) -> TableName:
        """The view as the lake spells it; NotFoundError suggests the nearest."""
        found = self.find_view(name)
        if found is None:
            there = self.lake.views(self.database(name.database))
            raise NotFoundError(f"view {name.full!r} is not in {self.lake.location}{nearest(name.table, there)}")
        return found

    def view(self, name: TableName) -> View:
        """The view of a name that `find_view` gave."""
        return self.lake.view(name.full)

    def _exists(self, name: TableName) -> bool:
        try:
            return self.lake.table_exists(name.full)
        except InvalidError:
            return False


def matching(name: str, there: Sequence[str]) -> str | None:
    """The name itself, or the only one that differs from it in case."""
    if name in there:
        return name
    alike = [other for other in there if other.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def only_match(name: str, names: Iterable[str], what: str) -> str | None:
    """The name itself or the only one that differs from it in case, None without; InvalidError where there are several."""
    alike = [other for other in names if other.lower() == name.lower()]
    if name in alike:
        return name
    if len(alike) > 1:
        raise ambiguous(name, alike, what)
    return alike[0] if alike else None


def ambiguous(name: str, alike: Iterable[str], what: str) -> InvalidError:
    """The error of an ambiguous name."""
    return InvalidError(f"{what} {name!r} is ambiguous: it may be {' or '.join(repr(one) for one in sorted(alike))}")
