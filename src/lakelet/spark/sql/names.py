"""Resolve the names of a statement to tables of the lake, or leave them to Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec

from pyspark.sql import SparkSession

from lakelet.catalog.lake import Lake
from lakelet.catalog.names import BRANCH, matching
from lakelet.errors import InvalidError, NotFoundError
from lakelet.model.near_names import nearest
from lakelet.sql.lexer.spark_references import Reference

# First parts of names that Spark resolves itself, without a database of that name.
_SPARKS_OWN = ("global_temp", "system", "session")
# The second part of parquet.`/folder` and its like.
_PATH = re.compile(r"[/\\.:*]")


@dataclass(frozen=True, slots=True)
class TableName:
    """A table of the lake as database.table, and the branch. With a catalog it is an Iceberg table."""

    table: str
    branch: str | None
    catalog: str | None = None


class LakeNames:
    """Resolves names in a lake. Case matters only where it distinguishes two names, as in Spark."""

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self._spark = spark
        self.lake = lake
        self._databases: list[str] | None = None

    def find(self, reference: Reference) -> TableName | None:
        """The table that a reference resolves to, None for a name that is Spark's; NotFoundError where neither has it."""
        if reference.catalog is not None:
            return self._in_catalog(reference, reference.catalog)
        if self._databases is None:
            self._databases = self.lake.databases()
        database = matching(reference.database, self._databases)
        if database is None:
            if self._is_sparks(reference):
                return None
            raise NotFoundError(
                f"database {reference.database!r} is neither in {self.lake.location} nor in Spark"
                f"{nearest(reference.database, self._databases)}"
            )
        name, _, suffix = reference.table.partition("$")
        if not name or _PATH.search(name):
            return None
        return TableName(f"{database}.{self._table(database, name)}", _branch(reference, suffix))

    def _in_catalog(self, reference: Reference, name: str) -> TableName | None:
        """A table of a catalog that the lake knows; all other names of three parts are Spark's."""
        catalog = matching(name, self.lake.catalogs.names()) if find_spec("pyiceberg") is not None else None
        if catalog is None:
            return None
        table, _, suffix = reference.table.partition("$")
        found = self.lake.catalogs.open(catalog)
        shown = f"{reference.database}.{table}"
        if not found.table_exists(shown):
            databases = found.namespaces()
            database = matching(reference.database, databases)
            if database is None:
                raise NotFoundError(
                    f"database {reference.database!r} is not in catalog {catalog}{nearest(reference.database, databases)}"
                )
            there = found.tables(database)
            own = matching(table, there)
            if own is None:
                raise NotFoundError(f"table '{catalog}.{shown}' does not exist{nearest(table, there)}")
            shown = f"{database}.{own}"
        return TableName(shown, _branch(reference, suffix), catalog)

    def _table(self, database: str, name: str) -> str:
        if self.lake.table_exists(f"{database}.{name}"):
            return name
        there = self.lake.tables(database)
        found = matching(name, there)
        if found is None:
            raise NotFoundError(f"table '{database}.{name}' is not in {self.lake.location}{nearest(name, there)}")
        return found

    def _is_sparks(self, reference: Reference) -> bool:
        return (
            reference.database.lower() in _SPARKS_OWN
            or _PATH.search(reference.table) is not None
            or bool(self._spark.catalog.databaseExists(f"`{reference.database.replace('`', '``')}`"))
        )


def _branch(reference: Reference, suffix: str) -> str | None:
    if not suffix:
        return None
    if not suffix.startswith(BRANCH) or suffix == BRANCH:
        raise InvalidError(
            f"{reference.table!r}: after '$' a branch is expected, such as $branch_dev, found {suffix!r}"
        )
    return suffix.removeprefix(BRANCH)
