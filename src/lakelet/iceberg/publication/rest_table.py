"""Bring a table of an Iceberg REST catalog to the version that a native table is published with.

    load ── nobody's ─────────────────────────── create, with all snapshots
         ── this table's, older ──────────────── one request: snapshots, main, tags
         ── this table's, cannot be continued ── drop, without its files, and create
         ── another table's ──────────────────── InvalidError: it is left alone

Each request says what it was computed from, so that of two programs that publish at once one is second and looks again. A table
of the catalog is this one's if a property says so, or a manifest list of it lies in the folder of this one's metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NoSuchTableError
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.update import (
    AssertCreate,
    AssertRefSnapshotId,
    AssertTableUUID,
    TableRequirement,
    TableUpdate,
)

from lakelet.errors import AlreadyExistsError, ConflictError, InvalidError, NotFoundError
from lakelet.events import StateUnknown, publish
from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.catalog.library_errors import lakelet_errors
from lakelet.iceberg.library_internals import staged_table
from lakelet.iceberg.metadata.uncached import UNCACHED
from lakelet.iceberg.publication.rest_updates import continued, created, is_current
from lakelet.storage.rest_catalogs import IsLive, RestTable

PUBLISHED_FROM = "lakelet.published-from"
_FORMAT_VERSION = "format-version"
# Others that publish the same table come first this often at most.
_TRIES = 5


def bring(catalog: IcebergCatalog, table: RestTable, metadata: Mapping[str, Any], is_live: IsLive) -> None:
    """Make the catalog's table what the metadata says, unless it shows a newer version already."""
    for number in range(_TRIES):
        try:
            with lakelet_errors(table.shown):
                _bring(catalog.library, table, metadata, is_live)
            return
        except (ConflictError, AlreadyExistsError, NotFoundError):
            if number + 1 == _TRIES:
                raise
        finally:
            _note(catalog, table)


def withdraw(catalog: IcebergCatalog, table: RestTable) -> None:
    """Drop the catalog's table if it is this one, and none of its files."""
    with lakelet_errors(table.shown):
        there = _loaded(catalog.library, table)
        if there is not None and _is_of(table, there.metadata):
            catalog.library.drop_table(_name(table))
            _note(catalog, table)


def _note(catalog: IcebergCatalog, table: RestTable) -> None:
    """Lets this process's caches of the catalog look again."""
    publish(StateUnknown(catalog.table_name(f"{table.database}.{table.name}"), MAIN_BRANCH, "publication"))


def _bring(library: Catalog, table: RestTable, metadata: Mapping[str, Any], is_live: IsLive) -> None:
    properties = {**table.properties, PUBLISHED_FROM: table.location}
    there = _loaded(library, table)
    if there is None:
        _create(library, table, metadata, properties)
        return
    if not _is_of(table, there.metadata):
        raise InvalidError(
            f"{table.shown} is another table: choose another name ('metadata.iceberg.table'), or drop it there"
        )
    if _is_newer(there.metadata, metadata, is_live):
        return
    updates = continued(there.metadata, metadata, properties)
    if updates is None:
        library.drop_table(_name(table))
        _create(library, table, metadata, properties)
    elif updates:
        _send(library, there, _unchanged(there.metadata), updates)


def _create(library: Catalog, table: RestTable, metadata: Mapping[str, Any], properties: Mapping[str, str]) -> None:
    if not library.namespace_exists((table.database,)):
        with suppress(NamespaceAlreadyExistsError):
            library.create_namespace((table.database,))
    version = {_FORMAT_VERSION: str(metadata[_FORMAT_VERSION])}
    # Its columns come with the updates: a catalog numbers those of a new table itself.
    staged = staged_table(
        library.create_table_transaction(_name(table), Schema(), properties={**properties, **version})
    )
    _send(library, staged, (AssertCreate(),), created(metadata, staged.metadata, properties))


def _send(
    library: Catalog, table: Table, requirements: tuple[TableRequirement, ...], updates: list[TableUpdate]
) -> None:
    library.commit_table(table, requirements, tuple(updates))


def _unchanged(there: TableMetadata) -> tuple[TableRequirement, ...]:
    main = there.refs.get(MAIN_BRANCH)
    head = {"ref": MAIN_BRANCH, "snapshot-id": None if main is None else main.snapshot_id}
    return AssertTableUUID(uuid=there.table_uuid), AssertRefSnapshotId.model_validate(head)


def _is_newer(there: TableMetadata, metadata: Mapping[str, Any], is_live: IsLive) -> bool:
    """Whether the catalog's table shows a version that was published since the metadata was made."""
    shown = there.current_snapshot()
    if shown is None or shown.summary is None or is_current(there, metadata):
        return False
    newest = int(metadata["current-snapshot-id"])
    return shown.snapshot_id > newest and is_live(shown.snapshot_id, shown.summary.additional_properties)


def _is_of(table: RestTable, there: TableMetadata) -> bool:
    if there.properties.get(PUBLISHED_FROM) == table.location:
        return True
    return any(one.manifest_list.rpartition("/")[0] == table.folder for one in there.snapshots)


def _loaded(library: Catalog, table: RestTable) -> Table | None:
    try:
        return UNCACHED.table(library, _name(table))
    except NoSuchTableError:
        return None


def _name(table: RestTable) -> tuple[str, str]:
    return table.database, table.name
