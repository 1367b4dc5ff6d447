"""The pointer to the newest version of an Iceberg table: the metadata location that its catalog has, with the metadata in it.

A catalog in a database is asked for the location alone, and the metadata is read where that is another one. Other catalogs
answer with the whole metadata; a REST catalog also with credentials, which are always the newest. A file whose name has a uuid in
it is never written twice; any other (`v3.metadata.json` of a table in a folder) is read and compared at every check.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import blake2b
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.io import FileIO
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import Identifier

from lakelet.iceberg.library_internals import table_location

# How often a metadata file may be missing by the time it is read.
_TRIES = 5
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
# Estimates of the memory that parsed metadata takes.
_TABLE_BYTES = 4000
_SNAPSHOT_BYTES = 3000
_FIELD_BYTES = 1200
_ENTRY_BYTES = 400


def load_table(catalog: Catalog, name: str | Identifier) -> Table:
    """A table as its catalog has it now. Where old metadata files are removed after commits, as a table may ask for, the
    one that the catalog named can be missing when it is read: the catalog names another by then."""
    for _ in range(_TRIES - 1):
        with suppress(FileNotFoundError):
            return catalog.load_table(name)
    return catalog.load_table(name)


@dataclass(frozen=True, eq=False)
class TablePointer:
    """A table as it was loaded. The library's object can be changed by whoever holds it, and is therefore never handed out."""

    loaded: Table

    @property
    def location(self) -> str | None:
        """The metadata location."""
        return self.loaded.metadata_location

    @property
    def metadata(self) -> TableMetadata:
        """The parsed metadata, which is shared and never modified."""
        return self.loaded.metadata

    @property
    def catalog(self) -> Catalog:
        """The catalog that it was loaded from."""
        return self.loaded.catalog

    @cached_property
    def has_own_credentials(self) -> bool:
        """Whether access to its files was granted with the table, so that it may expire."""
        known = self.loaded.catalog.properties
        return any(known.get(key) != value for key, value in self.loaded.io.properties.items())

    @cached_property
    def schema_line(self) -> str:
        """A digest of all schemas and specs and of which are current, and of the table's identity."""
        metadata = self.loaded.metadata
        said = blake2b(digest_size=16)
        said.update(f"{metadata.table_uuid} {metadata.current_schema_id} {metadata.default_spec_id}".encode())
        for one in (*metadata.schemas, *metadata.partition_specs):
            said.update(one.model_dump_json().encode())
        return said.hexdigest()

    @cached_property
    def nbytes(self) -> int:
        """The estimated size in memory."""
        metadata = self.loaded.metadata
        fields = sum(len(one.fields) for one in metadata.schemas)
        logged = len(metadata.snapshot_log) + len(metadata.metadata_log) + len(metadata.properties)
        return (
            _TABLE_BYTES
            + _SNAPSHOT_BYTES * len(metadata.snapshots)
            + _FIELD_BYTES * fields
            + _ENTRY_BYTES * (logged + len(metadata.refs))
        )

    def table(self, io: FileIO | None = None) -> Table:
        """The table, as an object of the caller's own."""
        own = self.loaded
        return Table(own.name(), own.metadata, own.metadata_location, io or own.io, own.catalog, own.config)


def checked_pointer(
    catalog: Catalog, name: str | Identifier, known: TablePointer | None
) -> tuple[TablePointer, FileIO | None]:
    """The pointer to the newest version: `known` itself where it still is that. With it the access to files that the catalog
    has granted just now, where it was asked for that."""
    same = known if known is not None and known.catalog is catalog else None
    if same is not None and has_unique_name(same.location) and newest_location(catalog, name) == same.location:
        return same, None
    loaded = load_table(catalog, name)
    there = None if same is None or same.location != loaded.metadata_location else same
    if there is not None and (has_unique_name(there.location) or there.metadata == loaded.metadata):
        return there, loaded.io
    return TablePointer(loaded), loaded.io


def newest_location(catalog: Catalog, name: str | Identifier) -> str | None:
    """The metadata location of a table in a catalog's database; None where there is no such table, or the catalog is of
    another kind."""
    kind = _sql_catalog()
    # One that loads tables in a way of its own is asked in no other.
    if kind is None or getattr(catalog.load_table, "__func__", None) is not kind.load_table:
        return None
    return table_location(catalog, catalog.identifier_to_tuple(name))


def has_unique_name(location: str | None) -> bool:
    """Whether a file has a uuid in its name, and so is never written twice."""
    return location is not None and _UUID.search(location.rsplit("/", 1)[-1]) is not None


@cache
def _sql_catalog() -> Any:
    """The class of catalogs in a database; None where its driver is not installed."""
    try:
        from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 - it needs a driver that need not be there.
    except ImportError:
        return None
    return SqlCatalog
