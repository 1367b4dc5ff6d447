"""Tags: named snapshots whose files outlive the expiry of the snapshot.

    create    find the snapshot ─ create tag-NAME if absent ─ look whether the snapshot is still held ─ tell callbacks
    rename    create tag-NEW if absent ─ look whether tag-OLD is still there ─ delete tag-OLD
    replace   create a second tag as above ─ put tag-NAME ─ delete the other ─ remove files that only the old one named
    delete    delete tag-NAME ─ remove files that only it named

Expiry may run at any moment. It deletes the snapshot first, then lists the tags, then removes files. A tag is
written first, then the snapshot is checked. So either expiry sees the tag, or its creator sees that the snapshot is deleted and
withdraws the tag. The same holds against the deletion of another tag, for a snapshot that only tags keep.

A crash leaves the tag made or not made; after a rename there may be both names, after a replacement a second tag named
`lakelet-replacing-NAME`, after a deletion files that nothing names, which orphan removal deletes. Tags are created atomically.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import timedelta

from lakelet.commit.callbacks.tag_callbacks import notify_creation, notify_deletion
from lakelet.commit.metadata.snapshots import snapshot_at, try_snapshot
from lakelet.commit.metadata.source import metadata
from lakelet.commit.metadata.stored import Version, stored_snapshot, tag_bytes, tag_of, tagged_bytes
from lakelet.commit.metadata.version_ids import latest_id, snapshot_ids, tag_names
from lakelet.commit.retention.unused_files import remove_unused
from lakelet.commit.versions.tag_periods import TagPeriods, local_time
from lakelet.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    CorruptionError,
    InvalidError,
    LakeletError,
    NotFoundError,
    UnavailableError,
)
from lakelet.events import TagCreated, TagDeleted, TagRenamed, TagReplaced, publish, uncertain
from lakelet.format.metadata.stored_json import load_json
from lakelet.format.metadata.tag_json import encode_tag
from lakelet.model.snapshot import Snapshot
from lakelet.model.tag import Tag
from lakelet.options import TAG_CREATE_SUCCESS_FILE, TAG_DEFAULT_TIME_RETAINED, TableOptions
from lakelet.storage.home import TableHome

_LOG = logging.getLogger(__name__)
_UNKNOWN_TRIES = 5


# ---------------------------------------------------------------- reading


def read_tag(home: TableHome, name: str) -> Snapshot:
    """The snapshot a tag keeps."""
    return get_tag(home, name).snapshot


def get_tag(home: TableHome, name: str) -> Tag:
    """The tag of that name; NotFoundError with those that exist."""
    check_tag_name(name)
    tag = try_tag(home, name)
    if tag is None:
        there = ", ".join(tag_names(home)) or "none"
        raise NotFoundError(f"tag {name!r} is not in {home.where(home.paths.branch_root)}; its tags: {there}")
    return tag


def try_tag(home: TableHome, name: str) -> Tag | None:
    """The tag of that name, or None."""
    return metadata(home).tag(home, name)


def all_tags(home: TableHome) -> list[Tag]:
    """All tags, by snapshot id and name; those deleted while they are read are left out."""
    return list(metadata(home).tags(home))


def find_version(home: TableHome, number: int | None = None, time_ms: int | None = None) -> Version:
    """The snapshot of that id, also one that only a tag keeps, the newest up to a time, or the newest of all."""
    if time_ms is not None:
        number = snapshot_at(home, time_ms).id
    while True:
        wanted = latest_id(home) if number is None else number
        if wanted is None:
            raise NotFoundError(f"{home.where(home.paths.branch_root)} has no snapshot yet")
        try:
            return stored_snapshot(home, wanted)
        except NotFoundError as error:
            # Only a rollback deletes the newest one, and then there is another.
            if number is not None:
                return _tagged_version(home, number, error)


def tagged_version(home: TableHome, name: str) -> Version:
    """The snapshot that a tag keeps, with the bytes that its own file has or had."""
    tag = get_tag(home, name)
    return Version(tag.snapshot, tagged_bytes(home, name))


def same_snapshot(one: Snapshot | None, other: Snapshot) -> bool:
    """Whether two are the same commit; ids alone are reused after a rollback."""
    return one is not None and (one.id, one.delta_manifest_list) == (other.id, other.delta_manifest_list)


# ---------------------------------------------------------------- changing


def create_tag(
    home: TableHome,
    options: TableOptions,
    name: str,
    version: Version,
    *,
    time_retained: timedelta | None = None,
    if_not_exists: bool = False,
) -> Tag:
    """Create a tag of a version; AlreadyExistsError where the name is taken."""
    check_tag_name(name)
    _check_one_automatic(home, options, name, version.snapshot)
    retained = time_retained if time_retained is not None else options.get(TAG_DEFAULT_TIME_RETAINED)
    data = _encoded(home, version, retained)
    with _uncertain(home):
        held = _hold(home, name, version, data)
    if not held:
        if if_not_exists:
            return get_tag(home, name)
        raise AlreadyExistsError(f"tag {name!r} exists in {home.where(home.paths.branch_root)}")
    publish(TagCreated(home.table_name, home.paths.branch, name, version.snapshot.id))
    _announce(home, options, name, version.snapshot.id)
    return tag_of(home, name, data)


def hold_by_tag(home: TableHome, name: str, version: Version) -> bool:
    """Keep a version by an internal tag, without callbacks, during a longer operation; whether the tag is new.

    A tag of that name which an earlier run left behind serves as well.
    """
    if _hold(home, name, version, encode_tag(version.data)):
        return True
    if not same_snapshot(read_tag(home, name), version.snapshot):
        raise AlreadyExistsError(
            f"tag {name!r} of {home.where(home.paths.branch_root)} refers to another snapshot than {version.snapshot.id}; "
            "delete it first"
        )
    return False


def replace_tag(
    home: TableHome, options: TableOptions, name: str, version: Version, *, time_retained: timedelta | None = None
) -> Tag:
    """Point a tag to another version."""
    old = get_tag(home, name)
    path = home.paths.tag(name)
    _check_one_automatic(home, options, name, version.snapshot)
    data = _encoded(home, version, time_retained)
    with _uncertain(home):
        if same_snapshot(old.snapshot, version.snapshot):
            home.store.put(path, data)
        else:
            # Were the new snapshot checked only after the tag was put, the old one's files could be deleted when it is missing.
            guard = f"lakelet-replacing-{name}"
            hold_by_tag(home, guard, version)
            home.store.put(path, data)
            delete_tag_files(home, [guard])
            _remove_unheld(home, old.snapshot)
    publish(TagReplaced(home.table_name, home.paths.branch, name, version.snapshot.id))
    _announce(home, options, name, version.snapshot.id)
    return tag_of(home, name, data)


def rename_tag(home: TableHome, name: str, new_name: str) -> None:
    """Rename a tag."""
    get_tag(home, name)
    check_tag_name(new_name)
    path, new_path = home.paths.tag(name), home.paths.tag(new_name)
    data = tag_bytes(home, name)
    with _uncertain(home):
        made = put_new(home, new_path, data)
    if not made:
        raise AlreadyExistsError(f"tag {new_name!r} exists in {home.where(home.paths.branch_root)}")
    with _uncertain(home):
        tag = get_tag(home, new_name)
        if not _is_held(home, tag.snapshot, besides=new_name):
            home.store.delete([new_path])
            _remove_unheld(home, tag.snapshot)
            raise NotFoundError(
                f"tag {name!r} of {home.where(home.paths.branch_root)} was deleted while it was renamed"
            )
        home.store.delete([path])
    publish(TagRenamed(home.table_name, home.paths.branch, name, new_name))


def delete_tag(home: TableHome, options: TableOptions, name: str, *, if_exists: bool = False) -> bool:
    """Delete a tag, and the files that nothing else names; whether it existed."""
    check_tag_name(name)
    tag: Tag | None
    try:
        tag = try_tag(home, name) if if_exists else get_tag(home, name)
        if tag is None:
            return False
    except CorruptionError as error:
        _LOG.warning("a tag that cannot be read is deleted, the files it named stay: %s", error)
        tag = None
    with _uncertain(home):
        home.store.delete([home.paths.tag(name)])
        if tag is not None:
            _remove_unheld(home, tag.snapshot)
    publish(TagDeleted(home.table_name, home.paths.branch, name))
    _unmark(home, options, name)
    notify_deletion(home, options, name)
    return True


def expire_tags(home: TableHome, options: TableOptions, *, older_than_ms: int | None = None) -> list[str]:
    """Delete the expired tags, and those made before a given time; returns their names.

    A tag without a retention was made when its file was.
    """
    now = local_time(home.clock.now_ms())
    expired = []
    for tag in all_tags(home):
        due = tag.is_expired(now)
        if not due and older_than_ms is not None:
            info = home.store.head(home.paths.tag(tag.name)) if tag.create_time is None else None
            made = tag.create_time or (None if info is None else local_time(info.modified_ms))
            due = made is not None and made < local_time(older_than_ms)
        if due and delete_tag(home, options, tag.name, if_exists=True):
            expired.append(tag.name)
    return expired


def check_tag_name(name: object) -> None:
    """InvalidError unless a tag may have this name."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidError(f"tag name {name!r}: expected text that is not blank")


