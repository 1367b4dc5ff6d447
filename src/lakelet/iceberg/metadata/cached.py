"""The metadata source of Iceberg tables over the tiered cache.

    level 1   the pointer: the metadata location that the catalog has, with the parsed metadata
    level 2   manifest lists, by their paths           level 4   the live entries of manifests as columns, by their paths,
    level 3   schemas, by id and the table's line                and what plans compute from them

The pointer is asked for at every call, for queries as the staleness demands. All else never changes under its path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestEntry, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import Identifier

from lakelet.cache.coordinator import TieredCacheCoordinator
from lakelet.cache.keys import DerivedCacheKey, SchemaCacheKey, SnapshotCacheKey, TableCacheKey
from lakelet.cache.level import CacheLevel
from lakelet.cache.table_values import TableValues
from lakelet.cache.trace import CacheTrace
from lakelet.iceberg.metadata.cache_values import schema_value, snapshot_value
from lakelet.iceberg.metadata.manifests import STATISTICS, Entries
from lakelet.iceberg.metadata.source import IcebergMetadataSource
from lakelet.iceberg.metadata.table_pointer import TablePointer, checked_pointer
from lakelet.iceberg.metadata.uncached import UNCACHED
from lakelet.storage.metadata_source import KeptValues

METADATA = "metadata location"
MANIFEST = "manifest"
# The memory of a manifest in a list, and of an object.
_LISTED_BYTES = 1500
_OBJECT_BYTES = 700
# How often a table that somebody changes meanwhile is compared again.
_TRIES = 3


@dataclass(frozen=True, slots=True)
class CachedIcebergMetadata:
    """The `IcebergMetadataSource` of a lake. `fresh` says that the pointer is asked for at every call, whatever staleness queries
    are allowed; `key` is the table of which values are asked for. `trace` takes notes."""

    cache: TieredCacheCoordinator
    fresh: bool = True
    key: TableCacheKey | None = None
    trace: CacheTrace | None = None

    def traced(self, trace: CacheTrace) -> IcebergMetadataSource:
        """The same source, which notes what it takes from where."""
        return replace(self, trace=trace)

    def for_queries(self) -> IcebergMetadataSource:
        """The same source, with a pointer as old as the cache's staleness allows."""
        return replace(self, fresh=False)

    def from_store(self) -> IcebergMetadataSource:
        """The source without a cache."""
        return UNCACHED

    def of_table(self, catalog: str, name: Identifier) -> IcebergMetadataSource:
        """The same source for the metadata of one table."""
        if catalog == self.cache.default_catalog:
            # The lake's own tables have the keys of a catalog of that name.
            return UNCACHED
        return replace(self, key=table_key(catalog, name))

    def _answers(self, key: TableCacheKey) -> bool:
        """Whether values are taken from the cache."""
        return self.cache.upkeep.serves(key) and not self.cache.settings.compares

    # ------------------------------------------------------------------ the pointer

    def table(self, catalog: Catalog, name: str | Identifier) -> Table:
        """A table at the metadata location that its catalog has now."""
        if catalog.name == self.cache.default_catalog:
            return UNCACHED.table(catalog, name)
        key = table_key(catalog.name, catalog.identifier_to_tuple(name))
        if not self.fresh:
            self.cache.upkeep.asked(key)
        if not self.cache.upkeep.serves(key):
            return UNCACHED.table(catalog, name)
        if self.cache.settings.compares:
            return self._compared(catalog, name, key)
        pointer, io = self.pointer(catalog, name)
        if io is None and pointer.has_own_credentials:
            # The version may be an older one, its credentials may not.
            io = UNCACHED.table(catalog, name).io
        self._keep_current(pointer, key)
        return pointer.table(io)

    def _compared(self, catalog: Catalog, name: str | Identifier, key: TableCacheKey) -> Table:
        """The table as its catalog has it, in compatibility mode: the cache's pointer is compared with it. All else is known by
        its path, and not taken from the cache."""
        stored = UNCACHED.table(catalog, name)
        for _ in range(_TRIES):
            pointer, _ = replace(self, fresh=True).pointer(catalog, name)
            if pointer.location == stored.metadata_location and pointer.metadata == stored.metadata:
                self.cache.upkeep.differences.same()
                return stored
            again = UNCACHED.table(catalog, name)
            if again.metadata_location == stored.metadata_location:
                said = (pointer.location, stored.metadata_location)
                self.cache.upkeep.differences.different(key, "the metadata location", *said)
                return stored
            stored = again
        return stored

    def pointer(self, catalog: Catalog, name: str | Identifier) -> tuple[TablePointer, FileIO | None]:
        """The pointer, and the access to files that came with it if the catalog was asked."""
        key, pointers = table_key(catalog.name, catalog.identifier_to_tuple(name)), self.cache.pointers
        granted: list[FileIO | None] = [None]
        checked: list[bool] = []

        def check(known: TablePointer | None) -> TablePointer:
            found, granted[0] = checked_pointer(catalog, name, known)
            checked.append(found is known)
            return found

        known: TablePointer | None = pointers.known(key, METADATA)
        if known is not None and known.catalog is not catalog:
            # The catalog was dropped, and another has its name.
            pointers.must_check(key)
        found = pointers.current(key, METADATA, check, lambda one: one.nbytes, fresh=self.fresh)
        assert found is not None
        self._note("pointer kept" if not checked else "pointer checked" if checked[-1] else "pointer changed")
        return found, granted[0]

    def _keep_current(self, pointer: TablePointer, key: TableCacheKey) -> None:
        """Keep the snapshot and the schema that are current, so that their use is counted, too."""
        metadata, tier = pointer.metadata, self.cache.tiers[CacheLevel.SCHEMA]
        schema = SchemaCacheKey(key, metadata.current_schema_id, pointer.schema_line)
        if tier.get(schema) is None:
            value = schema_value(metadata, metadata.schema())
            tier.put(schema, value, value.nbytes)
        snapshot = metadata.current_snapshot()
        if snapshot is not None:
            tier = self.cache.tiers[CacheLevel.SNAPSHOT]
            name = SnapshotCacheKey(key, snapshot.snapshot_id, snapshot.manifest_list)
            if tier.get(name) is None:
                uncounted = snapshot_value(metadata, snapshot)
                tier.put(name, uncounted, uncounted.nbytes)

    # ------------------------------------------------------------------ values

    def metadata(self, io: FileIO, location: str) -> TableMetadata:
        """The parsed metadata file, which hardly anybody reads twice."""
        return UNCACHED.metadata(io, location)

    def manifest_list(self, io: FileIO, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        """The manifests of a snapshot."""
        found: tuple[ManifestFile, ...] = self._load(
            CacheLevel.SNAPSHOT,
            ("manifest list", snapshot.manifest_list),
            lambda: UNCACHED.manifest_list(io, snapshot),
            lambda listed: _LISTED_BYTES * (len(listed) + 1),
        )
        return found

    def manifest(self, io: FileIO, manifest: ManifestFile, statistics: Sequence[int] = ()) -> Entries:
        """The live entries of a manifest as columns."""
        known = self.known_manifest(manifest, statistics)
        if known is not None:
            self._note("manifest kept")
            return known
        self._note("manifest read")
        found: Entries = self._load(
            CacheLevel.PARTITION,
            _manifest_name(manifest, statistics),
            lambda: UNCACHED.manifest(io, manifest, statistics),
            entries_bytes,
        )
        return found

    def known_manifest(self, manifest: ManifestFile, statistics: Sequence[int] = ()) -> Entries | None:
        """The live entries of a manifest that are kept, with more statistics perhaps."""
        if self.key is None or not self._answers(self.key):
            return None
        tier = self.cache.tiers[CacheLevel.PARTITION]
        for wider in {tuple(statistics): None, STATISTICS: None}:
            if set(statistics) <= set(wider):
                found: Entries | None = tier.peek(DerivedCacheKey(self.key, _manifest_name(manifest, wider)))
                if found is not None:
                    tier.count_hit(self.key)
                    return found
        return None

    def manifest_rows(self, io: FileIO, manifest: ManifestFile) -> tuple[ManifestEntry, ...]:
        """The live entries of a manifest as the library's rows, which a commit changes and so has for itself."""
        return UNCACHED.manifest_rows(io, manifest)

    def kept(self) -> KeptValues | None:
        """Where values computed from the table's metadata are kept."""
        if self.key is None or not self._answers(self.key):
            return None
        if not self.cache.tiers[CacheLevel.PARTITION].limits.max_entries:
            return None
        return TableValues(self.cache, self.key, self.trace)

    def _note(self, what: str) -> None:
        if self.trace is not None:
            self.trace.note(what)

    def _load(
        self,
        level: CacheLevel,
        name: tuple[object, ...],
        make: Callable[[], Any],
        weigh: Callable[[Any], int],
    ) -> Any:
        if self.key is None or not self._answers(self.key):
            return make()
        return self.cache.tiers[level].load(DerivedCacheKey(self.key, name), make, weigh)


def table_key(catalog: str, name: Identifier) -> TableCacheKey:
    """The key of a table. All its branches are in one metadata file, so that the key has no branch."""
    return TableCacheKey(catalog, ".".join(name[:-1]), name[-1])


def entries_bytes(entries: Entries) -> int:
    """The memory that the entries of a manifest take."""
    return int(entries.nbytes) + _OBJECT_BYTES


def _manifest_name(manifest: ManifestFile, statistics: Sequence[int]) -> tuple[object, ...]:
    # What entries inherit is in the list that names the manifest.
    inherited = (manifest.sequence_number, manifest.partition_spec_id)
    return (MANIFEST, manifest.manifest_path, inherited, tuple(statistics))
