"""Expire snapshots: remove them from the metadata in one request, then delete the files that no remaining snapshot has.

A crash in between leaves files that the removal of orphans finds, and never a snapshot without its files. The request requires
every branch and tag to be where it was read, so that one that moved meanwhile makes it be recomputed. The files to delete are
computed from the metadata after the request.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pyiceberg.table import TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePartitionStatisticsUpdate,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    TableRequirement,
    TableUpdate,
)

from lakelet.clock import Clock, SystemClock
from lakelet.errors import InvalidError
from lakelet.iceberg.catalog.library_errors import lakelet_errors
from lakelet.iceberg.commit.metadata_changes import Request, change_metadata
from lakelet.iceberg.commit.removal import remove_paths
from lakelet.iceberg.commit.table_settings import flag_property, number_property
from lakelet.iceberg.maintenance.reachable import files_of, manifests_of
from lakelet.iceberg.maintenance.retention import Expired, HistoryRef, HistorySnapshot, Limits, expired
from lakelet.iceberg.table import IcebergTable

_GC_ENABLED = "gc.enabled"
_MAX_REF_AGE = "history.expire.max-ref-age-ms"


@dataclass(frozen=True, slots=True)
class ExpiredSnapshots:
    """What an expiry did."""

    snapshots: tuple[int, ...]
    refs: tuple[str, ...]
    removed_files: int
    removed_manifests: int
    removed_manifest_lists: int
    removed_statistics: int


def expire_snapshots(
    table: IcebergTable,
    *,
    older_than_ms: int | None = None,
    retain_last: int | None = None,
    snapshot_ids: Collection[int] = (),
    clock: Clock | None = None,
) -> ExpiredSnapshots:
    """Expires snapshots that are older than given, by default than the table's properties say, or chosen by id alone."""
    time_ms = (clock or SystemClock()).now_ms()
    over = Expired((), ())

    def request(now: IcebergTable) -> Request | None:
        nonlocal over
        check_files_may_go(now)
        over = _expired(now, older_than_ms, retain_last, snapshot_ids, time_ms)
        return (_requirements(now), _updates(now, over)) if over.snapshots or over.refs else None

    before = change_metadata(table, request, clock=clock)
    if before is None:
        return ExpiredSnapshots((), (), 0, 0, 0, 0)
    with lakelet_errors(f"table {table.full_name}"):
        return _remove_files(before.metadata, before.reloaded(), over)


def check_files_may_go(table: IcebergTable) -> None:
    """InvalidError where the table may share its files with another."""
    if not flag_property(table.metadata.properties, _GC_ENABLED, True):
        raise InvalidError(
            f"table {table.full_name} has '{_GC_ENABLED}' = 'false': its files may be those of another table too"
        )


def _expired(
    now: IcebergTable, older_than_ms: int | None, retain_last: int | None, chosen: Collection[int], time_ms: int
) -> Expired:
    metadata = now.metadata
    properties = metadata.properties
    if retain_last is not None and retain_last < 1:
        raise InvalidError(f"retain_last: expected a number from 1 on, found {retain_last}")
    age = number_property(
        properties, TableProperties.MAX_SNAPSHOT_AGE_MS, TableProperties.MAX_SNAPSHOT_AGE_MS_DEFAULT, least=0
    )
    fewest = number_property(
        properties, TableProperties.MIN_SNAPSHOTS_TO_KEEP, TableProperties.MIN_SNAPSHOTS_TO_KEEP_DEFAULT, least=1
    )
    forever = number_property(properties, _MAX_REF_AGE, -1, least=1)
    # Chosen by id means these alone, however old anything else is.
    alone = bool(chosen) and older_than_ms is None
    if older_than_ms is None:
        older_than_ms = 0 if alone else time_ms - age
    limits = Limits(older_than_ms, retain_last or fewest, None if forever < 0 or chosen else forever)
    snapshots = [
        HistorySnapshot(one.snapshot_id, one.parent_snapshot_id, one.timestamp_ms) for one in metadata.snapshots
    ]
    refs = [
        HistoryRef(
            name,
            ref.snapshot_id,
            ref.snapshot_ref_type == SnapshotRefType.BRANCH,
            None if alone else ref.min_snapshots_to_keep,
            None if alone else ref.max_snapshot_age_ms,
            None if alone else ref.max_ref_age_ms,
        )
        for name, ref in metadata.refs.items()
    ]
    return expired(snapshots, refs, limits, time_ms, chosen)


def _requirements(now: IcebergTable) -> tuple[TableRequirement, ...]:
    return (
        AssertTableUUID(uuid=now.metadata.table_uuid),
        *(
            AssertRefSnapshotId.model_validate({"ref": name, "snapshot-id": ref.snapshot_id})
            for name, ref in now.metadata.refs.items()
        ),
    )


def _updates(now: IcebergTable, over: Expired) -> tuple[TableUpdate, ...]:
    gone = set(over.snapshots)
    updates: list[TableUpdate] = [RemoveSnapshotRefUpdate.model_validate({"ref-name": name}) for name in over.refs]
    updates += [
        RemovePartitionStatisticsUpdate.model_validate({"snapshot-id": one.snapshot_id})
        for one in now.metadata.partition_statistics
        if one.snapshot_id in gone
    ]
    if over.snapshots:
        updates.append(RemoveSnapshotsUpdate.model_validate({"snapshot-ids": list(over.snapshots)}))
    return tuple(updates)


def _remove_files(before: TableMetadata, after: IcebergTable, over: Expired) -> ExpiredSnapshots:
    # Nothing is removed on the word of a manifest that a cache holds and the store has lost.
    source, io, left = after.source.from_store(), after.library.io, after.metadata.snapshots
    lists = {one.manifest_list for one in left}
    remaining = {one.snapshot_id for one in left}
    gone = [one for one in before.snapshots if one.snapshot_id in set(over.snapshots) - remaining]
    kept = manifests_of(source, io, left)
    manifests = {path: one for path, one in manifests_of(source, io, gone).items() if path not in kept}
    files = files_of(source, io, manifests.values())
    if files:
        files -= files_of(source, io, kept.values())
    had = {one.statistics_path for one in (*before.statistics, *before.partition_statistics)}
    has = {one.statistics_path for one in (*after.metadata.statistics, *after.metadata.partition_statistics)}
    # A file is deleted before the manifest that names it, so that after a crash in between the rest can still be found.
    return ExpiredSnapshots(
        tuple(one.snapshot_id for one in gone),
        over.refs,
        remove_paths(io, sorted(files)),
        remove_paths(io, sorted(manifests)),
        remove_paths(io, sorted({one.manifest_list for one in gone} - lists)),
        remove_paths(io, sorted(had - has)),
    )
