"""Fast-forward: replace the main line by that of a branch, from the branch's first snapshot on.

    main     1 2 3 4 5              roll back to 2 ─ schemas ─ put 7, LATEST ─ users ─ put 6, 5, 4, 3 ─ tags
    branch     2 3' 4' 5' 6' 7'     main: 1 2 3' 4' 5' 6' 7'

Where the branch begins with a snapshot that main still has, main is first rolled back to it: a version that both know, in a
schema that both know. Then the branch's schemas replace those that only main has. Its newest snapshot comes next and is the
switch: from then on readers and writers are on the branch's line, and the ids below are filled in downwards. A crash leaves
main at the common version or at the branch's newest; the same call again finishes it. The branch itself is left as it is.

Where main has no such snapshot, because it was expired or the branch began empty, there is no version in between: main's
snapshots of greater ids are deleted, newest first, and the branch's put over the others. If both have changed their schemas
differently, main's old snapshots cannot be read in between.

A commit to main before the switch is deleted like main's other snapshots; one after it is on top of the
branch's. Where main has the branch's newest snapshot already, there is nothing to do, and what was committed on top stays.
As in a rollback no file is removed, for orphan removal does that. Tags of main from the branch's first snapshot on are replaced
by those of the branch, but a tag of a snapshot that both have stays.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lakelet.commit.commit_users import copy_users, named_users, record_users
from lakelet.commit.conflict.commit_check import builds_on
from lakelet.commit.metadata.snapshots import latest_snapshot, try_snapshot, write_latest_hint
from lakelet.commit.metadata.stored import Version, schema_bytes, stored_snapshot, tag_bytes
from lakelet.commit.metadata.version_ids import listed_ids, schema_ids, snapshot_ids, tag_names
from lakelet.commit.retention.file_references import read_snapshots
from lakelet.commit.versions.branches import branch_home
from lakelet.commit.versions.rollback import drop_newer, take_back
from lakelet.commit.versions.tags import all_tags, delete_tag_files, find_version, same_snapshot
from lakelet.errors import ConflictError, InvalidError, NotFoundError
from lakelet.events import FastForwarded, publish, uncertain
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome
from lakelet.storage.paths import MAIN_BRANCH

_ROUNDS = 20
_READERS = 16


@dataclass(frozen=True, slots=True)
class _Line:
    """The snapshots of the branch, oldest first."""

    versions: tuple[Version, ...]

    @property
    def first(self) -> Snapshot:
        return self.versions[0].snapshot

    @property
    def last(self) -> Snapshot:
        return self.versions[-1].snapshot


def fast_forward(home: TableHome, name: str) -> Snapshot:
    """Fast-forward this branch of the table to the branch `name`; returns the snapshot that is the newest now."""
    if name in (MAIN_BRANCH, home.paths.branch):
        raise InvalidError(f"cannot fast-forward from {name!r}: name a branch that is neither the main nor this one")
    theirs = branch_home(home, name)
    line = _read_line(theirs)
    with uncertain(home.table_name, home.paths.branch, "fast-forward"):
        found = _forward(home, theirs, line)
    publish(FastForwarded(home.table_name, home.paths.branch, name, found.id))
    return found


def _forward(home: TableHome, theirs: TableHome, line: _Line) -> Snapshot:
    forwarded = line.last.id in snapshot_ids(home) and same_snapshot(try_snapshot(home, line.last.id), line.last)
    if not forwarded:
        _go_back(home, line)
        _take_schemas(home, theirs)
        home.store.put(home.paths.snapshot(line.last.id), line.versions[-1].data)
        if not _continues(home, line.last):
            # A hint would point to a deleted snapshot, or past the last one: without one, everybody lists.
            home.store.delete([home.paths.latest_hint])
            drop_newer(home, line.last.id)
        write_latest_hint(home, line.last.id)
    copy_users(theirs, home)
    _fill(home, line)
    _drop_below_a_gap(home)
    _take_tags(home, theirs, line, up_to=line.last.id if forwarded else None)
    return latest_snapshot(home) or line.last


def _read_line(theirs: TableHome) -> _Line:
    def read(number: int) -> Version | None:
        try:
            return stored_snapshot(theirs, number)
        except NotFoundError:
            return None

    versions: list[Version] = []
    with ThreadPoolExecutor(_READERS) as pool:
        for version in pool.map(read, snapshot_ids(theirs)):
            if version is None:
                # Expired while it was read: those after it are the line.
                versions.clear()
            else:
                versions.append(version)
    if not versions:
        raise InvalidError(
            f"branch {theirs.paths.branch!r} of {theirs.where(theirs.paths.root)} has no snapshot to go to"
        )
    return _Line(tuple(versions))


def _go_back(home: TableHome, line: _Line) -> None:
    """Roll main back to the last version that stays, where it has one, and at least to the branch's newest id."""
    first = line.first
    keep = first.id if same_snapshot(try_snapshot(home, first.id), first) else first.id - 1
    ids = snapshot_ids(home)
    if keep in ids and ids[-1] > keep:
        take_back(home, find_version(home, keep))
    elif line.last.id in ids:
        drop_newer(home, line.last.id)