def put_new(home: TableHome, path: str, data: bytes) -> bool:
    """Create a file if absent, retrying unclear answers of the store; CommitUnknownError where it never answers."""
    for attempt in range(_UNKNOWN_TRIES):
        try:
            created = home.store.put_if_absent(path, data)
        except UnavailableError:
            # The store may have kept it: sending the same bytes again shows it.
            home.clock.sleep(0.05 * 2**attempt)
            continue
        return created or (attempt > 0 and home.store.get(path) == data)
    raise CommitUnknownError(
        f"{home.where(path)}: the store did not say whether it was written; look before trying again"
    )


# ---------------------------------------------------------------- the parts of it


def _uncertain(home: TableHome) -> AbstractContextManager[None]:
    return uncertain(home.table_name, home.paths.branch, "change of a tag")


def _hold(home: TableHome, name: str, version: Version, data: bytes) -> bool:
    """Create the tag; False where the name is taken, NotFoundError where the version was expired meanwhile."""
    path = home.paths.tag(name)
    if not put_new(home, path, data):
        return False
    if _is_held(home, version.snapshot, besides=name):
        return True
    home.store.delete([path])
    _remove_unheld(home, version.snapshot)
    raise _expired_meanwhile(home, version.snapshot)


def _tagged_version(home: TableHome, number: int, error: NotFoundError) -> Version:
    for tag in all_tags(home):
        if tag.snapshot_id == number:
            return tagged_version(home, tag.name)
    ids = snapshot_ids(home)
    there = f"snapshots {ids[0]} to {ids[-1]} exist" if ids else "the table has no snapshot"
    raise NotFoundError(
        f"snapshot {number} is not in {home.where(home.paths.snapshot_folder)}, and no tag keeps it: {there}"
    ) from error


