"""The metadata source of native tables over the tiered cache.

Pointers are revalidated as the staleness demands, at every call by default; a version or a tag by name is looked up each time;
and what is immutable is kept: schema versions, manifest lists, manifests, and what readers compute from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelet.cache.coordinator import TieredCacheCoordinator
from lakelet.cache.keys import DerivedCacheKey, SchemaCacheKey, SnapshotCacheKey, TableCacheKey
from lakelet.cache.level import CacheLevel
from lakelet.cache.table_values import TableValues
from lakelet.catalog.metadata_cache.native_keys import key_of, main_key
from lakelet.commit.metadata.pointers import (
    SchemaPointer,
    SnapshotPointer,
    newest_schema,
    newest_snapshot,
    still_newest,
    stored_schema,
)
from lakelet.commit.metadata.source import UNCACHED
from lakelet.model.manifest import BlockFilter, IndexManifestEntry, ManifestFile
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.tag import Tag
from lakelet.storage.home import TableHome
from lakelet.storage.metadata_source import KeptValues, MetadataSource

if TYPE_CHECKING:
    from lakelet.cache.values import SchemaCacheValue

SNAPSHOT = "snapshot"
SCHEMA = "schema"
# Estimates of the memory that decoded values take.
_DECODED = 6
_LISTED_BYTES = 700
_INDEX_BYTES = 400
_VECTOR_BYTES = 200


@dataclass(frozen=True, slots=True)
class CachedMetadata:
    """The `MetadataSource` of a lake. `parallel` says that a call of the store is a round trip, so that several are made at once;
    `fresh` that pointers are revalidated at every call, whatever staleness queries are allowed."""

    cache: TieredCacheCoordinator
    parallel: bool = False
    fresh: bool = True

    def for_queries(self) -> MetadataSource:
        """The same source, with pointers as old as the cache's staleness allows."""
        return CachedMetadata(self.cache, self.parallel, fresh=False)

    # ------------------------------------------------------------------ pointers

    def latest_snapshot(self, home: TableHome) -> Snapshot | None:
        """The newest snapshot, None for a table without any."""
        if not self.cache.settings.enabled:
            return UNCACHED.latest_snapshot(home)
        found = self.snapshot_pointer(home)
        return None if found is None else found.snapshot

    def latest_schema(self, home: TableHome) -> TableSchema:
        """The newest schema version; NotFoundError where there is no table."""
        if not self.cache.settings.enabled:
            return UNCACHED.latest_schema(home)
        return self.schema_pointer(home).schema

    def newest(self, home: TableHome) -> tuple[Snapshot | None, TableSchema]:
        """The newest snapshot and a schema that knows every column of its files."""
        if not self.cache.settings.enabled:
            return UNCACHED.newest(home)
        snapshot, schema = self.newest_pointers(home)
        return None if snapshot is None else snapshot.snapshot, schema.schema

    def newest_pointers(self, home: TableHome) -> tuple[SnapshotPointer | None, SchemaPointer]:
        """Both pointers; revalidated together where that saves round trips."""
        if not self.parallel:
            found = self.snapshot_pointer(home)
            return found, self.schema_pointer(home)
        pointers, table = self.cache.pointers, key_of(home.paths)
        snapshot: SnapshotPointer | None = pointers.known(table, SNAPSHOT)
        schema: SchemaPointer | None = pointers.known(table, SCHEMA)
        if (
            snapshot is None
            or schema is None
            or schema.schema.id < snapshot.snapshot.schema_id
            or not pointers.staleness.is_strict
        ):
            found = self.snapshot_pointer(home)
            return found, self.schema_pointer(home)
        same_snapshot, same_schema = still_newest(home, snapshot, schema, self.cache.pool)
        found = self.snapshot_pointer(home, right=snapshot if same_snapshot else None)
        # A schema that was looked at beside another snapshot may be older than this one.
        sure = same_schema and found is snapshot
        return found, self.schema_pointer(home, right=schema if sure else None)

    def snapshot_pointer(self, home: TableHome, right: SnapshotPointer | None = None) -> SnapshotPointer | None:
        """The pointer to the newest snapshot; `right` is one that was just revalidated."""
        table = key_of(home.paths)

        def check(known: SnapshotPointer | None) -> SnapshotPointer | None:
            return known if known is not None and known is right else newest_snapshot(home, known)

        found = self.cache.pointers.current(table, SNAPSHOT, check, _snapshot_bytes, fresh=self.fresh)
        if found is not None:
            self._keep_snapshot(table, home, found.snapshot)
        return found

    def schema_pointer(self, home: TableHome, right: SchemaPointer | None = None) -> SchemaPointer:
        """The pointer to the newest schema version; `right` is one that was just revalidated."""
        table = key_of(home.paths)

        def check(known: SchemaPointer | None) -> SchemaPointer | None:
            return known if known is not None and known is right else newest_schema(home, known)

        found = self.cache.pointers.current(table, SCHEMA, check, _schema_bytes, fresh=self.fresh)
        assert found is not None
        tier, key = self.cache.tiers[CacheLevel.SCHEMA], SchemaCacheKey(table, found.schema.id, found.line)
        if tier.get(key) is None:
            value = _schema_value(found)
            tier.put(key, value, value.nbytes)
        return found

    def snapshot(self, home: TableHome, number: int) -> Snapshot | None:
        """The snapshot that has this id now."""
        return UNCACHED.snapshot(home, number)

    def tag(self, home: TableHome, name: str) -> Tag | None:
        """The tag of that name."""
        return UNCACHED.tag(home, name)

    def tags(self, home: TableHome) -> tuple[Tag, ...]:
        """All tags of the branch."""
        return UNCACHED.tags(home)

    # ------------------------------------------------------------------ values

    def schema(self, home: TableHome, number: int) -> TableSchema:
        """One schema version, of the line of versions that ends in the newest one known."""
        table = key_of(home.paths)
        newest: SchemaPointer | None = self.cache.pointers.known(table, SCHEMA)
        if newest is None or not self.cache.settings.enabled:
            return UNCACHED.schema(home, number)
        tier, key = self.cache.tiers[CacheLevel.SCHEMA], SchemaCacheKey(table, number, newest.line)
        if self.parallel:
            found = tier.load(key, lambda: _schema_value(stored_schema(home, number)), lambda value: int(value.nbytes))
            schema: TableSchema = found.payload.schema
            return schema
        # Reading a small file costs less than the thought whether it may have been replaced.
        known = tier.get(key)
        pointer = stored_schema(home, number, None if known is None else known.payload)
        if known is None or pointer is not known.payload:
            value = _schema_value(pointer)
            tier.put(key, value, value.nbytes)
        return pointer.schema

    def manifest_list(self, home: TableHome, name: str) -> tuple[ManifestFile, ...]:
        """The manifests that a list names."""
        found: tuple[ManifestFile, ...] = self._load(
            CacheLevel.SNAPSHOT,
            home,
            ("manifest list", name),
            lambda: UNCACHED.manifest_list(home, name),
            lambda listed: _LISTED_BYTES * (len(listed) + 1),
        )
        return found

    def manifest(
        self,
        home: TableHome,
        name: str,
        columns: Sequence[str] | None = None,
        keep_blocks: BlockFilter | None = None,
    ) -> pa.Table:
        """The entries of a manifest. One that is not kept yet is decoded without the blocks that fail, and then not kept."""
        wanted = None if columns is None else tuple(columns)
        if keep_blocks is not None:
            known: pa.Table | None = None
            if self.cache.settings.enabled:
                key = DerivedCacheKey(main_key(home.paths), ("manifest", name, wanted))
                known = self.cache.tiers[CacheLevel.PARTITION].peek(key)
            return UNCACHED.manifest(home, name, columns, keep_blocks) if known is None else known
        found: pa.Table = self._load(
            CacheLevel.PARTITION,
            home,
            ("manifest", name, wanted),
            lambda: UNCACHED.manifest(home, name, columns),
            lambda entries: int(entries.nbytes) + _LISTED_BYTES,
        )
        return found

    def index_manifest(self, home: TableHome, name: str) -> tuple[IndexManifestEntry, ...]:
        """The index files that an index manifest names."""
        found: tuple[IndexManifestEntry, ...] = self._load(
            CacheLevel.PARTITION,
            home,
            ("index manifest", name),
            lambda: UNCACHED.index_manifest(home, name),
            _index_bytes,
        )
        return found

    def kept(self, home: TableHome) -> KeptValues | None:
        """Where values computed from the table's metadata are kept."""
        tier = self.cache.tiers[CacheLevel.PARTITION]
        if not self.cache.settings.enabled or not tier.limits.max_entries:
            return None
        return TableValues(self.cache, main_key(home.paths))

    # ------------------------------------------------------------------ inside

    def _load(self, level: CacheLevel, home: TableHome, name: tuple[object, ...], make: Any, weigh: Any) -> Any:
        if not self.cache.settings.enabled:
            return make()
        return self.cache.tiers[level].load(DerivedCacheKey(main_key(home.paths), name), make, weigh)

    def _keep_snapshot(self, table: TableCacheKey, home: TableHome, snapshot: Snapshot) -> None:
        tier = self.cache.tiers[CacheLevel.SNAPSHOT]
        key = SnapshotCacheKey(table, snapshot.id, snapshot.delta_manifest_list)
        if tier.get(key) is None:
            from lakelet.catalog.metadata_cache.native_values import snapshot_value  # noqa: PLC0415 - as below.

            value = snapshot_value(home, snapshot)
            tier.put(key, value, value.nbytes)


def _snapshot_bytes(pointer: SnapshotPointer) -> int:
    return _DECODED * len(pointer.data)


def _schema_bytes(pointer: SchemaPointer) -> int:
    return _DECODED * len(pointer.data)


def _index_bytes(entries: tuple[IndexManifestEntry, ...]) -> int:
    return _INDEX_BYTES + sum(_INDEX_BYTES + _VECTOR_BYTES * len(one.file.deletion_vectors or ()) for one in entries)


def _schema_value(pointer: SchemaPointer) -> SchemaCacheValue:
    from lakelet.catalog.metadata_cache.native_values import schema_value  # noqa: PLC0415 - a lake that is only opened needs no values.

    return schema_value(pointer)
