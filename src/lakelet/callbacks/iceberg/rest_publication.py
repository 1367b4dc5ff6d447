"""Publish a table in an Iceberg REST catalog too, once its metadata files are written.

The metadata of its newest version is handed to the catalog of the program that `rest_settings` finds. Nothing is kept about it:
the catalog is asked what it shows, and brought to this version.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakelet.callbacks.iceberg.published_metadata import Metadata, PublishedFolder, is_made_of
from lakelet.callbacks.iceberg.rest_settings import catalog_of, given
from lakelet.commit.metadata.snapshots import try_snapshot
from lakelet.errors import InvalidError
from lakelet.options import ICEBERG_DELETE_AFTER_COMMIT, ICEBERG_PREVIOUS_VERSIONS_MAX, TableOptions
from lakelet.options.table.iceberg import ICEBERG_DATABASE, ICEBERG_TABLE, publishes_to_rest
from lakelet.storage.home import TableHome
from lakelet.storage.rest_catalogs import RestTable


def bring_to_rest(home: TableHome, folder: PublishedFolder, options: TableOptions, metadata: Metadata) -> None:
    """Make the table in its REST catalog what the metadata says, if its options ask for one."""
    if not publishes_to_rest(options.raw):
        return

    def is_live(number: int, summary: Mapping[str, str]) -> bool:
        snapshot = try_snapshot(home, number)
        return snapshot is not None and is_made_of({"snapshot-id": number, "summary": summary}, snapshot)

    given(home.rest_catalogs).bring(_rest_table(home, folder, options), metadata, is_live)


def withdraw_from_rest(home: TableHome, folder: PublishedFolder, options: TableOptions) -> None:
    """Drop the table from its REST catalog, if its options ask for one."""
    if publishes_to_rest(options.raw):
        given(home.rest_catalogs).withdraw(_rest_table(home, folder, options))


def _rest_table(home: TableHome, folder: PublishedFolder, options: TableOptions) -> RestTable:
    uri, warehouse = catalog_of(options.raw)
    database, _, name = home.paths.identifier.rpartition(".")
    database, name = options.get(ICEBERG_DATABASE) or database, options.get(ICEBERG_TABLE) or name
    if not database:
        raise InvalidError(
            f"{home.where(home.paths.root)} is in no database of a warehouse: expected '{ICEBERG_DATABASE.name}'"
        )
    # Iceberg's readers may drop or expire what they find: its files are those of the table, and stay.
    properties = {
        "gc.enabled": "false",
        "write.metadata.delete-after-commit.enabled": str(options.get(ICEBERG_DELETE_AFTER_COMMIT)).lower(),
        "write.metadata.previous-versions-max": str(max(1, options.get(ICEBERG_PREVIOUS_VERSIONS_MAX))),
    }
    return RestTable(
        uri=uri,
        warehouse=warehouse,
        database=database,
        name=name,
        folder=home.where(folder.folder),
        location=folder.location,
        properties=properties,
    )
