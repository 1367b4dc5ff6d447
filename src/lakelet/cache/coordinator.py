"""The coordinator of the tiers: loads what is asked for, level by level, and drops what a change invalidates.

    table metadata ─ current snapshot id ─ snapshot ─ schema id ─ schema
                                              └─ partitions, only where they are asked for

Pointers (which snapshot and schema are current) are validated as the staleness demands; everything else is immutable under its
key. A table is named by its `TableCacheKey`; the loader registered for its catalog reads what is not cached.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache as cache_result
from typing import TYPE_CHECKING, TypeAlias, overload

from lakelet.cache.bus import InProcessBus, InvalidationBus
from lakelet.cache.invalidation import (
    Invalidation,
    InvalidationType,
    Scope,
    invalidated_levels,
    scope_of,
)
from lakelet.cache.keys import PartitionCacheKey, SchemaCacheKey, SnapshotCacheKey, TableCacheKey
from lakelet.cache.level import CacheLevel, MetadataLevel
from lakelet.cache.loader import MetadataLoader
from lakelet.cache.pointers import PointerCache
from lakelet.cache.process_fork import reset_in_children
from lakelet.cache.settings import CacheSettings
from lakelet.cache.stats import CacheStats, TableCacheStatus, TieredCacheMetrics
from lakelet.cache.tiers import Tiers
from lakelet.cache.upkeep.background_thread import BackgroundThread
from lakelet.cache.upkeep.upkeep import Upkeep
from lakelet.clock import Clock, SystemClock
from lakelet.errors import NotFoundError
from lakelet.model.near_names import nearest

if TYPE_CHECKING:
    from lakelet.cache.upkeep.alerts import Alert
    from lakelet.cache.values import (
        CompleteTableMetadata,
        PartitionCacheValue,
        SchemaCacheValue,
        SnapshotCacheValue,
        TableMetadataCacheValue,
    )

_LOG = logging.getLogger(__name__)
_END_SECONDS = 5.0
# A key, or `[catalog.]database.table[@branch]`.
TableLike: TypeAlias = TableCacheKey | str


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a refresh found to have changed."""

    snapshot_changed: bool
    schema_changed: bool


