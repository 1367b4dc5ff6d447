"""The versions whose changes are known: the snapshots, and the long-lived changelogs of those that have expired.

    changelog/changelog-3, -4, -5     snapshot/snapshot-6, -7, -8
    └ changes alone                   └ rows and changes

Expiry writes a changelog before it deletes the snapshot, so that a version that is looked for as a snapshot first and as a
changelog second is found at any moment of it. Changelogs are read from the store: an expiry or a rollback may remove them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from lakelet.clock import shown_time
from lakelet.commit.metadata.snapshots import try_snapshot
from lakelet.commit.metadata.stored import stored_snapshots
from lakelet.commit.metadata.version_ids import changelog_ids, snapshot_ids
from lakelet.errors import NotFoundError
from lakelet.model.snapshot import Changelog, CommitKind, Snapshot
from lakelet.storage.home import TableHome


class ExpiredChangesError(NotFoundError):
    """The changes that are asked for have expired, or those after a stream's position."""


@dataclass(frozen=True, slots=True)
class ExpiredVersion:
    """A version of which neither rows nor changes are left."""

    id: int


Before: TypeAlias = Snapshot | ExpiredVersion | None
"""The version before some changes: None before the first."""


def is_expired(version: Before) -> bool:
    """Whether the rows of a version are gone."""
    return isinstance(version, (Changelog, ExpiredVersion))


def tells_itself(snapshot: Snapshot, *, keyed: bool) -> bool:
    """Whether the changes of a snapshot are known without the one before it: by its changelog, or as rows that it appended."""
    if keyed:
        return snapshot.changelog_manifest_list is not None
    return snapshot.commit_kind is CommitKind.APPEND


def version_before(home: TableHome, number: int) -> Before:
    """The version of that id, before some changes; one that is not there has expired if any later one is."""
    if number == 0:
        return None
    found = try_told(home, number)
    if found is not None:
        return found
    if try_told(home, number + 1) is None:
        return read_told(home, number)
    return ExpiredVersion(number)


def try_told(home: TableHome, number: int) -> Snapshot | None:
    """The snapshot of that id, or the changelog that it has left, or None."""
    found = try_snapshot(home, number)
    if found is not None:
        return found
    left = stored_snapshots(home, [home.paths.changelog(number)])
    return Changelog.of(left[0]) if left else None


def read_told(home: TableHome, number: int) -> Snapshot:
    """The snapshot of that id, or the changelog that it has left; NotFoundError with the ids that exist."""
    found = try_told(home, number)
    if found is not None:
        return found
    raise NotFoundError(f"snapshot {number} is not in {home.where(home.paths.snapshot_folder)}: {told_ids_shown(home)}")


def told_ids_shown(home: TableHome) -> str:
    """The ids that exist, as errors name them."""
    ids = snapshot_ids(home)
    if not ids:
        return "the table has no snapshot"
    known = told_ids(home)
    more = f", and changelogs from {known[0]} on" if known[0] < ids[0] else ""
    return f"snapshots {ids[0]} to {ids[-1]} exist{more}"


def told_ids(home: TableHome) -> range:
    """The ids of the live snapshots, and of the changelogs in front of them without a gap."""
    ids = snapshot_ids(home)
    if not ids or ids[0] == 1:
        return ids
    numbers = changelog_ids(home)
    first = ids[0]
    while first - 1 in numbers:
        first -= 1
    return range(first, ids[-1] + 1)


def told_at(home: TableHome, time_ms: int) -> Snapshot:
    """The newest version made at or before `time_ms`."""
    ids = told_ids(home)
    low, high = 0, len(ids)
    while low < high:
        middle = (low + high) // 2
        if read_told(home, ids[middle]).time_ms <= time_ms:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        oldest = (
            f"the oldest snapshot, {ids[0]}, was made at {shown_time(read_told(home, ids[0]).time_ms)}"
            if ids
            else "it has none"
        )
        raise NotFoundError(
            f"no snapshot of {home.where(home.paths.branch_root)} was made at or before {shown_time(time_ms)}: {oldest}"
        )
    return read_told(home, ids[low - 1])
