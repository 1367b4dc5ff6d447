"""Find which files of given messages are committed, and must therefore not be removed."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.index_changes import read_index_entries
from lakelet.commit.metadata.manifests import live_entries, read_entries, read_manifest_list, snapshot_manifests
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot, snapshots_backwards
from lakelet.commit.request import CHANGELOG_KINDS, CommitRequest
from lakelet.errors import InvalidError, LakeletError
from lakelet.format.partition_folders import PartitionFolders
from lakelet.model.commit_message import CommitMessage
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome

_LOG = logging.getLogger(__name__)
# Clocks of writers and committers may disagree by this much.
_CLOCK_SKEW_MS = 3_600_000


def committed_files(home: TableHome, messages: Sequence[CommitMessage]) -> set[str]:
    """The names of new files in `messages` that are live or were added by any snapshot made since they were written."""
    files = [file for message in messages for file in message.new_files]
    latest = latest_snapshot(home)
    if latest is None or not files:
        return set()
    names = pa.array([file.name for file in files], pa.string())
    found = _live_among(home, latest, messages)
    oldest = min(file.creation_ms or 0 for file in files) - _CLOCK_SKEW_MS
    for snapshot in snapshots_backwards(home, latest.id):
        if snapshot.time_ms < oldest or len(found) == len(files):
            break
        added = read_entries(home, read_manifest_list(home, snapshot.delta_manifest_list), columns=["_FILE_NAME"])
        found |= _among(added, names)
    return found


def remove_uncommitted(home: TableHome, messages: Sequence[CommitMessage]) -> None:
    """Remove the new files of messages, except committed ones."""
    kept = committed_files(home, messages)
    # Vectors with marks come without new files that would tell.
    marking = [message for message in messages if message.marked_files]
    others = [message for message in messages if not message.marked_files]
    unnamed = _marks(marking) - _committed_marks(home, marking) if marking else set()
    home.store.delete(
        [
            *(path for path, owner in _new_files(home, latest_schema(home), others) if not owner & kept),
            *(home.paths.index(name) for name in unnamed),
        ]
    )


def _marks(messages: Sequence[CommitMessage]) -> set[str]:
    return {message.new_vectors.name for message in messages if message.new_vectors is not None}


def _committed_marks(home: TableHome, messages: Sequence[CommitMessage]) -> set[str]:
    """The index files of these messages that are in a snapshot made since what they mark was found."""
    names, found, seen = _marks(messages), set[str](), set[str]()
    latest = latest_snapshot(home)
    base = min(message.base_snapshot or 0 for message in messages)
    for snapshot in snapshots_backwards(home, latest.id) if latest is not None else ():
        if snapshot.id <= base or names <= found:
            break
        if snapshot.index_manifest is not None and snapshot.index_manifest not in seen:
            seen.add(snapshot.index_manifest)
            found |= names & {entry.file.name for entry in read_index_entries(home, snapshot)}
    return found


def remove_files(
    home: TableHome, schema: TableSchema, messages: Sequence[CommitMessage], *, but: Sequence[CommitMessage] = ()
) -> None:
    """Remove the new files of messages that are certainly not committed, except those that are in `but` too.

    A file whose deletion fails is left for orphan removal.
    """
    kept = {path for path, _ in _new_files(home, schema, but)}
    paths = [path for path, _ in _new_files(home, schema, messages) if path not in kept]
    try:
        home.store.delete(paths)
    except LakeletError as error:
        _LOG.warning("%d uncommitted files stay behind in %s: %s", len(paths), home.where(home.paths.root), error)


def remove_unused_changelogs(home: TableHome, schema: TableSchema, request: CommitRequest) -> None:
    """Remove the changelog files of a commit that has no changelog."""
    if request.kind in CHANGELOG_KINDS or not any(message.changelog_files for message in request.messages):
        return
    only = [replace(message, new_files=(), new_hash_index=None, new_vectors=None) for message in request.messages]
    remove_files(home, schema, only)


def new_paths(home: TableHome, schema: TableSchema, messages: Sequence[CommitMessage]) -> list[str]:
    """The paths of the files that were written for these messages."""
    return [path for path, _ in _new_files(home, schema, messages)]


def _new_files(
    home: TableHome, schema: TableSchema, messages: Sequence[CommitMessage]
) -> Iterator[tuple[str, frozenset[str]]]:
    """The paths of files that were written for these messages, and the data files whose commit each belongs to."""
    folders = PartitionFolders(home.paths, schema)
    for message in messages:
        folder = folders.bucket_folder(message.partition, message.bucket)
        # A file that compaction only moves to another level existed before.
        moved = {file.name for file in message.deleted_files}
        for file in message.new_files:
            if file.name not in moved:
                yield f"{folder}/{file.name}", frozenset([file.name])
                for beside in file.extra_files:
                    yield f"{folder}/{beside}", frozenset([file.name])
        for file in message.changelog_files:
            yield f"{folder}/{file.name}", frozenset(file.name for file in message.new_files)
        for index in (message.new_hash_index, message.new_vectors):
            if index is not None:
                yield home.paths.index(index.name), frozenset(file.name for file in message.new_files)


def check_not_committed(home: TableHome, messages: Sequence[CommitMessage]) -> None:
    """InvalidError if a file of the messages is live: they were committed before, and their rows would be duplicated."""
    latest = latest_snapshot(home)
    live = _live_among(home, latest, messages) if latest is not None else set()
    if live:
        raise InvalidError(
            f"these messages are committed already: {sorted(live)[0]} is in {home.where(home.paths.root)}"
        )


def _live_among(home: TableHome, latest: Snapshot, messages: Sequence[CommitMessage]) -> set[str]:
    """The names of new files in `messages` that a snapshot holds."""
    names = pa.array([file.name for message in messages for file in message.new_files], pa.string())
    if not len(names):
        return set()
    partitions = pa.array({message.partition for message in messages}, pa.binary())

    def keep(entries: pa.Table) -> pa.Table:
        return entries.filter(pc.is_in(entries.column("_PARTITION"), value_set=partitions))

    return _among(live_entries(home, snapshot_manifests(home, latest), columns=(), keep=keep), names)


def _among(entries: pa.Table, names: pa.Array) -> set[str]:
    column = entries.column("_FILE_NAME")
    return set(column.filter(pc.is_in(column, value_set=names)).to_pylist())
