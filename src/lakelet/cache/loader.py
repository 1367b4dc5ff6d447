"""The loader of a catalog's metadata: what the cache asks when it has no answer. It knows the format of the tables; the cache
does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from lakelet.cache.keys import SchemaCacheKey, SnapshotCacheKey, TableCacheKey

if TYPE_CHECKING:
    from lakelet.cache.values import (
        PartitionCacheValue,
        SchemaCacheValue,
        SnapshotCacheValue,
        TableMetadataCacheValue,
    )


class MetadataLoader(Protocol):
    """Loads the metadata of the tables of one catalog. What is not there is NotFoundError."""

    def table_metadata(
        self, table: TableCacheKey, known: TableMetadataCacheValue | None, *, fresh: bool
    ) -> TableMetadataCacheValue:
        """The current metadata: `known` itself where nothing has changed. With `fresh` it is checked now, whatever staleness
        is allowed."""
        ...

    def last_seen(self, table: TableCacheKey) -> TableMetadataCacheValue | None:
        """The metadata as it was last found, without looking whether it still is; None where it never was."""
        ...

    def delta_manifest_list(self, table: TableCacheKey, snapshot_id: int) -> str:
        """The delta manifest list of the snapshot that has this id now, which together with the id identifies it."""
        ...

    def snapshot(self, key: SnapshotCacheKey) -> SnapshotCacheValue:
        """A snapshot with its totals."""
        ...

    def schema(self, key: SchemaCacheKey) -> SchemaCacheValue:
        """A schema version."""
        ...

    def partitions(self, table: TableCacheKey, snapshot: SnapshotCacheValue) -> PartitionCacheValue:
        """The partitions of a snapshot; only metadata that was not read before is read."""
        ...