def _continues(home: TableHome, last: Snapshot) -> bool:
    """Whether what main has after the branch's newest snapshot was committed on top of it."""
    if not any(number > last.id for number in listed_ids(home)):
        return True
    following = try_snapshot(home, last.id + 1)
    return following is not None and builds_on(home, following, last)


def _fill(home: TableHome, line: _Line) -> None:
    """Copy the branch's snapshots to main, newest first, until all of them are there.

    A writer whose snapshot was in a gap withdraws it by its name, and may do so after ours was put there.
    """
    for _ in range(_ROUNDS):
        there = read_snapshots(home, [version.snapshot.id for version in line.versions])
        pairs = zip(there, line.versions, strict=True)
        missing = [version for found, version in pairs if not same_snapshot(found, version.snapshot)]
        if not missing:
            return
        for version in reversed(missing):
            home.store.put(home.paths.snapshot(version.snapshot.id), version.data)
    raise ConflictError(
        f"{home.where(home.paths.snapshot_folder)}: writers kept taking snapshots back while it was fast-forwarded; try again"
    )


def _drop_below_a_gap(home: TableHome) -> None:
    """Delete snapshots of main that the branch's first one does not follow: they are no longer on a line."""
    oldest = snapshot_ids(home)[0]
    home.store.put(home.paths.earliest_hint, str(oldest).encode())
    stray = [number for number in listed_ids(home) if number < oldest]
    if stray:
        # Rows of these may be in the branch's, so that their users' late replays must be recognised.
        gone = [snapshot for snapshot in read_snapshots(home, stray) if snapshot is not None]
        record_users(home, named_users(gone), gone)
        home.store.delete([home.paths.snapshot(number) for number in stray])


def _take_schemas(home: TableHome, theirs: TableHome) -> None:
    """Replace the schemas of main by those of the branch: first those that differ are deleted, newest first."""
    ours, wanted = set(schema_ids(home)), schema_ids(theirs)
    data = {number: schema_bytes(theirs, number) for number in wanted}
    common = -1
    for number in wanted:
        if number not in ours or schema_bytes(home, number) != data[number]:
            break
        common = number
    for number in sorted(ours, reverse=True):
        # The oldest one stays until it is replaced: a table without any schema is none.
        if number > max(common, wanted[0]):
            home.store.delete([home.paths.schema(number)])
    for number in wanted:
        if number > common:
            home.store.put(home.paths.schema(number), data[number])


def _take_tags(home: TableHome, theirs: TableHome, line: _Line, *, up_to: int | None) -> None:
    """Replace the tags of main by those of the branch; others of main from the branch's first snapshot on are deleted."""
    known = {version.snapshot.id: version.snapshot for version in line.versions}
    replaced = set(tag_names(theirs))
    for name in sorted(replaced):
        home.store.put(home.paths.tag(name), tag_bytes(theirs, name))
    gone = [
        tag.name
        for tag in all_tags(home)
        if tag.snapshot_id >= line.first.id
        and (up_to is None or tag.snapshot_id <= up_to)
        and tag.name not in replaced
        and not same_snapshot(known.get(tag.snapshot_id), tag.snapshot)
    ]
    delete_tag_files(home, gone)
