"""Which REST catalogs a lake's tables may be published in: those that the program gave to `connect()`, chosen by address.

    connect(…, {"catalog.prod.type": "rest", "catalog.prod.uri": "https://iceberg.example", "catalog.prod.token": "…"})
    'metadata.iceberg.rest.uri' = 'https://iceberg.example'       an option of a table: published in prod
    'metadata.iceberg.rest.uri' = 'https://elsewhere.example'     refused: nothing is sent to an address that only a table names

A catalog that is stored in the lake (CREATE CATALOG) is no permission, for it lies in the warehouse like the table.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from lakelet.errors import InvalidError
from lakelet.options import CATALOG_PREFIX
from lakelet.storage.rest_catalogs import IsLive, RestTable
from lakelet.storage.store import ObjectStore

if TYPE_CHECKING:
    from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog

_PORTS = {"http": 80, "https": 443}


class GivenRestCatalogs:
    """The REST catalogs among the options that a lake was opened with."""

    def __init__(self, store: ObjectStore, options: Mapping[str, str]) -> None:
        self._store = store
        self._options = {key: text for key, text in options.items() if key.startswith(("s3.", CATALOG_PREFIX))}
        self._opened: dict[str, IcebergCatalog] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        # Options may hold secrets.
        return f"GivenRestCatalogs({self._store.location!r})"

    def check(self, uri: str, warehouse: str | None) -> None:
        """InvalidError unless the program gave a REST catalog of this address."""
        self._name(uri, warehouse)

    def bring(self, table: RestTable, metadata: Mapping[str, Any], is_live: IsLive) -> None:
        """Make the table in its catalog what the metadata says."""
        catalog = self._open(table)
        from lakelet.iceberg.publication.rest_table import bring  # noqa: PLC0415 - pyiceberg loads with it.

        bring(catalog, table, metadata, is_live)

    def withdraw(self, table: RestTable) -> None:
        """Drop the table from its catalog, and none of its files."""
        catalog = self._open(table)
        from lakelet.iceberg.publication.rest_table import withdraw  # noqa: PLC0415 - pyiceberg loads with it.

        withdraw(catalog, table)

    def _open(self, table: RestTable) -> IcebergCatalog:
        name = self._name(table.uri, table.warehouse)
        with self._lock:
            if name not in self._opened:
                try:
                    from lakelet.iceberg.catalog.catalogs import Catalogs  # noqa: PLC0415 - pyiceberg loads with it.
                except ImportError as error:
                    raise InvalidError(
                        f"publication in a REST catalog needs pyiceberg: pip install lakelet[iceberg] ({error})"
                    ) from error
                self._opened[name] = Catalogs(self._store, self._options).given(name)
            return self._opened[name]

    def _name(self, uri: str, warehouse: str | None) -> str:
        """The name of the one catalog that the program gave with this address, and warehouse where the table names one."""
        place = _place(uri)
        found = [
            name
            for name, properties in self._given().items()
            if place is not None
            and _place(properties.get("uri", "")) == place
            and properties.get("type", "rest").lower() == "rest"
            and warehouse in (None, properties.get("warehouse"))
        ]
        if not found:
            named = "" if warehouse is None else f" with the warehouse {warehouse!r}"
            raise InvalidError(
                f"the table is to be published in the REST catalog {uri}{named}, which is not among those of this program: pass "
                f"'{CATALOG_PREFIX}<name>.type' = 'rest' and '{CATALOG_PREFIX}<name>.uri' to connect(), with what else it takes"
            )
        if len(found) > 1:
            raise InvalidError(
                f"catalogs {' and '.join(found)} of this program are both {uri}: give the table "
                "'metadata.iceberg.rest.warehouse' as well"
            )
        return found[0]

    def _given(self) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {}
        for key, text in self._options.items():
            name, dot, rest = key.removeprefix(CATALOG_PREFIX).partition(".")
            if key.startswith(CATALOG_PREFIX) and dot:
                found.setdefault(name, {})[rest] = text
        return {name: found[name] for name in sorted(found)}


def _place(uri: str) -> tuple[str, str | None, int | None, str] | None:
    """What two spellings of an address have in common; None for what is no address of a server."""
    try:
        parts = urlsplit(uri)
        port = parts.port or _PORTS.get(parts.scheme.lower())
    except ValueError:
        return None
    if parts.scheme.lower() not in _PORTS or not parts.hostname:
        return None
    return parts.scheme.lower(), parts.hostname, port, parts.path.rstrip("/")
