"""Refuse to import classes that the metadata of a table names, unless the program names the same class.

    py-io-impl                          FileIO implementation: the table's is ignored, its catalog decides
    write.py-location-provider.impl     location provider of written files: refused at the write
    connect(…, {"catalog.ice.write.py-location-provider.impl": "shop.Places"})                              allows that class

Whoever wrote a table thereby runs no code in the programs that read, write or maintain it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pyiceberg.catalog import Catalog, MetastoreCatalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.table import StagedTable, Table
from pyiceberg.table.locations import LocationProvider, load_location_provider
from pyiceberg.table.update import RemovePropertiesUpdate, SetPropertiesUpdate, TableRequirement, TableUpdate
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties

from lakelet.errors import InvalidError
from lakelet.iceberg.library_internals import StageTable, replace_file_io, wrap_staging
from lakelet.iceberg.trust.properties import CLASSES, LOCATION_CLASS
from lakelet.options import CATALOG_PREFIX


def guard(library: Catalog) -> None:
    """Makes a catalog of pyiceberg access files by its own properties alone, and commit to no table that names a class."""
    if isinstance(library, RestCatalog):
        return

    def load(properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        return load_file_io(dict(library.properties), location)

    replace_file_io(library, load)
    if not isinstance(library, MetastoreCatalog):
        return
    wrap_staging(library, partial(_checked, library))


def _checked(library: Catalog, stage: StageTable) -> StageTable:
    def checked(
        current_table: Table | None,
        table_identifier: Identifier,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> StagedTable:
        # pyiceberg has reloaded the table, and asks the class that it names where the metadata file goes.
        there = {} if current_table is None else dict(current_table.metadata.properties)
        for update in updates:
            if isinstance(update, SetPropertiesUpdate):
                there |= update.updates
            if isinstance(update, RemovePropertiesUpdate):
                there = {key: value for key, value in there.items() if key not in update.removals}
        check_location_class(f"table {'.'.join(table_identifier)}", there, library.properties)
        return stage(current_table, table_identifier, requirements, updates)

    return checked


def check_location_class(where: str, table: Mapping[str, str], catalog: Mapping[str, Any]) -> None:
    """InvalidError where a table names a class that says where its files go, and the program does not name the same."""
    named = table.get(LOCATION_CLASS)
    if named and named != catalog.get(LOCATION_CLASS):
        raise InvalidError(
            f"{where}: its property '{LOCATION_CLASS}' names the class {named!r}, which runs only where connect() says so: give "
            f"it to connect() as '{CATALOG_PREFIX}<catalog>.{LOCATION_CLASS}', or UNSET the property"
        )


def check_new_properties(where: str, properties: Mapping[str, str | None], catalog: Mapping[str, Any]) -> None:
    """InvalidError where a table is to get a property that names a class, other than one that the program names."""
    for key, value in properties.items():
        if value is not None and key in CLASSES and value != catalog.get(key):
            raise InvalidError(
                f"{where}: property {key!r} names a class, which its readers would run: classes are given to connect()"
            )


def locations(where: str, location: str, table: Mapping[str, str], catalog: Mapping[str, Any]) -> LocationProvider:
    """Where a table's files go, by its properties; InvalidError where they name a class that the program does not."""
    check_location_class(where, table, catalog)
    return load_location_provider(location, dict(table))
