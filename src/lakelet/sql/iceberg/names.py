"""Names of Iceberg tables as statements write them: three parts, of which the first is a catalog that the lake knows.

ice.shop.orders                 a table
ice.shop.orders$branch_dev      a branch of it
ice.shop.orders$snapshots       a table about it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakelet.catalog.names import matching, split_name
from lakelet.errors import InvalidError, NotFoundError
from lakelet.sql.lexer.errors import nearest

if TYPE_CHECKING:
    from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
    from lakelet.iceberg.table import IcebergTable
    from lakelet.sql.context import Context


@dataclass(frozen=True, slots=True)
class IcebergName:
    """A table of a catalog, the branch of it, and the system table about it."""

    catalog: str
    database: str
    table: str
    branch: str | None = None
    system: str | None = None

    @property
    def full(self) -> str:
        """database.table, as the catalog knows it."""
        return f"{self.database}.{self.table}"

    @property
    def shown(self) -> str:
        """catalog.database.table."""
        return f"{self.catalog}.{self.full}"


def is_iceberg(parts: Sequence[str]) -> bool:
    """Whether a name can only be one of an Iceberg table."""
    return len(parts) == 3


def iceberg_name(context: Context, parts: Sequence[str]) -> IcebergName:
    """What a name of three parts says; NotFoundError where the lake knows no such catalog."""
    if len(parts) != 3:
        raise InvalidError(f"{'.'.join(parts)!r}: expected catalog.database.table, found {len(parts)} parts")
    context.profile.check_catalog(".".join(parts))
    catalog = known_catalog(context, parts[0])
    name = split_name(parts[1:], parts[1])
    return IcebergName(catalog, name.database, name.table, name.branch, name.system)


def known_catalog(context: Context, name: str) -> str:
    """A catalog by the name that the lake has for it; NotFoundError names the nearest."""
    known = context.lake.catalogs.names()
    found = matching(name, known)
    if found is None:
        raise NotFoundError(f"catalog {name!r} is not known to {context.lake.location}{nearest(name, known)}")
    return found


def catalog_of(context: Context, name: IcebergName) -> IcebergCatalog:
    """The catalog that a name is of."""
    return context.lake.catalogs.open(name.catalog)


def find_iceberg(context: Context, name: IcebergName) -> IcebergName | None:
    """The name that the catalog has for a table, None where there is no such table."""
    catalog = catalog_of(context, name)
    if catalog.table_exists(name.full):
        return name
    database = matching(name.database, catalog.namespaces())
    table = None if database is None else matching(name.table, catalog.tables(database))
    if database is None or table is None:
        return None
    return replace(name, database=database, table=table)


def iceberg_database(catalog: IcebergCatalog, name: str) -> str:
    """A database by the name that the catalog has for it; NotFoundError names the nearest."""
    databases = catalog.namespaces()
    found = matching(name, databases)
    if found is None and "." in name and catalog.namespace_exists(name):
        # A database inside another is not listed with those of the first level.
        return name
    if found is None:
        raise NotFoundError(f"database {name!r} is not in catalog {catalog.name}{nearest(name, databases)}")
    return found


def open_iceberg(context: Context, name: IcebergName) -> IcebergTable:
    """The table of a name; NotFoundError names the nearest."""
    catalog = catalog_of(context, name)
    try:
        return catalog.table(name.full)
    except NotFoundError:
        database = iceberg_database(catalog, name.database)
        tables = catalog.tables(database)
        table = matching(name.table, tables)
        if table is None:
            raise NotFoundError(f"table {name.shown!r} does not exist{nearest(name.table, tables)}") from None
        if f"{database}.{table}" == name.full:
            # The catalog knows the table, but its metadata is not there.
            raise
        return catalog.table(f"{database}.{table}")
