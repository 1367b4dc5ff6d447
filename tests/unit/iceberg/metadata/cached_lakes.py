"""Lakes with metadata caches over one folder with an Iceberg table, and its catalog as another program would open it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from lakelet.cache.settings import CacheSettings
from lakelet.catalog.lake import Lake
from lakelet.catalog.metadata_cache.open import cached_metadata
from lakelet.iceberg.scan import IcebergScan, scan_of
from lakelet.iceberg.table import IcebergTable
from lakelet.storage.disk.local_store import LocalStore

CATALOG, NAME = "iceberg", "shop.orders"
FULL = f"{CATALOG}.{NAME}"
COLUMNS = "id BIGINT, dt STRING, v DOUBLE"


def opened(folder: Path, options: Mapping[str, str] | None = None, *, listens: bool = False) -> Lake:
    """A lake with a cache. Unless it listens it hears of no change by others, as another process would not."""
    store = LocalStore(str(folder))
    source = cached_metadata(store, CacheSettings.of(options or {}), listens=listens)
    return Lake(store, options=options, metadata=source, cache=source.cache)


def uncached(folder: Path) -> Lake:
    """A lake without a cache."""
    return Lake(LocalStore(str(folder)))


def create(lake: Lake, columns: str = COLUMNS) -> None:
    """The table, in its database."""
    lake.sql(f"CREATE DATABASE IF NOT EXISTS {CATALOG}.shop")
    lake.sql(f"CREATE TABLE {FULL} ({columns}) PARTITIONED BY (dt)")


def foreign(folder: Path) -> Catalog:
    """The lake's own catalog as a program with pyiceberg alone opens it."""
    return SqlCatalog(
        CATALOG,
        uri=f"sqlite:///{folder}/iceberg/catalog.db",
        warehouse=f"file://{folder}/iceberg",
    )


def appended(table: Table, *ids: int) -> None:
    """Rows that pyiceberg appends."""
    rows = {"id": list(ids), "dt": [f"d{one % 3}" for one in ids], "v": [one / 2 for one in ids]}
    schema = pa.schema([("id", pa.int64()), ("dt", pa.string()), ("v", pa.float64())])
    table.append(pa.table(rows, schema=schema))


def table(lake: Lake) -> IcebergTable:
    """The table for a query."""
    return lake.catalogs.open(CATALOG).table(NAME, for_queries=True)


def scan(lake: Lake, where: str | None = None) -> IcebergScan:
    """A plan of the table for a query."""
    return scan_of(table(lake), where=where)


def ids(lake: Lake) -> list[int]:
    """The ids of all rows."""
    return [row[0] for row in lake.sql(f"SELECT id FROM {FULL} ORDER BY id").rows()]
