"""Names of Iceberg tables in statements: three parts, of which the first is a registered catalog.

ice.shop.orders                 a table
ice.shop.orders$branch_dev      a branch of it
ice.shop.orders$snapshots       a metadata table of it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakelet.catalog.names import matching, split_name
from lakelet.errors import InvalidError, NotFoundError
from lakelet.sql.lexer.errors import nearest

if TYPE_CHECKING:
    from lakelet.cache.trace import CacheTrace
    from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
    from lakelet.iceberg.table import IcebergTable
    from lakelet.sql.context import Context


@dataclass(frozen=True, slots=True)
class IcebergName:
    """A table of a catalog, with its branch or metadata table."""

    catalog: str
    database: str
    table: str
    branch: str | None = None
    system: str | None = None

    @property
    def full(self) -> str:
        """database.table, as in the catalog."""
        return f"{self.database}.{self.table}"

    @property
    def shown(self) -> str:
        """catalog.database.table."""
        return f"{self.catalog}.{self.full}"


def is_iceberg(parts: Sequence[str]) -> bool:
    """Whether a name can only be one of an Iceberg table."""
    return len(parts) == 3


def iceberg_name(context: Context, parts: Sequence[str]) -> IcebergName:
    """Parse a name of three parts; NotFoundError if the catalog is not registered."""
    if len(parts) != 3:
        raise InvalidError(f"{'.'.join(parts)!r}: expected catalog.database.table, found {len(parts)} parts")
    context.profile.check_catalog(".".join(parts))
    catalog = known_catalog(context, parts[0])
    name = split_name(parts[1:], parts[1])
    return IcebergName(catalog, name.database, name.table, name.branch, name.system)


def known_catalog(context: Context, name: str) -> str:
    """A catalog's name in the lake's spelling; NotFoundError names the nearest."""
    known = context.lake.catalogs.names()
    found = matching(name, known)
    if found is None:
        raise NotFoundError(f"catalog {name!r} is not known to {context.lake.location}{nearest(name, known)}")
    return found


def catalog_of(context: Context, name: IcebergName) -> IcebergCatalog:
    """The catalog of a name."""
    return context.lake.catalogs.open(name.catalog)


def find_iceberg(context: Context, name: IcebergName) -> IcebergName | None:
    """The name of a table in the spelling of the catalog, None if there is no such table."""
    catalog = catalog_of(context, name)
    if catalog.table_exists(name.full):
        return name
    database = matching(name.database, catalog.namespaces())
    table = None if database is None else matching(name.table, catalog.tables(database))
    if database is None or table is None:
        return None
    return replace(name, database=database, table=table)


def iceberg_database(catalog: IcebergCatalog, name: str) -> str:
    """A database's name in the catalog's spelling; NotFoundError names the nearest."""
    databases = catalog.namespaces()
    found = matching(name, databases)
    if found is None and "." in name and catalog.namespace_exists(name):
        # A nested namespace is not listed with the top-level ones.
        return name
    if found is None:
        raise NotFoundError(f"database {name!r} is not in catalog {catalog.name}{nearest(name, databases)}")
    return found


def open_iceberg(
    context: Context, name: IcebergName, *, for_queries: bool = False, trace: CacheTrace | None = None
) -> IcebergTable:
    """The table of a name; NotFoundError names the nearest. For queries it may be as old as the metadata cache allows."""
    catalog = catalog_of(context, name)
    try:
        return catalog.table(name.full, for_queries=for_queries, cache=context.is_cached, trace=trace)
    except NotFoundError:
        database = iceberg_database(catalog, name.database)
        tables = catalog.tables(database)
        table = matching(name.table, tables)
        if table is None:
            raise NotFoundError(f"table {name.shown!r} does not exist{nearest(name.table, tables)}") from None
        if f"{database}.{table}" == name.full:
            # The catalog has the table, but its metadata file is missing.
            raise
        return catalog.table(f"{database}.{table}", for_queries=for_queries, cache=context.is_cached, trace=trace)
