"""The metadata source of native tables over the tiered cache.

Pointers are revalidated as the staleness demands, at every call by default; a version or a tag by name is looked up each time;
and what is immutable is kept: schema versions, manifest lists, manifests, and what readers compute from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelet.cache.coordinator import TieredCacheCoordinator
from lakelet.cache.keys import DerivedCacheKey, SchemaCacheKey, SnapshotCacheKey, TableCacheKey
from lakelet.cache.level import CacheLevel
from lakelet.cache.lru_cache import LruCache
from lakelet.cache.table_values import TableValues
from lakelet.catalog.metadata_cache.native_keys import key_of, main_key
from lakelet.commit.metadata.pointer_check import FolderSize, confirm
from lakelet.commit.metadata.pointers import (
    SchemaPointer,
    SnapshotPointer,
    newest_schema,
    newest_snapshot,
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
    from lakelet.cache.trace import CacheTrace
    from lakelet.cache.values import SchemaCacheValue

SNAPSHOT = "snapshot"
SCHEMA = "schema"
_ALL_TABLES = 100
# The greatest number of tables of which it is known how many snapshots their folders have.
_ALL_FOLDERS = 10_000
# Estimates of the memory that decoded values take.
_DECODED = 6
_LISTED_BYTES = 700
_INDEX_BYTES = 400
_VECTOR_BYTES = 200


@dataclass(frozen=True, slots=True)
class CachedMetadata:
    """The `MetadataSource` of a lake. `parallel` says that a call of the store is a round trip, so that several are made at once;
    `fresh` that pointers are revalidated at every call, whatever staleness queries are allowed. `trace` takes notes; `compared`
    marks the source that compatibility mode compares the store with; `folders` says how large folders of snapshots are."""

    cache: TieredCacheCoordinator
    parallel: bool = False
    fresh: bool = True
    trace: CacheTrace | None = None
    compared: bool = False
    folders: LruCache[FolderSize] = field(default_factory=LruCache, compare=False, repr=False)

    def for_queries(self) -> MetadataSource:
        """The same source, with pointers as old as the cache's staleness allows."""
        return replace(self, fresh=False)

    def traced(self, trace: CacheTrace) -> CachedMetadata:
        """The same source, which notes what it takes from where."""
        return replace(self, trace=trace)

    def _instead(self, home: TableHome) -> MetadataSource | None:
        """The source that answers in place of the cache: the store for a table that is not served, both in compatibility mode."""
        settings = self.cache.settings
        if settings.enabled and not settings.compares and settings.rollout_percentage >= _ALL_TABLES:
            return None
        if not self.cache.upkeep.serves(key_of(home.paths)):
            return UNCACHED
        if not settings.compares or self.compared:
            return None
        from lakelet.catalog.metadata_cache.compared_source import ComparedMetadata  # noqa: PLC0415 - rarely switched on.

        return ComparedMetadata(replace(self, fresh=True, compared=True))

    # ------------------------------------------------------------------ pointers

    def latest_snapshot(self, home: TableHome) -> Snapshot | None:
        """The newest snapshot, None for a table without any."""
        self._asked(home)
        other = self._instead(home)
        if other is not None:
            return other.latest_snapshot(home)
        found = self.snapshot_pointer(home)
        return None if found is None else found.snapshot

    def latest_schema(self, home: TableHome) -> TableSchema:
        """The newest schema version; NotFoundError where there is no table."""
        other = self._instead(home)
        if other is not None:
            return other.latest_schema(home)
        return self.schema_pointer(home).schema

    def newest(self, home: TableHome) -> tuple[Snapshot | None, TableSchema]:
        """The newest snapshot and a schema that knows every column of its files."""
        self._asked(home)
        other = self._instead(home)
        if other is not None:
            return other.newest(home)
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
        confirmed = confirm(home, snapshot, schema, self.cache.pool, self.folders.get(table))
        if confirmed.folder is not None:
            self.folders.put(table, confirmed.folder, limit=_ALL_FOLDERS)
        found = self.snapshot_pointer(home, right=snapshot if confirmed.snapshot else None)
        # A schema that was looked at beside another snapshot may be older than this one.
        sure = confirmed.schema and found is snapshot
        return found, self.schema_pointer(home, right=schema if sure else None)

    def snapshot_pointer(self, home: TableHome, right: SnapshotPointer | None = None) -> SnapshotPointer | None:
        """The pointer to the newest snapshot; `right` is one that was just revalidated."""
        table = key_of(home.paths)

        checked = []

        def check(known: SnapshotPointer | None) -> SnapshotPointer | None:
            now = known if known is not None and known is right else newest_snapshot(home, known)
            checked.append(now is known)
            return now

        found = self.cache.pointers.current(table, SNAPSHOT, check, derived_bytes, fresh=self.fresh)
        if self.trace is not None:
            self.trace.note("pointer kept" if not checked else "pointer checked" if checked[0] else "pointer changed")
        if found is not None:
            self._keep_snapshot(table, home, found.snapshot)
        return found

    def schema_pointer(self, home: TableHome, right: SchemaPointer | None = None) -> SchemaPointer:
        """The pointer to the newest schema version; `right` is one that was just revalidated."""
        table = key_of(home.paths)

        def check(known: SchemaPointer | None) -> SchemaPointer | None:
            return known if known is not None and known is right else newest_schema(home, known)

        found = self.cache.pointers.current(table, SCHEMA, check, derived_bytes, fresh=self.fresh)
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
        other = self._instead(home)
        if other is not None or newest is None:
            return (other or UNCACHED).schema(home, number)
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
            lambda source: source.manifest_list(home, name),
            derived_bytes,
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
            if self._instead(home) is None:
                key = DerivedCacheKey(main_key(home.paths), ("manifest", name, wanted))
                known = self.cache.tiers[CacheLevel.PARTITION].peek(key)
            if self.trace is not None:
                self.trace.note("manifest read" if known is None else "manifest kept")
            return UNCACHED.manifest(home, name, columns, keep_blocks) if known is None else known
        found: pa.Table = self._load(
            CacheLevel.PARTITION,
            home,
            ("manifest", name, wanted),
            lambda source: source.manifest(home, name, columns),
            derived_bytes,
        )
        return found

    def index_manifest(self, home: TableHome, name: str) -> tuple[IndexManifestEntry, ...]:
        """The index files that an index manifest names."""
        found: tuple[IndexManifestEntry, ...] = self._load(
            CacheLevel.PARTITION,
            home,
            ("index manifest", name),
            lambda source: source.index_manifest(home, name),
            _index_bytes,
        )
        return found

    def kept(self, home: TableHome) -> KeptValues | None:
        """Where values computed from the table's metadata are kept."""
        tier = self.cache.tiers[CacheLevel.PARTITION]
        other = self._instead(home)
        if other is not None:
            return other.kept(home)
        if not tier.limits.max_entries:
            return None
        return TableValues(self.cache, main_key(home.paths), self.trace)

    # ------------------------------------------------------------------ inside

    def _asked(self, home: TableHome) -> None:
        """Count a query; other readers, such as commits, and the caches that they are compared with, are none."""
        if not self.fresh and not self.compared:
            self.cache.upkeep.asked(key_of(home.paths))

    def _load(
        self,
        level: CacheLevel,
        home: TableHome,
        name: tuple[object, ...],
        read: Callable[[MetadataSource], Any],
        weigh: Callable[[Any], int],
    ) -> Any:
        other = self._instead(home)
        if other is not None:
            return read(other)
        made = []

        def make() -> Any:
            made.append(True)
            return read(UNCACHED)

        found = self.cache.tiers[level].load(DerivedCacheKey(main_key(home.paths), name), make, weigh)
        if self.trace is not None and name[0] == "manifest":
            self.trace.note("manifest read" if made else "manifest kept")
        return found

    def _keep_snapshot(self, table: TableCacheKey, home: TableHome, snapshot: Snapshot) -> None:
        tier = self.cache.tiers[CacheLevel.SNAPSHOT]
        key = SnapshotCacheKey(table, snapshot.id, snapshot.delta_manifest_list)
        if tier.get(key) is None:
            from lakelet.catalog.metadata_cache.native_values import snapshot_value  # noqa: PLC0415 - as below.

            value = snapshot_value(home, snapshot)
            tier.put(key, value, value.nbytes)


def derived_bytes(value: SnapshotPointer | SchemaPointer | tuple[ManifestFile, ...] | pa.Table) -> int:
    """The estimated size in memory of a pointer, of a manifest list, or of a manifest's entries."""
    if isinstance(value, (SnapshotPointer, SchemaPointer)):
        return _DECODED * len(value.data)
    if isinstance(value, tuple):
        return _LISTED_BYTES * (len(value) + 1)
    return int(value.nbytes) + _LISTED_BYTES


def _index_bytes(entries: tuple[IndexManifestEntry, ...]) -> int:
    return _INDEX_BYTES + sum(_INDEX_BYTES + _VECTOR_BYTES * len(one.file.deletion_vectors or ()) for one in entries)


def _schema_value(pointer: SchemaPointer) -> SchemaCacheValue:
    from lakelet.catalog.metadata_cache.native_values import schema_value  # noqa: PLC0415 - a lake that is only opened needs no values.

    return schema_value(pointer)
