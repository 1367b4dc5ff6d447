"""Names of Iceberg tables as statements write them: three parts, of which the first is a catalog that the lake knows.

ice.shop.orders                 a table
ice.shop.orders$branch_dev      a branch of it
ice.shop.orders$snapshots       a table about it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelet.errors import InvalidError, NotFoundError
from lakelet.sql.errors import nearest
from lakelet.sql.names import matching, split_name

if TYPE_CHECKING:
    from lakelet.iceberg.catalog import IcebergCatalog
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
    known = context.lake.catalogs.names()
    catalog = matching(parts[0], known)
    if catalog is None:
        raise NotFoundError(f"catalog {parts[0]!r} is not known to {context.lake.location}{nearest(parts[0], known)}")
    name = split_name(parts[1:], parts[1])
    return IcebergName(catalog, name.database, name.table, name.branch, name.system)


def catalog_of(context: Context, name: IcebergName) -> IcebergCatalog:
    """The catalog that a name is of."""
    return context.lake.catalogs.open(name.catalog)


def open_iceberg(context: Context, name: IcebergName) -> IcebergTable:
    """The table of a name; NotFoundError names the nearest."""
    catalog = catalog_of(context, name)
    found = name.full
    if not catalog.table_exists(found):
        databases = catalog.namespaces()
        database = matching(name.database, databases)
        if database is None:
            raise NotFoundError(
                f"database {name.database!r} is not in catalog {name.catalog}{nearest(name.database, databases)}"
            )
        tables = catalog.tables(database)
        table = matching(name.table, tables)
        if table is None:
            raise NotFoundError(f"table {name.shown!r} does not exist{nearest(name.table, tables)}")
        found = f"{database}.{table}"
    return catalog.table(found)
