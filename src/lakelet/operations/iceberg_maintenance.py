"""Maintenance of Iceberg tables: expiry, orphan files, rewriting of data files and manifests."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.clock import Clock, SystemClock
from lakelet.iceberg.maintenance import data_file_rewrite, expiry, manifest_rewrite, orphans
from lakelet.iceberg.table import IcebergTable
from lakelet.table.time_arguments import Age, past_ms

MAIN = "main"
_MIN_INPUT_FILES = 5


@dataclass(frozen=True, slots=True)
class ExpireIcebergSnapshots:
    """Which snapshots expire: those made before `older_than` except the `retain_last` of each branch, or a single one."""

    older_than: Age | None = None
    retain_last: int | None = None
    snapshot_id: int | None = None


@dataclass(frozen=True, slots=True)
class RemoveIcebergOrphans:
    """Which files are removed: those last changed before `older_than`, by default three days ago."""

    older_than: Age | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class RewriteDataFiles:
    """Which files are rewritten, into which size; a branch's, by default the main one's."""

    where: str | None = None
    target_bytes: int | None = None
    min_input_files: int | None = None
    branch: str | None = None


def expire_iceberg_snapshots(
    table: IcebergTable, request: ExpireIcebergSnapshots, clock: Clock | None = None
) -> expiry.ExpiredSnapshots:
    """Expires snapshots and refs, and removes the files that only they had."""
    return expiry.expire_snapshots(
        table,
        older_than_ms=_past(request.older_than, clock),
        retain_last=request.retain_last,
        snapshot_ids=() if request.snapshot_id is None else (request.snapshot_id,),
    )


def remove_iceberg_orphans(
    table: IcebergTable, request: RemoveIcebergOrphans, clock: Clock | None = None
) -> orphans.RemovedOrphans:
    """Remove files below a table's location that none of its metadata refers to."""
    return orphans.remove_orphan_files(table, older_than_ms=_past(request.older_than, clock), dry_run=request.dry_run)


def rewrite_iceberg_data_files(table: IcebergTable, request: RewriteDataFiles) -> data_file_rewrite.RewrittenFiles:
    """Rewrites small files, files with deletes and files of older specs into files of the target size, as one snapshot."""
    fewest = request.min_input_files
    return data_file_rewrite.rewrite_data_files(
        table,
        target_bytes=request.target_bytes,
        min_input_files=_MIN_INPUT_FILES if fewest is None else fewest,
        where=request.where,
        branch=request.branch or MAIN,
    )


def rewrite_iceberg_manifests(table: IcebergTable, branch: str | None = None) -> manifest_rewrite.RewrittenManifests:
    """Merges the manifests of a branch, as one snapshot."""
    return manifest_rewrite.rewrite_manifests(table, branch=branch or MAIN)


def _past(age: Age | None, clock: Clock | None) -> int | None:
    return None if age is None else past_ms(age, (clock or SystemClock()).now_ms(), "older_than")
