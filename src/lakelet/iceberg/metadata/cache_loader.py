"""The loader of an Iceberg catalog's metadata for the cache. It loads through the source, so that what queries have read is not
read again.

metadata location    the catalog's           manifest list        also in place of the delta manifest list: its path is unique
schema line          the table's identity    identifier fields    the schema's
                     with all its schemas    branch               a branch or a tag
"""

from __future__ import annotations

from dataclasses import replace

from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from lakelet.cache.keys import SchemaCacheKey, SnapshotCacheKey, TableCacheKey
from lakelet.cache.values import (
    PartitionCacheValue,
    SchemaCacheValue,
    SnapshotCacheValue,
    TableMetadataCacheValue,
)
from lakelet.errors import NotFoundError
from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.catalog.library_errors import lakelet_errors
from lakelet.iceberg.metadata.cache_partitions import partition_value
from lakelet.iceberg.metadata.cache_values import schema_value, snapshot_value, table_value
from lakelet.iceberg.metadata.cached import METADATA, CachedIcebergMetadata
from lakelet.iceberg.metadata.source import IcebergMetadataSource
from lakelet.iceberg.metadata.table_pointer import TablePointer
from lakelet.iceberg.metadata.uncached import UNCACHED
from lakelet.iceberg.scan.file_errors import reading
from lakelet.iceberg.scan.plan import snapshot_partitions

_MAIN = "main"


class IcebergLoader:
    """Loads the tables of one catalog."""

    def __init__(self, catalog: IcebergCatalog, source: CachedIcebergMetadata) -> None:
        self._catalog = catalog
        self._source = source

    def table_metadata(
        self, table: TableCacheKey, known: TableMetadataCacheValue | None, *, fresh: bool
    ) -> TableMetadataCacheValue:
        """The current metadata of a table: `known` itself where nothing has changed."""
        with lakelet_errors(f"table {table}"):
            pointer, _ = replace(self._source, fresh=fresh).pointer(
                self._catalog.library, (*table.database.split("."), table.table)
            )
            if known is not None and known.evidence is pointer:
                return known
            return table_value(pointer, table.branch)

    def last_seen(self, table: TableCacheKey) -> TableMetadataCacheValue | None:
        """The metadata as it was last found."""
        pointer = self._known(table)
        return None if pointer is None else table_value(pointer, table.branch)

    def delta_manifest_list(self, table: TableCacheKey, snapshot_id: int) -> str:
        """The manifest list of a snapshot of the current version."""
        return self._snapshot(table, self._metadata(table), snapshot_id).manifest_list

    def snapshot(self, key: SnapshotCacheKey) -> SnapshotCacheValue:
        """A snapshot with its totals."""
        metadata, what = self._metadata(key.table), f"table {key.table}"
        snapshot = self._snapshot(key.table, metadata, key.snapshot_id)
        with lakelet_errors(what), reading(snapshot.manifest_list, what):
            listed = self._of(key.table).manifest_list(self._io(key.table), snapshot)
        return snapshot_value(metadata, snapshot, listed)

    def schema(self, key: SchemaCacheKey) -> SchemaCacheValue:
        """A schema version."""
        metadata = self._metadata(key.table)
        found = next((one for one in metadata.schemas if one.schema_id == key.schema_id), None)
        if found is None:
            there = ", ".join(str(one.schema_id) for one in metadata.schemas)
            raise NotFoundError(f"table {key.table} has no schema {key.schema_id}; there are {there}")
        return schema_value(metadata, found)

    def partitions(self, table: TableCacheKey, snapshot: SnapshotCacheValue) -> PartitionCacheValue:
        """The partitions of a snapshot; manifests that were read before are not read again."""
        metadata, found, what = self._metadata(table), snapshot.payload, f"table {table}"
        with lakelet_errors(what):
            live, values = snapshot_partitions(metadata, self._io(table), found, what, self._of(table))
            return partition_value(metadata, found, live, values)

    # ------------------------------------------------------------------ inside

    def _known(self, table: TableCacheKey) -> TablePointer | None:
        found: TablePointer | None = self._source.cache.pointers.known(table.on_branch(_MAIN), METADATA)
        return found

    def _pointer(self, table: TableCacheKey) -> TablePointer:
        """The pointer as it was last found, or as it is now."""
        known = self._known(table)
        if known is not None and known.catalog is self._catalog.library:
            return known
        with lakelet_errors(f"table {table}"):
            name = (*table.database.split("."), table.table)
            return replace(self._source, fresh=False).pointer(self._catalog.library, name)[0]

    def _metadata(self, table: TableCacheKey) -> TableMetadata:
        return self._pointer(table).metadata

    def _io(self, table: TableCacheKey) -> FileIO:
        pointer = self._pointer(table)
        if not pointer.has_own_credentials:
            return pointer.loaded.io
        return UNCACHED.table(self._catalog.library, pointer.loaded.name()).io

    def _of(self, table: TableCacheKey) -> IcebergMetadataSource:
        return self._source.of_table(table.catalog, (*table.database.split("."), table.table))

    def _snapshot(self, table: TableCacheKey, metadata: TableMetadata, snapshot_id: int) -> Snapshot:
        found = metadata.snapshot_by_id(snapshot_id)
        if found is None:
            raise NotFoundError(f"table {table} has no snapshot {snapshot_id}; it may have been expired")
        return found