def _encoded(home: TableHome, version: Version, time_retained: timedelta | None) -> bytes:
    if time_retained is None:
        return encode_tag(version.data)
    return encode_tag(version.data, local_time(home.clock.now_ms()), time_retained)


def _is_held(home: TableHome, snapshot: Snapshot, *, besides: str | None = None) -> bool:
    """Whether the snapshot's own file or another tag than `besides` keeps it."""
    if same_snapshot(try_snapshot(home, snapshot.id), snapshot):
        return True
    return any(tag.name != besides and same_snapshot(tag.snapshot, snapshot) for tag in all_tags(home))


def _remove_unheld(home: TableHome, snapshot: Snapshot) -> None:
    """Remove the files of a snapshot that a tag no longer keeps, unless something else does.

    The tag is deleted by now, so that an error leaves files for orphan removal and is no error of the caller's.
    """
    try:
        if not _is_held(home, snapshot):
            remove_unused(home, [snapshot])
    except LakeletError as error:
        _LOG.warning("files of snapshot %d that only a tag kept stay behind: %s", snapshot.id, error)


def _check_one_automatic(home: TableHome, options: TableOptions, name: str, snapshot: Snapshot) -> None:
    """Check that a snapshot has one automatic tag at most, for writers continue from its period."""
    periods = TagPeriods.of(options)
    if periods is None or periods.period(name) is None:
        return
    for tag in all_tags(home):
        if tag.name != name and tag.snapshot_id == snapshot.id and periods.period(tag.name) is not None:
            raise InvalidError(
                f"tag {name!r} is named like an automatic one, and snapshot {snapshot.id} has such a tag: {tag.name!r}"
            )


def _expired_meanwhile(home: TableHome, snapshot: Snapshot) -> NotFoundError:
    return NotFoundError(
        f"snapshot {snapshot.id} of {home.where(home.paths.branch_root)} was expired while it was tagged; the tag was not made"
    )


def _announce(home: TableHome, options: TableOptions, name: str, snapshot_id: int) -> None:
    if options.get(TAG_CREATE_SUCCESS_FILE):
        path, now = _marker(home, name), home.clock.now_ms()
        try:
            created = _created_ms(home, path) or now
            text = json.dumps({"creationTime": created, "modificationTime": now}, indent=2)
            home.store.put(path, text.encode())
        except LakeletError as error:
            _LOG.warning("tag %r is created, but its marker file could not be written: %s", name, error)
    notify_creation(home, options, name, snapshot_id)


def _unmark(home: TableHome, options: TableOptions, name: str) -> None:
    if options.get(TAG_CREATE_SUCCESS_FILE):
        try:
            home.store.delete([_marker(home, name)])
        except LakeletError as error:
            _LOG.warning("tag %r is deleted, but its marker file is not: %s", name, error)


def _created_ms(home: TableHome, path: str) -> int | None:
    try:
        return int(load_json(home.store.get(path))["creationTime"])
    except (NotFoundError, ValueError, KeyError, TypeError):
        return None


def _marker(home: TableHome, name: str) -> str:
    return f"{home.paths.tag_folder}/tag-success-file/{name}_SUCCESS"


def delete_tag_files(home: TableHome, names: Sequence[str]) -> None:
    """Delete tags without removing the files they name, which orphan removal does."""
    if names:
        home.store.delete([home.paths.tag(name) for name in names])
