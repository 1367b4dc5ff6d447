"""Open the Iceberg catalog that a Spark job names, in one of three ways.

    {"type": "rest", "uri": "http://…"}              properties of pyiceberg, with a "name" or without
    "ice"                                            a catalog of pyiceberg's own configuration, such as ~/.pyiceberg.yaml
    "ice", warehouse="./warehouse"                   a catalog that the lake knows; "iceberg" is its own

Only the driver talks to catalogs. Executors get a plan and the credentials for its files, inside pickled values.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from lakelet.catalog import connect
from lakelet.errors import InvalidError
from lakelet.iceberg.catalog.catalogs import OWN_CATALOG
from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.trust.properties import configured
from lakelet.options import CATALOG_PREFIX
from lakelet.options.connection import CONNECTION_OPTIONS

CatalogLike = str | Mapping[str, str]
_CONNECTION = frozenset(option.name for option in CONNECTION_OPTIONS)


def open_catalog(
    catalog: CatalogLike,
    warehouse: str | os.PathLike[str] | None = None,
    options: Mapping[str, str] | None = None,
) -> IcebergCatalog:
    """The catalog; InvalidError where it is named in none of these ways. Only connection options are used."""
    if isinstance(catalog, str):
        if not catalog.strip():
            raise InvalidError("the name of the catalog is empty")
        if warehouse is None:
            return IcebergCatalog(catalog, configured(catalog))
        return connect(os.fspath(warehouse), connection_options(options)).catalogs.open(catalog)
    if warehouse is not None:
        raise InvalidError("warehouse= goes with the name of a catalog of that lake, found properties of a catalog")
    properties = {str(key): str(value) for key, value in catalog.items()}
    if not properties:
        raise InvalidError("the catalog has no properties: expected such as type and uri, or the name of a catalog")
    name = properties.pop("name", OWN_CATALOG)
    return IcebergCatalog(name, configured(name) | properties)


def connection_options(options: Mapping[str, str] | None) -> dict[str, str]:
    """The options that open a lake."""
    given = {str(key): str(value) for key, value in (options or {}).items()}
    return {key: text for key, text in given.items() if is_connection(key)}


def is_connection(name: str) -> bool:
    """Whether an option is one that a lake is opened with."""
    return name in _CONNECTION or name.startswith(CATALOG_PREFIX)