class TieredCacheCoordinator:
    """The metadata cache of a lake. Safe to share between threads; in a forked process it starts empty."""

    def __init__(
        self,
        settings: CacheSettings | None = None,
        *,
        clock: Clock | None = None,
        bus: InvalidationBus | None = None,
        default_catalog: str = "lakelet",
    ) -> None:
        self.settings = CacheSettings.of({}) if settings is None else settings
        clock = clock or SystemClock()
        self.tiers = Tiers(self.settings, clock)
        self.pointers = PointerCache(self.tiers[CacheLevel.TABLE_METADATA], clock)
        self.pointers.staleness = self.settings.staleness
        # Weakly, since the upkeep belongs to the cache.
        itself = weakref.ref(self)
        self.upkeep = Upkeep(self.settings, self.tiers, self.pointers, clock, lambda table: _loaded(itself(), table))
        self.default_catalog = default_catalog
        self._loaders: dict[str, Callable[[], MetadataLoader]] = {}
        self._find_loader: Callable[[str], MetadataLoader | None] = lambda _: None
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self.bus: InvalidationBus = bus or InProcessBus()
        self._leave = self.bus.join(self, self._take)
        self._refresher: BackgroundThread | None = None
        self._refresh_in_background()
        reset_in_children(self)

    def register(self, catalog: str, open_loader: Callable[[], MetadataLoader]) -> None:
        """Load tables of a catalog with the loader that this function opens, at its first use."""
        self._loaders[catalog] = cache_result(open_loader)

    def register_others(self, find_loader: Callable[[str], MetadataLoader | None]) -> None:
        """Load tables of catalogs that are not registered with what this function finds for a catalog's name at every use."""
        self._find_loader = find_loader

    def key(self, table: TableLike) -> TableCacheKey:
        """The key of a table."""
        return table if isinstance(table, TableCacheKey) else TableCacheKey.parse(table, self.default_catalog)

    def reset(self) -> None:
        """Start anew in a forked process."""
        self.tiers.reset()
        self.pointers.reset()
        self.upkeep.reset()
        self._lock = threading.Lock()
        self._pool = None
        # The thread stays with the parent.
        self._refresher = None

    def close(self) -> None:
        """Persist what is to be persisted, and give the memory back; whoever goes on using the cache finds it empty."""
        self.stop()
        if self._refresher is not None:
            self._refresher.join(_END_SECONDS)
        self.upkeep.close()
        self.clear()

    def stop(self) -> None:
        """End the background refresh."""
        if self._refresher is not None:
            self._refresher.stop()

    def release(self) -> None:
        """Give the memory back when the lake is gone. The garbage collector may call this inside of any other call of the cache,
        so it waits for no lock."""
        for level in CacheLevel:
            self.tiers[level].release()

    def clear(self) -> None:
        """Drop everything of all tables."""
        self.pointers.must_check_all()
        self.tiers.remove(CacheLevel, lambda _: True)

    def configure(self, settings: CacheSettings) -> None:
        """Other settings from now on; after a change of staleness every pointer is checked again."""
        before, self.settings = self.settings, settings
        self.tiers.resize(settings)
        self.upkeep.configure(settings)
        self._refresh_in_background()
        if before.load_threads != settings.load_threads:
            with self._lock:
                # Whoever has it already may go on using it; it ends when nobody does.
                self._pool = None
        self.pointers.staleness = settings.staleness
        if before.staleness != settings.staleness:
            self.pointers.must_check_all()

    def _refresh_in_background(self) -> None:
        """Start, stop or replace the thread that refreshes all cached tables, as the settings say."""
        seconds = self.settings.refresh_interval.total_seconds()
        before = self._refresher
        if before is not None and before.is_alive and before.seconds == seconds:
            return
        if before is not None:
            before.stop()
        self._refresher = BackgroundThread(self, _refresh_all, seconds) if seconds > 0 else None

    @property
    def pool(self) -> ThreadPoolExecutor:
        """The threads for calls of the store that are made together; none of these waits for another one's."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.settings.load_threads, thread_name_prefix="lakelet-metadata")
            return self._pool

    # ------------------------------------------------------------------ queries

    @overload
    def get_table_metadata(self, table: TableLike, level: None = None) -> TableMetadataCacheValue: ...

    @overload
    def get_table_metadata(self, table: TableLike, level: MetadataLevel) -> CompleteTableMetadata: ...

    def get_table_metadata(
        self, table: TableLike, level: MetadataLevel | None = None
    ) -> TableMetadataCacheValue | CompleteTableMetadata:
        """The current metadata of a table; with a `level`, all levels up to it."""
        table = self.key(table)
        if level is None:
            return self._table_metadata(table)
        return self._complete(table, level)

    def get_current_snapshot(self, table: TableLike) -> SnapshotCacheValue | None:
        """The current snapshot, None for a table without any."""
        table = self.key(table)
        return self._current_snapshot(table, self._table_metadata(table))

    def get_snapshot(self, table: TableLike, snapshot_id: int) -> SnapshotCacheValue:
        """The snapshot that has this id now."""
        table = self.key(table)
        loader, tier = self._loader(table), self.tiers[CacheLevel.SNAPSHOT]
        # A rollback reuses ids: which snapshot it is the loader looks up each time.
        key = SnapshotCacheKey(table, snapshot_id, loader.delta_manifest_list(table, snapshot_id))
        found: SnapshotCacheValue | None = tier.peek(key)
        if found is not None and found.total_data_files is None:
            tier.remove(key)
        loaded: SnapshotCacheValue = tier.load(key, lambda: loader.snapshot(key), lambda value: int(value.nbytes))
        return loaded

    def get_current_schema(self, table: TableLike) -> SchemaCacheValue:
        """The current schema version."""
        table = self.key(table)
        current = self._table_metadata(table)
        return self._schema(SchemaCacheKey(table, current.current_schema_id, current.schema_line))

    def get_schema(self, table: TableLike, schema_id: int) -> SchemaCacheValue:
        """A schema version."""
        table = self.key(table)
        return self._schema(SchemaCacheKey(table, schema_id, self._table_metadata(table).schema_line))

    def get_partitions(self, table: TableLike, snapshot_id: int | None = None) -> PartitionCacheValue | None:
        """The partitions of a snapshot, of the current one unless it is named; None for a table without any."""
        table = self.key(table)
        found = self.get_current_snapshot(table) if snapshot_id is None else self.get_snapshot(table, snapshot_id)
        return None if found is None else self._partitions(table, found)

    def get_partitions_if_present(self, table: TableLike, snapshot_id: int) -> PartitionCacheValue | None:
        """The partitions of a snapshot if they are cached; nothing is loaded."""
        table = self.key(table)
        tier = self.tiers[CacheLevel.PARTITION]
        for key in tier.live_keys(table):
            if isinstance(key, PartitionCacheKey) and key.snapshot_id == snapshot_id:
                found: PartitionCacheValue | None = tier.peek(key)
                return found
        return None

    def get_complete_metadata(self, table: TableLike, include_partitions: bool = False) -> CompleteTableMetadata:
        """All levels of a table's current version, the partitions only if they are asked for."""
        table = self.key(table)
        return self._complete(table, MetadataLevel.PARTITION if include_partitions else MetadataLevel.SCHEMA)

    # ------------------------------------------------------------------ puts

    def put_table_metadata(self, table: TableLike, value: TableMetadataCacheValue) -> None:
        """Cache the metadata of a table; its loader checks it before it is used."""
        table = self.key(table)
        self.tiers[CacheLevel.TABLE_METADATA].put(table, value, value.nbytes)

    def put_snapshot(self, table: TableLike, value: SnapshotCacheValue) -> None:
        """Cache a snapshot."""
        table = self.key(table)
        key = SnapshotCacheKey(table, value.snapshot_id, value.delta_manifest_list)
        self.tiers[CacheLevel.SNAPSHOT].put(key, value, value.nbytes)

    def put_schema(self, table: TableLike, value: SchemaCacheValue, line: str = "") -> None:
        """Cache a schema version."""
        table = self.key(table)
        self.tiers[CacheLevel.SCHEMA].put(SchemaCacheKey(table, value.schema_id, line), value, value.nbytes)

    def is_in_cache(self, table: TableLike, level: CacheLevel) -> bool:
        """Whether anything of a table is cached at this level."""
        table = self.key(table)
        return bool(self.tiers[level].live_keys(table))

    # ------------------------------------------------------------------ invalidation

    def invalidate(self, table: TableLike, kind: InvalidationType) -> None:
        """Drop the levels that a change of this kind invalidates, here and in the caches on the bus."""
        table = self.key(table)
        self._invalidate(Invalidation(kind, table))
        self.bus.send(Invalidation(kind, table), self)

    def invalidate_level(self, table: TableLike, *levels: CacheLevel) -> None:
        """Drop these levels of a table."""
        table = self.key(table)
        self.tiers.remove(levels, lambda other: other == table)
        self.pointers.must_check(table)

    def invalidate_table(self, table: TableLike) -> None:
        """Drop everything of a table, of its branches too."""
        table = self.key(table)
        self.invalidate(table, InvalidationType.DROP_TABLE)

    def invalidate_database(self, catalog: str, database: str) -> None:
        """Drop everything of a database."""
        self.invalidate(TableCacheKey(catalog, database, ""), InvalidationType.DATABASE_REFRESH)

    def invalidate_catalog(self, catalog: str) -> None:
        """Drop everything of a catalog."""
        self.invalidate(TableCacheKey(catalog, "", ""), InvalidationType.CATALOG_REFRESH)

    def on_new_snapshot(self, table: TableLike, new_snapshot_id: int) -> None:
        """Take over a new snapshot: itself, its schema if that is another, and partitions if they were loaded."""
        table = self.key(table)
        self.incremental_update(table, new_snapshot_id)

    def on_schema_change(self, table: TableLike, new_schema_id: int) -> None:
        """Take over a new schema version; the partitions are dropped."""
        table = self.key(table)
        self._invalidate(Invalidation(InvalidationType.ALTER_SCHEMA, table))
        self.get_schema(table, new_schema_id)

    def incremental_update(self, table: TableLike, new_snapshot_id: int) -> None:
        """Load what a new snapshot has changed, and nothing else."""
        table = self.key(table)
        had_partitions = any(
            isinstance(key, PartitionCacheKey) for key in self.tiers[CacheLevel.PARTITION].live_keys(table)
        )
        self.pointers.must_check(table)
        current = self._table_metadata(table)
        snapshot = self._current_snapshot(table, current)
        if snapshot is None or snapshot.snapshot_id != new_snapshot_id:
            # Another change came meanwhile, and what is current now is loaded; the named one is when it is asked for.
            _LOG.debug("%s: snapshot %d was announced, %s is current", table, new_snapshot_id, snapshot)
        if snapshot is None:
            return
        self._schema(SchemaCacheKey(table, snapshot.schema_id, current.schema_line))
        if had_partitions:
            self._partitions(table, snapshot)

    def incremental_load_partitions(
        self, table: TableLike, old_snapshot_id: int, new_snapshot_id: int
    ) -> PartitionCacheValue:
        """The partitions of the new snapshot; of what the old one shares with it nothing is read again."""
        table = self.key(table)
        if self.get_partitions_if_present(table, old_snapshot_id) is None:
            self.get_partitions(table, old_snapshot_id)
        return self._partitions(table, self.get_snapshot(table, new_snapshot_id))

    def refresh_table(self, table: TableLike) -> Refreshed:
        """Look what has changed in a table, and take over just that; NotFoundError, and nothing cached, where it is gone."""
        table = self.key(table)
        before = self._loader(table).last_seen(table)
        self.pointers.must_check(table, every_branch=True)
        try:
            now = self._table_metadata(table, fresh=True)
        except NotFoundError:
            self.invalidate_table(table)
            raise
        if before is None:
            return Refreshed(False, False)
        snapshot = (before.current_snapshot_id, before.delta_manifest_list)
        found = Refreshed(
            snapshot != (now.current_snapshot_id, now.delta_manifest_list), before.schema_line != now.schema_line
        )
        if found.schema_changed:
            self.on_schema_change(table, now.current_schema_id)
        if found.snapshot_changed and now.current_snapshot_id is not None:
            self.on_new_snapshot(table, now.current_snapshot_id)
        return found

    def refresh_tables(self, matches: Callable[[TableCacheKey], bool]) -> int:
        """Refresh the cached tables that match; those that are gone are dropped. The number of tables looked at."""
        tables = [table for table in self.tiers[CacheLevel.TABLE_METADATA].tables() if matches(table)]

        def refresh(table: TableLike) -> None:
            try:
                self.refresh_table(table)
            except NotFoundError:
                return

        # Threads of its own: a refresh waits for calls that run in those of the pool.
        with ThreadPoolExecutor(self.settings.load_threads, thread_name_prefix="lakelet-refresh") as threads:
            list(threads.map(refresh, tables))
        return len(tables)

    def refresh_database(self, catalog: str, database: str) -> int:
        """Refresh the cached tables of a database."""
        return self.refresh_tables(lambda table: (table.catalog, table.database) == (catalog, database))

    def refresh_catalog(self, catalog: str) -> int:
        """Refresh the cached tables of a catalog."""
        return self.refresh_tables(lambda table: table.catalog == catalog)

    # ------------------------------------------------------------------ metrics

    def get_all_metrics(self) -> TieredCacheMetrics:
        """The counts of all levels, and the differences that compatibility mode has found."""
        found = self.upkeep.differences
        return replace(self.tiers.metrics(), comparisons=found.comparisons, differences=found.differences)

    def alerts(self) -> tuple[Alert, ...]:
        """The metrics beyond their thresholds, with the options that help."""
        return self.upkeep.alerts()

    def hottest_tables(self, number: int = 10) -> list[tuple[str, int]]:
        """The tables that queries asked for most often in the last 24 hours, and how often."""
        return [(str(table), count) for table, count in self.upkeep.hottest(number)]

    def persist(self) -> int:
        """Write what was cached since the last time to `cache.persist-folder`, now; how many tables were written."""
        return self.upkeep.save()

    def get_cache_stats(self, level: CacheLevel) -> CacheStats:
        """The counts of one level."""
        return self.tiers[level].stats()

    def get_table_cache_status(self, table: TableLike) -> TableCacheStatus:
        """What is cached of a table."""
        table = self.key(table)
        known = self._loader(table).last_seen(table)
        snapshot_id = None if known is None else known.current_snapshot_id
        return self.tiers.status(table, snapshot_id, None if known is None else known.current_schema_id)

    # ------------------------------------------------------------------ inside

    def _loader(self, table: TableCacheKey) -> MetadataLoader:
        open_loader = self._loaders.get(table.catalog)
        found = self._find_loader(table.catalog) if open_loader is None else open_loader()
        if found is None:
            raise NotFoundError(f"catalog {table.catalog!r} is not cached{nearest(table.catalog, self._loaders)}")
        return found

    def _table_metadata(self, table: TableCacheKey, *, fresh: bool = False) -> TableMetadataCacheValue:
        tier = self.tiers[CacheLevel.TABLE_METADATA]
        known: TableMetadataCacheValue | None = tier.peek(table)
        found = self._loader(table).table_metadata(table, known, fresh=fresh)
        if found is not known:
            tier.put(table, found, found.nbytes)
        return found

    def _current_snapshot(self, table: TableCacheKey, current: TableMetadataCacheValue) -> SnapshotCacheValue | None:
        if current.current_snapshot_id is None:
            return None
        tier = self.tiers[CacheLevel.SNAPSHOT]
        key = SnapshotCacheKey(table, current.current_snapshot_id, current.delta_manifest_list)
        found: SnapshotCacheValue | None = tier.peek(key)
        if found is not None and found.total_data_files is None:
            tier.remove(key)
        loader = self._loader(table)
        loaded: SnapshotCacheValue = tier.load(key, lambda: loader.snapshot(key), lambda value: int(value.nbytes))
        return loaded

    def _schema(self, key: SchemaCacheKey) -> SchemaCacheValue:
        loader = self._loader(key.table)
        found: SchemaCacheValue = self.tiers[CacheLevel.SCHEMA].load(
            key, lambda: loader.schema(key), lambda value: int(value.nbytes)
        )
        return found

    def _partitions(self, table: TableCacheKey, snapshot: SnapshotCacheValue) -> PartitionCacheValue:
        loader = self._loader(table)
        key = PartitionCacheKey(table, snapshot.snapshot_id, snapshot.delta_manifest_list)
        found: PartitionCacheValue = self.tiers[CacheLevel.PARTITION].load(
            key, lambda: loader.partitions(table, snapshot), lambda value: int(value.nbytes)
        )
        return found

    def _complete(self, table: TableCacheKey, level: MetadataLevel) -> CompleteTableMetadata:
        from lakelet.cache.values import CompleteTableMetadata  # noqa: PLC0415 - a lake that is only opened needs no values.

        current = self._table_metadata(table)
        snapshot = self._current_snapshot(table, current) if level.value >= MetadataLevel.SNAPSHOT.value else None
        schema = None
        if level.value >= MetadataLevel.SCHEMA.value:
            schema = self._schema(SchemaCacheKey(table, current.current_schema_id, current.schema_line))
        partitions = None
        if level is MetadataLevel.PARTITION and snapshot is not None:
            partitions = self._partitions(table, snapshot)
        return CompleteTableMetadata(current, snapshot, schema, partitions)

    def _take(self, invalidation: Invalidation) -> None:
        """Apply an invalidation that another cache has sent."""
        self._invalidate(invalidation)

    def _invalidate(self, invalidation: Invalidation) -> None:
        matches = _covered(invalidation)
        # The pointers come first: nobody finds a dropped level and an unchecked pointer to it.
        if scope_of(invalidation.kind) is Scope.TABLE:
            self.pointers.must_check(invalidation.table, every_branch=True)
        else:
            self.pointers.must_check_all()
        self.tiers.remove(invalidated_levels(invalidation.kind), matches)
        if invalidation.kind is InvalidationType.DROP_TABLE:
            self.upkeep.invalidated(invalidation.table)
        elif scope_of(invalidation.kind) is not Scope.TABLE:
            self.upkeep.invalidated(None)


def _refresh_all(cache: TieredCacheCoordinator) -> None:
    cache.refresh_tables(lambda _: True)
    cache.upkeep.look()


def _loaded(cache: TieredCacheCoordinator | None, table: TableCacheKey) -> None:
    if cache is not None:
        cache.get_complete_metadata(table)


def _covered(invalidation: Invalidation) -> Callable[[TableCacheKey], bool]:
    """Which tables an invalidation covers. A dropped table takes its branches with it."""
    named = invalidation.table
    scope = scope_of(invalidation.kind)
    if scope is Scope.CATALOG:
        return lambda table: table.catalog == named.catalog
    if scope is Scope.DATABASE:
        return lambda table: (table.catalog, table.database) == (named.catalog, named.database)
    if invalidation.kind is InvalidationType.DROP_TABLE:
        return lambda table: table.on_branch(named.branch) == named
    return lambda table: table == named
