"""The loader of native tables' metadata for the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lakelet.cache.keys import SchemaCacheKey, SnapshotCacheKey, TableCacheKey
from lakelet.cache.values import (
    PartitionCacheValue,
    SchemaCacheValue,
    SnapshotCacheValue,
    TableMetadataCacheValue,
)
from lakelet.catalog.metadata_cache.native_keys import paths_of
from lakelet.catalog.metadata_cache.native_partitions import partition_values
from lakelet.catalog.metadata_cache.native_source import SCHEMA, SNAPSHOT, CachedMetadata
from lakelet.catalog.metadata_cache.native_values import schema_value, snapshot_value, table_value
from lakelet.commit.index_changes import DELETION_VECTORS, read_index_entries
from lakelet.commit.metadata.manifests import snapshot_manifests
from lakelet.commit.metadata.pointers import SchemaPointer, SnapshotPointer, stored_schema
from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.commit.metadata.snapshots import read_snapshot
from lakelet.errors import NotFoundError
from lakelet.model.manifest import IndexManifestEntry, ManifestFile
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome
from lakelet.storage.store import ObjectStore


class NativeLoader:
    """Loads through the source, so that what queries have read is not read again."""

    def __init__(self, store: ObjectStore, source: CachedMetadata) -> None:
        self._store = store
        self._source = source

    def table_metadata(
        self, table: TableCacheKey, known: TableMetadataCacheValue | None, *, fresh: bool
    ) -> TableMetadataCacheValue:
        """The current metadata of a table: `known` itself where nothing has changed."""
        home = self._home(table)
        snapshot, schema = replace(self._source, fresh=fresh).newest_pointers(home)
        if known is not None and known.evidence is not None:
            before: tuple[SnapshotPointer | None, SchemaPointer] = known.evidence
            if before[0] is snapshot and before[1] is schema:
                return known
        return table_value(home, snapshot, schema)

    def last_seen(self, table: TableCacheKey) -> TableMetadataCacheValue | None:
        """The metadata as it was last found."""
        pointers = self._source.cache.pointers
        schema: SchemaPointer | None = pointers.known(table, SCHEMA)
        return None if schema is None else table_value(self._home(table), pointers.known(table, SNAPSHOT), schema)

    def delta_manifest_list(self, table: TableCacheKey, snapshot_id: int) -> str:
        """The delta manifest list of the snapshot that has this id now."""
        return read_snapshot(self._home(table), snapshot_id).delta_manifest_list

    def snapshot(self, key: SnapshotCacheKey) -> SnapshotCacheValue:
        """A snapshot with its totals."""
        home = self._home(key.table)
        snapshot = self._snapshot(home, key)
        return _counted(home, snapshot, snapshot_manifests(home, snapshot), read_index_entries(home, snapshot))

    def schema(self, key: SchemaCacheKey) -> SchemaCacheValue:
        """A schema version."""
        known: SchemaPointer | None = self._source.cache.pointers.known(key.table, SCHEMA)
        return schema_value(stored_schema(self._home(key.table), key.schema_id, known))

    def partitions(self, table: TableCacheKey, snapshot: SnapshotCacheValue) -> PartitionCacheValue:
        """The partitions of a snapshot; manifests that were read before are not read again."""
        home = self._home(table)
        found: Snapshot = snapshot.payload
        versions = SchemaVersions(home)
        return partition_values(home, found, versions(found.schema_id), versions)

    def _snapshot(self, home: TableHome, key: SnapshotCacheKey) -> Snapshot:
        known: SnapshotPointer | None = self._source.cache.pointers.known(key.table, SNAPSHOT)
        found = None if known is None else known.snapshot
        if found is None or (found.id, found.delta_manifest_list) != (key.snapshot_id, key.delta_manifest_list):
            found = read_snapshot(home, key.snapshot_id)
        if found.delta_manifest_list != key.delta_manifest_list:
            raise NotFoundError(
                f"snapshot {key.snapshot_id} of {home.where(home.paths.branch_root)} is another one by now: the table was "
                "rolled back and written to"
            )
        return found

    def _home(self, table: TableCacheKey) -> TableHome:
        return TableHome(self._store, paths_of(table), metadata=self._source)


def _counted(
    home: TableHome, snapshot: Snapshot, manifests: Sequence[ManifestFile], indexes: Sequence[IndexManifestEntry]
) -> SnapshotCacheValue:
    """Level 2 of a snapshot with its totals."""
    vectors = [entry.file for entry in indexes if entry.file.index_type == DELETION_VECTORS]
    cardinalities = [place.cardinality for file in vectors for place in file.deletion_vectors or ()]
    known = None if None in cardinalities else sum(number for number in cardinalities if number is not None)
    value = snapshot_value(home, snapshot)
    return SnapshotCacheValue(
        value.snapshot_id,
        value.schema_id,
        value.parent_snapshot_id,
        value.timestamp_millis,
        value.manifest_list_location,
        value.summary,
        value.operation,
        value.total_records,
        sum(manifest.added_files - manifest.deleted_files for manifest in manifests),
        len(vectors),
        known,
        0,
        value.delta_manifest_list,
        snapshot,
    )
