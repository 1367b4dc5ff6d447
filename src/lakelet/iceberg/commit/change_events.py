"""Derive the events of a committed change from the updates that were sent to the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    RemovePropertiesUpdate,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableUpdate,
)

from lakelet.events import (
    BranchCreated,
    BranchDeleted,
    Committed,
    FastForwarded,
    OptionsChanged,
    RolledBack,
    SchemaChanged,
    SnapshotsExpired,
    StateUnknown,
    TableEvent,
    TableName,
    TagCreated,
    TagDeleted,
    TagReplaced,
    publish,
)
from lakelet.iceberg.table import IcebergTable

# Updates of statistics are no change of the table.
_UNTOLD = frozenset({"set-statistics", "remove-statistics", "set-partition-statistics", "remove-partition-statistics"})


def publish_change(before: IcebergTable, after: TableMetadata, updates: Iterable[TableUpdate]) -> None:
    """Publishes the events of committed updates; `after` is the resulting metadata, or newer."""
    for event in change_events(before.table_name, before.metadata, after, list(updates)):
        publish(event)


def publish_unknown(table: IcebergTable, operation: str, branch: str = MAIN_BRANCH) -> None:
    """Publishes that a table may have changed."""
    publish(StateUnknown(table.table_name, branch, operation))


def change_events(
    name: TableName, before: TableMetadata, after: TableMetadata, updates: list[TableUpdate]
) -> Iterator[TableEvent]:
    """One event for each ref that moves, and one each for expiry, for the schema and for properties."""
    added = {one.snapshot.snapshot_id: one.snapshot for one in updates if isinstance(one, AddSnapshotUpdate)}
    for one in updates:
        if isinstance(one, SetSnapshotRefUpdate):
            snapshot = added.get(one.snapshot_id)
            if snapshot is None:
                yield _moved(name, before, one)
            else:
                operation = "" if snapshot.summary is None else snapshot.summary.operation.value
                yield Committed(name, one.ref_name, snapshot.snapshot_id, operation)
        elif isinstance(one, RemoveSnapshotRefUpdate):
            ref = before.refs.get(one.ref_name)
            if ref is not None and ref.snapshot_ref_type == SnapshotRefType.TAG:
                yield TagDeleted(name, MAIN_BRANCH, one.ref_name)
            else:
                yield BranchDeleted(name, one.ref_name)
    gone = tuple(number for one in updates if isinstance(one, RemoveSnapshotsUpdate) for number in one.snapshot_ids)
    if gone:
        yield SnapshotsExpired(name, MAIN_BRANCH, gone)
    properties = [one for one in updates if isinstance(one, SetPropertiesUpdate | RemovePropertiesUpdate)]
    told = (AddSnapshotUpdate, RemoveSnapshotRefUpdate, RemoveSnapshotsUpdate, SetSnapshotRefUpdate)
    others = [
        one for one in updates if one not in properties and not isinstance(one, told) and one.action not in _UNTOLD
    ]
    if others:
        yield SchemaChanged(name, MAIN_BRANCH, after.current_schema_id)
    elif properties:
        yield OptionsChanged(name, MAIN_BRANCH, after.current_schema_id)


def _moved(name: TableName, before: TableMetadata, update: SetSnapshotRefUpdate) -> TableEvent:
    """The event of a ref that is created, or moved to another existing snapshot."""
    old, number = before.refs.get(update.ref_name), update.snapshot_id
    if update.type == SnapshotRefType.TAG.value:
        kind = TagCreated if old is None else TagReplaced
        return kind(name, MAIN_BRANCH, update.ref_name, number)
    if old is None:
        return BranchCreated(name, update.ref_name, number)
    parents = {one.snapshot_id: one.parent_snapshot_id for one in before.snapshots}
    at: int | None = old.snapshot_id
    while at is not None and at != number:
        at = parents.get(at)
    if at == number:
        return RolledBack(name, update.ref_name, number)
    source = next((ref for ref, one in before.refs.items() if one.snapshot_id == number), "")
    return FastForwarded(name, update.ref_name, source, number)
