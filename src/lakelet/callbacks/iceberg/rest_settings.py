"""Which REST catalog a table is published in, by its options, and which options may be stored about it.

    options of the table                                       options of the program's connect()
    'metadata.iceberg.storage' = 'rest-catalog'                catalog.prod.type = rest
    'metadata.iceberg.rest.uri' = 'https://iceberg.example'    catalog.prod.uri = https://iceberg.example
    'metadata.iceberg.rest.warehouse' = 'shop'                 catalog.prod.warehouse = shop
    'metadata.iceberg.database', 'metadata.iceberg.table'      catalog.prod.token = …

Of a table's settings these are looked at and no others: they choose one of the program's catalogs. Whatever else another engine
keeps there, such as tokens and classes, is neither sent nor run.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from lakelet.errors import InvalidError
from lakelet.options import CATALOG_PREFIX, ICEBERG_STORAGE
from lakelet.options.table.iceberg import ICEBERG_REST_SETTING, REST_CATALOG, publishes_to_rest
from lakelet.storage.rest_catalogs import RestCatalogs

_URI, _WAREHOUSE = ICEBERG_REST_SETTING.of("uri"), ICEBERG_REST_SETTING.of("warehouse")
_CHOOSING = (_URI, _WAREHOUSE, ICEBERG_STORAGE.name)


def check_rest_settings(stored: Mapping[str, str], options: Mapping[str, str], catalogs: RestCatalogs | None) -> None:
    """InvalidError for options that are about to be stored and name a REST catalog that the program did not give, or more about
    one than where it is. `options` are those of the table with them."""
    for key in stored:
        if ICEBERG_REST_SETTING.member(key) is not None and key not in (_URI, _WAREHOUSE):
            setting = ICEBERG_REST_SETTING.member(key)
            raise InvalidError(
                f"option '{key}': how a REST catalog is spoken to is said by the program alone, and secrets would be readable in "
                f"the table's folder: pass '{CATALOG_PREFIX}<name>.{setting}' to connect(); a table names "
                f"'{_URI}' and '{_WAREHOUSE}'"
            )
    if publishes_to_rest(options) and not stored.keys().isdisjoint(_CHOOSING):
        uri, warehouse = catalog_of(options)
        given(catalogs).check(uri, warehouse)


def catalog_of(options: Mapping[str, str]) -> tuple[str, str | None]:
    """The address of a table's REST catalog, and its warehouse there."""
    uri = options.get(_URI, "").strip()
    needed = (
        f"'{ICEBERG_STORAGE.name}' = '{REST_CATALOG}' needs '{_URI}', an address that begins with http:// or https://"
    )
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError as error:
        raise InvalidError(f"{needed}, found {uri!r}: {error}") from None
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname or port == 0:
        raise InvalidError(f"{needed}, found {uri!r}" if uri else needed)
    if parts.username is not None or parts.query or parts.fragment:
        raise InvalidError(f"option '{_URI}': expected an address without a user and parameters")
    return uri, options.get(_WAREHOUSE)


def given(catalogs: RestCatalogs | None) -> RestCatalogs:
    """The catalogs of the program; InvalidError in a process that has none of a program's."""
    if catalogs is None:
        raise InvalidError(
            "the table is published in a REST catalog, and this process was given none: the next commit of a program that was, "
            "by connect(), publishes it"
        )
    return catalogs
