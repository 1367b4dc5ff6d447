"""Resolve the snapshot that a scan reads, and its schema.

nothing            the newest of main      the table's schema
ref, a branch      its newest              the table's schema, as for writes to a branch
ref, a tag         the one it names        the schema that the snapshot was written with
snapshot_id        that one                likewise
timestamp_ms       the current one then    likewise; of a branch, where one is named too
"""

from __future__ import annotations

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Snapshot

from lakelet.clock import shown_time
from lakelet.errors import InvalidError, NotFoundError
from lakelet.iceberg.table import IcebergTable

MAIN = "main"


def version_of(
    table: IcebergTable, *, snapshot_id: int | None = None, ref: str | None = None, timestamp_ms: int | None = None
) -> tuple[Snapshot | None, Schema]:
    """The snapshot, None for a table without any, and the schema; NotFoundError where there is no such snapshot."""
    metadata = table.metadata
    if snapshot_id is not None and timestamp_ms is not None:
        raise InvalidError(f"table {table.full_name}: expected a snapshot or a moment, found both")
    if snapshot_id is not None:
        found = metadata.snapshot_by_id(snapshot_id)
        if found is None:
            raise NotFoundError(f"table {table.full_name} has no snapshot {snapshot_id}; it may have been expired")
        return found, _schema_of(metadata, found)
    if timestamp_ms is not None:
        found = _as_of(table, ref, timestamp_ms)
        return found, _schema_of(metadata, found)
    if ref is None or ref == MAIN:
        return metadata.current_snapshot(), metadata.schema()
    return _at_ref(table, ref)


def _at_ref(table: IcebergTable, ref: str) -> tuple[Snapshot, Schema]:
    metadata = table.metadata
    named = metadata.refs.get(ref)
    found = None if named is None else metadata.snapshot_by_id(named.snapshot_id)
    if named is None or found is None:
        there = ", ".join(sorted(metadata.refs)) or "none"
        raise NotFoundError(f"table {table.full_name} has no branch or tag {ref!r}; there are {there}")
    is_tag = named.snapshot_ref_type == SnapshotRefType.TAG
    return found, _schema_of(metadata, found) if is_tag else metadata.schema()


def _as_of(table: IcebergTable, ref: str | None, timestamp_ms: int) -> Snapshot:
    """The snapshot that was the current one of main at a time, by the table's log; of a branch, by its ancestors."""
    metadata = table.metadata
    if ref is None or ref == MAIN:
        then = [entry for entry in metadata.snapshot_log if entry.timestamp_ms <= timestamp_ms]
        found = metadata.snapshot_by_id(then[-1].snapshot_id) if then else None
    else:
        head, _ = _at_ref(table, ref)
        line: Snapshot | None = head
        while line is not None and line.timestamp_ms > timestamp_ms:
            line = None if line.parent_snapshot_id is None else metadata.snapshot_by_id(line.parent_snapshot_id)
        found = line
    if found is None:
        raise NotFoundError(
            f"table {table.full_name} has no snapshot that is as old as {shown_time(timestamp_ms)}; it may have been expired"
        )
    return found


def _schema_of(metadata: TableMetadata, snapshot: Snapshot) -> Schema:
    # Snapshots of old tables do not say which schema was the current one.
    if snapshot.schema_id is None:
        return metadata.schema()
    return next((one for one in metadata.schemas if one.schema_id == snapshot.schema_id), metadata.schema())
