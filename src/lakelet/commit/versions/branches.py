"""Branches: lines of snapshots beside the main one, with schemas and tags of their own and data files in the same folders.

    branch/branch-NAME/{schema/schema-N, snapshot/snapshot-N, tag/tag-T, consumer/…}
    branch/branch-NAME/UNFINISHED             while the branch is being made or deleted: what was asked for

    create   UNFINISHED ─ tag ─ snapshot ─ hints ─ look whether it is still held ─ users ─ schemas, newest first
               ─ delete UNFINISHED
    delete   UNFINISHED ─ delete schemas ─ delete the folder ─ remove files that only the branch named
    rename   at once where the store moves folders so; else copy as `create` does, and delete the old folder

An unfinished branch does not exist, nor does one without a schema: reading it is an error and never gives fewer rows. After a
crash `create` continues where the request is the same, and `delete` removes what is left.

A branch begins empty or with a snapshot that a tag keeps. Java Paimon's expiry on one branch knows nothing of the others, but
respects tags: that one protects both sides. For a snapshot without one, a tag `origin-of-branch-NAME` is made; it is deleted
with the branch.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager

from lakelet.commit.commit_users import copy_users, named_users, record_users
from lakelet.commit.metadata.snapshots import try_snapshot, write_latest_hint
from lakelet.commit.metadata.stored import Version, schema_bytes
from lakelet.commit.metadata.version_ids import listed_ids, schema_ids, snapshot_ids
from lakelet.commit.retention.file_references import long_lived_changelogs, read_snapshots, tagged_snapshots
from lakelet.commit.retention.unused_files import remove_unused
from lakelet.commit.versions.tags import (
    all_tags,
    delete_tag,
    find_version,
    hold_by_tag,
    put_new,
    same_snapshot,
    tagged_version,
    try_tag,
)
from lakelet.errors import AlreadyExistsError, ConflictError, InvalidError, LakeletError, NotFoundError
from lakelet.events import BranchCreated, BranchDeleted, BranchRenamed, TagCreated, publish, uncertain
from lakelet.format.metadata.tag_json import encode_tag
from lakelet.model.snapshot import Snapshot
from lakelet.options import SCAN_FALLBACK_BRANCH, TableOptions
from lakelet.storage.home import TableHome
from lakelet.storage.paths import MAIN_BRANCH, file_number

_LOG = logging.getLogger(__name__)
_UNFINISHED = "UNFINISHED"
_DELETION = b'{"delete": true}'


# ---------------------------------------------------------------- finding


def branch_names(home: TableHome) -> list[str]:
    """The names of the branches that can be read, without the main one."""
    folders = home.store.list_folder(home.paths.branch_folder).folders
    names = [folder.rsplit("/", 1)[-1].removeprefix("branch-") for folder in folders if "/branch-" in folder]
    return sorted(name for name in names if branch_exists(home, name))


def branch_exists(home: TableHome, name: str) -> bool:
    """Whether there is a finished branch of that name."""
    if name == MAIN_BRANCH:
        return True
    theirs = home.on_branch(name)
    return bool(schema_ids(theirs)) and home.store.head(_marker(theirs)) is None


def branch_home(home: TableHome, name: str) -> TableHome:
    """The table on another branch; NotFoundError where there is none of that name."""
    check_text_name(name)
    if not branch_exists(home, name):
        raise _no_branch(home, name)
    return home.on_branch(name)


# ---------------------------------------------------------------- changing


def create_branch(
    home: TableHome, name: str, *, tag: str | None = None, version: int | None = None, if_not_exists: bool = False
) -> None:
    """Create a branch, empty or beginning with the snapshot of a tag or of that id."""
    check_branch_name(name)
    if tag is not None and version is not None:
        raise InvalidError("a branch begins with one version; both tag and version were given")
    if branch_exists(home, name):
        if if_not_exists:
            return
        raise AlreadyExistsError(f"branch {name!r} of {home.where(home.paths.root)} exists")
    origin: Version | None = None
    if tag is not None:
        origin = tagged_version(home, tag)
    elif version is not None:
        origin = find_version(home, version)
        with _uncertain(home, name):
            tag = _origin_tag(home, name, origin)
    ids = schema_ids(home)
    if not ids:
        raise NotFoundError(f"{home.where(home.paths.branch_root)} is not a table: it has no schema")
    newest = ids[-1] if origin is None else origin.snapshot.schema_id
    with _uncertain(home, name):
        _begin(home.on_branch(name), origin, tag, newest)
        if origin is not None and tag is not None:
            _copy_version(home, home.on_branch(name), tag, origin)
            _take_users(home, home.on_branch(name), origin.snapshot)
        for number in sorted((number for number in ids if number <= newest), reverse=True):
            put_new(home, home.on_branch(name).paths.schema(number), schema_bytes(home, number))
        home.store.delete([_marker(home.on_branch(name))])
    publish(BranchCreated(home.table_name, name, None if origin is None else origin.snapshot.id))


def delete_branch(home: TableHome, options: TableOptions, name: str, *, if_exists: bool = False) -> bool:
    """Delete a branch, and the files that only it named; whether it existed."""
    _check_changeable(home, options, name)
    theirs = home.on_branch(name)
    if not _has_files(theirs):
        if if_exists:
            return False
        raise _no_branch(home, name)
    gone = _snapshots(theirs)
    own = _origin_name(name)
    ours, kept = try_tag(home, own), try_tag(theirs, own)
    with _uncertain(home, name):
        _delete_folder(theirs)
    publish(BranchDeleted(home.table_name, name))
    try:
        remove_unused(home, gone)
        if ours is not None and (kept is None or same_snapshot(ours.snapshot, kept.snapshot)):
            delete_tag(home, TableOptions(), own, if_exists=True)
    except LakeletError as error:
        _LOG.warning("branch %r is deleted, but files of it stay behind: %s", name, error)
    return True


def rename_branch(home: TableHome, options: TableOptions, name: str, new_name: str) -> None:
    """Rename a branch. Nobody should be writing to it meanwhile."""
    _check_changeable(home, options, name)
    check_branch_name(new_name)
    source, target = branch_home(home, name), home.on_branch(new_name)
    if branch_exists(home, new_name):
        raise AlreadyExistsError(f"branch {new_name!r} of {home.where(home.paths.root)} exists")
    with _uncertain(home, name):
        _move(source, target)
    publish(BranchRenamed(home.table_name, name, new_name))


def _move(source: TableHome, target: TableHome) -> None:
    home, name = source, source.paths.branch
    if home.store.moves_atomically:
        _clear_leftovers(target)
        home.store.move_folder(source.paths.branch_root, target.paths.branch_root)
        return
    request = json.dumps({"from": {"branch": name}}).encode()
    _take_marker(target, request)
    schemas: list[str] = []
    others: list[str] = []
    for info in home.store.list(source.paths.branch_root):
        (schemas if file_number(info.path, "schema") is not None else others).append(info.path)
    for path in (*others, *sorted(schemas, key=lambda path: -(file_number(path, "schema") or 0))):
        home.store.copy(path, target.paths.branch_root + path.removeprefix(source.paths.branch_root))
    home.store.delete([_marker(target)])
    _delete_folder(source)


# ---------------------------------------------------------------- names


def check_branch_name(name: object) -> None:
    """InvalidError unless a new branch may have this name."""
    text = check_text_name(name)
    if text == MAIN_BRANCH:
        raise InvalidError(f"branch name {text!r} is that of the main branch")
    if text.isdecimal():
        raise InvalidError(f"branch name {text!r}: expected a name that is no number")


def check_text_name(name: object) -> str:
    """The name; InvalidError unless it is text that is not blank."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidError(f"branch name {name!r}: expected text that is not blank")
    return name


