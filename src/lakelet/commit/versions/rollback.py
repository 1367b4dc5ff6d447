"""Rollback: make an older version the newest, and delete the snapshots after it.

    [hold the version by a tag] ─ [put snapshot-T back, if only a tag keeps it] ─ LATEST
      ─ delete newer snapshots, newest first ─ LATEST ─ changelogs ─ tags of later versions

Newest first, so that the live snapshots stay one line, and every step leaves a table that is at a version it once had. The
target snapshot is put back before any other is deleted: the table is never without one, which writers would take for new.
Engines that trust LATEST must not find it point to nothing, so it is written before and, since a commit may have written
it meanwhile, after.

Concurrent commits are allowed. One on top of a deleted snapshot is in a gap: its writer detects that and commits anew, or was
done before, and then it is deleted like all the others. One on top of the target is after the rollback, and stays.
Concurrent expiry is allowed too: a version that no tag keeps gets one for as long as the rollback takes.

Data files and manifests stay where they are, for running readers and for writers that commit once more; orphan
removal deletes them after its safety age. Tags of deleted versions are deleted, as are their long-lived changelogs.
"""

from __future__ import annotations

from lakelet.commit.conflict.commit_check import builds_on
from lakelet.commit.metadata.snapshots import try_snapshot, write_latest_hint
from lakelet.commit.metadata.stored import Version
from lakelet.commit.metadata.version_ids import listed_ids, snapshot_ids
from lakelet.commit.versions.tags import all_tags, delete_tag_files, hold_by_tag, put_new, same_snapshot
from lakelet.errors import ConflictError
from lakelet.events import RolledBack, publish, uncertain
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome

_CHANGELOG = "changelog-"
_ROUNDS = 100


def roll_back(home: TableHome, version: Version, *, tag: str | None = None) -> Snapshot:
    """Make a version of the table its newest one; `tag` names a tag that keeps it, if one does."""
    with uncertain(home.table_name, home.paths.branch, "rollback"):
        found = take_back(home, version, tag=tag)
    publish(RolledBack(home.table_name, home.paths.branch, found.id))
    return found


def take_back(home: TableHome, version: Version, *, tag: str | None = None) -> Snapshot:
    """The steps of a rollback, without an event."""
    target = version.snapshot.id
    guard = None if tag is not None else f"lakelet-rollback-to-{target}"
    if guard is not None:
        hold_by_tag(home, guard, version)
    _put_back(home, version)
    write_latest_hint(home, target)
    drop_newer(home, target)
    _put_back(home, version)
    write_latest_hint(home, target)
    home.store.put(home.paths.earliest_hint, str(snapshot_ids(home)[0]).encode())
    _drop_changelogs(home, target)
    later = [found.name for found in all_tags(home) if found.snapshot_id > target]
    delete_tag_files(home, [*later, *([] if guard is None else [guard])])
    return version.snapshot


def drop_newer(home: TableHome, target: int) -> None:
    """Delete the snapshots after `target`, newest first, and those that were committed on top of them meanwhile."""
    doomed = {number for number in listed_ids(home) if number > target}
    for _ in range(_ROUNDS):
        for number in sorted(doomed, reverse=True):
            home.store.delete([home.paths.snapshot(number)])
        newer = {number for number in listed_ids(home) if number > target}
        if not newer:
            return
        end = _end_of_line(home, target)
        doomed = {number for number in newer if number > end}
        if not doomed:
            return
    raise ConflictError(
        f"{home.where(home.paths.snapshot_folder)}: writers kept committing while snapshots after {target} were deleted; "
        "try again, every version that is there is whole"
    )


def _end_of_line(home: TableHome, target: int) -> int:
    """The id of the last snapshot that was committed on top of `target`, directly or not."""
    end, last = target, try_snapshot(home, target)
    while last is not None:
        following = try_snapshot(home, end + 1)
        # One of that id may have been made on a snapshot that is deleted by now, and be about to be withdrawn.
        if following is None or not builds_on(home, following, last):
            break
        end, last = end + 1, following
    return end


def _put_back(home: TableHome, version: Version) -> None:
    """Recreate the snapshot file where only a tag keeps the version."""
    number = version.snapshot.id
    if not put_new(home, home.paths.snapshot(number), version.data) and not same_snapshot(
        try_snapshot(home, number), version.snapshot
    ):
        raise ConflictError(
            f"{home.where(home.paths.snapshot(number))} is another snapshot than the one to go back to: the table was "
            "rolled back and written to meanwhile"
        )


def _drop_changelogs(home: TableHome, target: int) -> None:
    folder = home.paths.changelog_folder
    names = [info.path.rsplit("/", 1)[-1] for info in home.store.list_folder(folder).files]
    numbers = [int(text) for name in names if (text := name.removeprefix(_CHANGELOG)).isdecimal()]
    newer = sorted((number for number in numbers if number > target), reverse=True)
    if newer:
        left = max((number for number in numbers if number <= target), default=-1)
        home.store.put(f"{folder}/LATEST", str(left).encode())
        home.store.delete([f"{folder}/{_CHANGELOG}{number}" for number in newer])
