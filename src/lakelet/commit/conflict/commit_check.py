"""Decide whether a snapshot file that was just created is a commit.

Creating `snapshot-N` only if absent succeeds again once expiry or a rollback has removed an older N. What was created then
is in a gap, or beside the live snapshots, and nobody builds on it. But the check comes after the creation, and another
writer's commits and another tool's expiry may come between, so a missing predecessor alone proves nothing:

    another predecessor than it was made on           no commit: the table was rolled back or recreated, and written since
    no predecessor and no schema                      no commit: the table was dropped
    predecessor there, nothing newer beyond a gap     a commit
    nothing else left                                 a commit: everything older was expired
    something newer that knows our files              a commit: others have built on it
    something newer that does not                     no commit, if our file still exists; if it is deleted, it is unknown
    only older ones beyond a gap                      no commit: the table was rolled back
"""

from __future__ import annotations

import pyarrow.compute as pc

from lakelet.commit.metadata.manifests import live_entries, read_entries, read_manifest_list, snapshot_manifests
from lakelet.commit.metadata.missing_file import SnapshotExpiredError
from lakelet.commit.metadata.snapshots import continues_the_line, try_snapshot
from lakelet.commit.metadata.version_ids import listed_ids
from lakelet.model.manifest import EntryKind
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome


def is_committed(home: TableHome, snapshot: Snapshot, base: Snapshot | None) -> bool | None:
    """Whether the snapshot is a commit on top of `base`; None where that can no longer be determined."""
    before = try_snapshot(home, snapshot.id - 1) if snapshot.id > 1 else None
    if before is not None and (base is None or before.delta_manifest_list != base.delta_manifest_list):
        return False
    if before is None and home.store.head(home.paths.schema(snapshot.schema_id)) is None:
        # The table was dropped, and with it the snapshots that ours was to follow.
        return False
    if (before is not None or snapshot.id == 1) and continues_the_line(home, snapshot.id):
        # The first snapshot has no predecessor to check; its successor shows it.
        second = try_snapshot(home, 2) if snapshot.id == 1 else None
        if second is None or builds_on(home, second, snapshot):
            return True
    others = listed_ids(home) - {snapshot.id}
    if not others:
        return True
    newer = [number for number in sorted(others) if number > snapshot.id]
    for number in newer:
        following = try_snapshot(home, number)
        if following is not None:
            try:
                if builds_on(home, following, snapshot):
                    return True
            except SnapshotExpiredError:
                # Our delta can no longer be read, because either our snapshot or the other one was expired.
                return None
            return False if try_snapshot(home, snapshot.id) is not None else None
    return False


def builds_on(home: TableHome, other: Snapshot, ours: Snapshot) -> bool:
    """Whether another snapshot was made on top of ours: it names our manifests, or its live files contain our changes."""
    delta, manifests = read_manifest_list(home, ours.delta_manifest_list), snapshot_manifests(home, other)
    if {manifest.name for manifest in delta} & {manifest.name for manifest in manifests}:
        return True
    changes = read_entries(home, delta, columns=["_KIND", "_FILE_NAME"])
    is_added = pc.equal(changes.column("_KIND"), int(EntryKind.ADD))
    added = set(changes.filter(is_added).column("_FILE_NAME").to_pylist())
    if added:
        known = read_entries(home, manifests, columns=["_FILE_NAME"])
        return added <= set(known.column("_FILE_NAME").to_pylist())
    live = live_entries(home, manifests, columns=())
    return not set(changes.column("_FILE_NAME").to_pylist()) & set(live.column("_FILE_NAME").to_pylist())
