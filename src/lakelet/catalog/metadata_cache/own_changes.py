"""The listener of a cache: changes that this process makes to tables are seen by its next query, whatever staleness is allowed.

An event only has the pointers of its table checked again; nothing depends on the order in which events of several threads arrive,
or on what they say. A table that was dropped, renamed or replaced leaves the cache altogether.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass

from lakelet.cache.coordinator import TieredCacheCoordinator
from lakelet.cache.invalidation import Invalidation, InvalidationType
from lakelet.cache.keys import TableCacheKey
from lakelet.cache.level import CacheLevel
from lakelet.catalog.metadata_cache.folder_names import is_folder, tables_in
from lakelet.catalog.metadata_cache.native_keys import NATIVE_CATALOG, named_key
from lakelet.catalog.metadata_cache.native_source import SNAPSHOT
from lakelet.commit.metadata.pointers import SnapshotPointer
from lakelet.events import (
    Committed,
    OptionsChanged,
    SchemaChanged,
    TableCreated,
    TableDropped,
    TableEvent,
    TableFormat,
    TableRenamed,
    TableReplaced,
)
from lakelet.format.metadata.snapshot_json import encode_snapshot
from lakelet.options.staleness import STRICT

_OTHER_TABLE = (TableCreated, TableDropped, TableRenamed, TableReplaced)


@dataclass(frozen=True, slots=True)
class OwnChanges:
    """Takes the events of native tables of one warehouse, and of all Iceberg tables. Where the store is remote it `announces` a
    committed snapshot, which then takes one revalidation rather than a search. Caches of other processes
    are told where staleness is allowed. A warehouse that is a folder may have been opened by another name (`folder_names`)."""

    cache: weakref.ref[TieredCacheCoordinator]
    warehouse: str
    announces: bool = False

    def __call__(self, event: TableEvent) -> None:
        """Have the pointers of the event's table checked."""
        cache = self.cache()
        if cache is not None and event.table.format is TableFormat.ICEBERG:
            _iceberg_change(cache, event)
            return
        if cache is None or event.table.format is not TableFormat.NATIVE:
            return
        if cache.settings.staleness != STRICT:
            self._other_names(cache, event)
        if event.table.warehouse == self.warehouse:
            self._change(cache, event)

    def _other_names(self, cache: TieredCacheCoordinator, event: TableEvent) -> None:
        """Have the table checked under all names that it is cached by. Under strict staleness every use checks anyway."""
        if is_folder(self.warehouse) and is_folder(event.table.warehouse):
            folders = [event.table.location, event.new.location if isinstance(event, TableRenamed) else None]
            cached = cache.tiers[CacheLevel.TABLE_METADATA].tables()
            # Also where none is found: a table of which the first check is under way is not cached yet.
            cache.pointers.must_check_tables(tables_in(folders, cached, self.warehouse))

    def _change(self, cache: TieredCacheCoordinator, event: TableEvent) -> None:
        table = named_key(event.table.identifier, event.branch)
        cache.pointers.must_check(table, every_branch=True)
        if isinstance(event, _OTHER_TABLE):
            cache.invalidate(table, InvalidationType.DROP_TABLE)
        elif cache.settings.staleness != STRICT:
            # Who validates by every query needs no word, and would lose what a new snapshot shares with the last one.
            is_schema = isinstance(event, (SchemaChanged, OptionsChanged))
            kind = InvalidationType.ALTER_SCHEMA if is_schema else InvalidationType.DATA_CHANGE
            cache.bus.send(Invalidation(kind, table), cache)
        if isinstance(event, TableRenamed):
            cache.invalidate(named_key(event.new.identifier, event.branch), InvalidationType.DROP_TABLE)
        if self.announces and isinstance(event, Committed) and event.snapshot is not None:
            pointer = SnapshotPointer(event.snapshot, encode_snapshot(event.snapshot))
            cache.pointers.announce(table, SNAPSHOT, pointer, len(pointer.data))


def _iceberg_change(cache: TieredCacheCoordinator, event: TableEvent) -> None:
    names = [event.table.identifier]
    if isinstance(event, TableRenamed):
        names.append(event.new.identifier)
    # Checks that are under way have perhaps looked before the change, also those of tables that are not cached yet.
    cache.pointers.must_check(TableCacheKey(event.table.catalog or "", "", event.table.identifier))
    folded = {name.lower() for name in names}
    for table in cache.tiers[CacheLevel.TABLE_METADATA].tables():
        # Some catalogs do not distinguish the case of names, and the same table may be in another one, too.
        if table.catalog != NATIVE_CATALOG and f"{table.database}.{table.table}".lower() in folded:
            cache.pointers.must_check(table, every_branch=True)
            if isinstance(event, _OTHER_TABLE) and table.catalog == event.table.catalog:
                cache.invalidate(table, InvalidationType.DROP_TABLE)
