"""The listener of a cache: changes that this process makes to tables are seen by its next query, whatever staleness is allowed.

An event only has the pointers of its table checked again; nothing depends on the order in which events of several threads arrive,
or on what they say. A table that was dropped, renamed or replaced leaves the cache altogether.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass

from lakelet.cache.coordinator import TieredCacheCoordinator
from lakelet.cache.invalidation import InvalidationType
from lakelet.catalog.metadata_cache.native_keys import named_key
from lakelet.catalog.metadata_cache.native_source import SNAPSHOT
from lakelet.commit.metadata.pointers import SnapshotPointer
from lakelet.events import (
    Committed,
    TableCreated,
    TableDropped,
    TableEvent,
    TableFormat,
    TableRenamed,
    TableReplaced,
)
from lakelet.format.metadata.snapshot_json import encode_snapshot

_OTHER_TABLE = (TableCreated, TableDropped, TableRenamed, TableReplaced)


@dataclass(frozen=True, slots=True)
class OwnChanges:
    """Takes the events of native tables of one warehouse. Where the store is remote it `announces` a committed snapshot, which
    then takes one revalidation rather than a search."""

    cache: weakref.ref[TieredCacheCoordinator]
    warehouse: str
    announces: bool = False

    def __call__(self, event: TableEvent) -> None:
        """Have the pointers of the event's table checked."""
        cache = self.cache()
        if cache is None or event.table.format is not TableFormat.NATIVE or event.table.warehouse != self.warehouse:
            return
        table = named_key(event.table.identifier, event.branch)
        cache.pointers.must_check(table, every_branch=True)
        if isinstance(event, _OTHER_TABLE):
            cache.invalidate(table, InvalidationType.DROP_TABLE)
        if isinstance(event, TableRenamed):
            cache.invalidate(named_key(event.new.identifier, event.branch), InvalidationType.DROP_TABLE)
        if self.announces and isinstance(event, Committed) and event.snapshot is not None:
            pointer = SnapshotPointer(event.snapshot, encode_snapshot(event.snapshot))
            cache.pointers.announce(table, SNAPSHOT, pointer, len(pointer.data))
