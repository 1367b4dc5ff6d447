"""Rewrite the manifests of a branch clustered by partition, so that a plan by partition reads few of them."""

from __future__ import annotations

from dataclasses import dataclass

from pyiceberg.table.snapshots import Operation, Snapshot

from lakelet.clock import Clock, SystemClock
from lakelet.iceberg.commit.attempts import MadeSnapshot, SnapshotCommit
from lakelet.iceberg.commit.change import Change
from lakelet.iceberg.commit.snapshot.live_files import LiveFiles
from lakelet.iceberg.table import IcebergTable
from lakelet.ids import Ids, RandomIds


@dataclass(frozen=True, slots=True)
class RewrittenManifests:
    """What a rewrite did; the snapshot is None where there was nothing to do."""

    snapshot: MadeSnapshot | None
    manifests: int


def rewrite_manifests(
    table: IcebergTable, *, branch: str = "main", ids: Ids | None = None, clock: Clock | None = None
) -> RewrittenManifests:
    """Rewrites all manifests of a branch into as few as their target size allows, as one snapshot. Where there is only one
    manifest of a spec and content, it is kept."""
    ids = ids or RandomIds()
    job = ids.uuid()
    commit = SnapshotCommit(branch=branch, commit_id=job, job=job, ids=ids, clock=clock or SystemClock())
    chosen: tuple[str, ...] = ()

    def plan(now: IcebergTable, head: Snapshot | None, live: LiveFiles) -> Change | None:
        nonlocal chosen
        kinds: dict[tuple[int, int], list[str]] = {}
        for manifest in live.manifests(head):
            kinds.setdefault((manifest.partition_spec_id, manifest.content), []).append(manifest.manifest_path)
        chosen = tuple(path for paths in kinds.values() if len(paths) > 1 for path in paths)
        return Change(Operation.REPLACE, rewritten_manifests=chosen) if chosen else None

    made = commit.run(table, plan)
    return RewrittenManifests(made, len(chosen) if made is not None else 0)