def _check_changeable(home: TableHome, options: TableOptions, name: object) -> None:
    text = check_text_name(name)
    if text == MAIN_BRANCH:
        raise InvalidError("the main branch can be neither deleted nor renamed")
    if text == home.paths.branch:
        raise InvalidError(
            f"branch {text!r} can be neither deleted nor renamed from itself: use the table's main branch"
        )
    if options.get(SCAN_FALLBACK_BRANCH) == text:
        raise InvalidError(
            f"branch {text!r} fills in for partitions of this one: reset '{SCAN_FALLBACK_BRANCH.name}' first"
        )


def _no_branch(home: TableHome, name: str) -> NotFoundError:
    there = ", ".join(branch_names(home)) or "none"
    half = " (one is only half made or half deleted: delete it)" if _has_files(home.on_branch(name)) else ""
    return NotFoundError(f"branch {name!r} is not in {home.where(home.paths.root)}{half}; its branches: {there}")


# ---------------------------------------------------------------- the parts of it


def _origin_name(branch: str) -> str:
    return f"origin-of-branch-{branch}"


def _origin_tag(home: TableHome, branch: str, origin: Version) -> str:
    """The name of a tag that keeps the snapshot for good, made if there is none."""
    own = _origin_name(branch)
    for tag in all_tags(home):
        if tag.name != own and tag.time_retained is None and same_snapshot(tag.snapshot, origin.snapshot):
            return tag.name
    if hold_by_tag(home, own, origin):
        publish(TagCreated(home.table_name, home.paths.branch, own, origin.snapshot.id))
    return own


def _uncertain(home: TableHome, name: str) -> AbstractContextManager[None]:
    return uncertain(home.table_name, name, "change of a branch")


def _begin(theirs: TableHome, origin: Version | None, tag: str | None, newest_schema: int) -> None:
    snapshot = None if origin is None else [origin.snapshot.id, origin.snapshot.delta_manifest_list]
    _take_marker(theirs, json.dumps({"from": {"snapshot": snapshot, "tag": tag, "schema": newest_schema}}).encode())


def _take_marker(theirs: TableHome, request: bytes) -> None:
    """Claim the branch's folder for this request, or continue an interrupted run of the same request."""
    if theirs.store.head(_marker(theirs)) is None:
        _clear_leftovers(theirs)
    if not put_new(theirs, _marker(theirs), request) and theirs.store.get(_marker(theirs)) != request:
        raise ConflictError(
            f"{theirs.where(theirs.paths.branch_root)}: the branch is being made from something else, or was left half made; "
            "in that case delete it"
        )


def _clear_leftovers(theirs: TableHome) -> None:
    """Remove what an interrupted deletion, or a writer that did not notice it, has left of another branch."""
    if _has_files(theirs):
        theirs.store.delete_folder(theirs.paths.branch_root)


def _copy_version(home: TableHome, theirs: TableHome, tag: str, origin: Version) -> None:
    snapshot = origin.snapshot
    put_new(theirs, theirs.paths.tag(tag), encode_tag(origin.data))
    put_new(theirs, theirs.paths.snapshot(snapshot.id), origin.data)
    write_latest_hint(theirs, snapshot.id)
    theirs.store.put(theirs.paths.earliest_hint, str(snapshot.id).encode())
    # Written first and checked then, as a tag is: either expiry sees the branch or this sees that it came too late.
    kept = try_tag(home, tag)
    for found in (None if kept is None else kept.snapshot, try_snapshot(home, snapshot.id)):
        if same_snapshot(found, snapshot):
            return
    theirs.store.delete_folder(theirs.paths.branch_root)
    remove_unused(home, [snapshot])
    raise NotFoundError(f"tag {tag!r} of {home.where(home.paths.branch_root)} was deleted while it was branched")


def _take_users(home: TableHome, theirs: TableHome, origin: Snapshot) -> None:
    """Record the named users whose rows the branch begins with, of whose snapshots it has one at most.

    A record tells no snapshot: those of a version that has expired here may be later than it, and are not taken along.
    """
    if not same_snapshot(try_snapshot(home, origin.id), origin):
        return
    found = read_snapshots(home, [number for number in snapshot_ids(home) if number < origin.id])
    before = [snapshot for snapshot in found if snapshot is not None]
    record_users(theirs, named_users(before), before)
    copy_users(home, theirs)


def _snapshots(theirs: TableHome) -> Sequence[Snapshot]:
    lines = read_snapshots(theirs, sorted(listed_ids(theirs)))
    found = [snapshot for snapshot in lines if snapshot is not None]
    return [*found, *tagged_snapshots(theirs), *long_lived_changelogs(theirs)]


def _delete_folder(theirs: TableHome) -> None:
    if theirs.store.is_linked(theirs.paths.branch_root):
        theirs.store.delete_folder(theirs.paths.branch_root)
        return
    # Objects are deleted in any order: without a schema what is left of them is no table, whatever becomes of the marker.
    theirs.store.put(_marker(theirs), _DELETION)
    theirs.store.delete([theirs.paths.schema(number) for number in schema_ids(theirs)])
    theirs.store.delete_folder(theirs.paths.branch_root)


def _has_files(theirs: TableHome) -> bool:
    listing = theirs.store.list_folder(theirs.paths.branch_root)
    return bool(listing.files or listing.folders)


def _marker(theirs: TableHome) -> str:
    return f"{theirs.paths.branch_root}/{_UNFINISHED}"
