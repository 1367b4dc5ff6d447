"""Check that the rows that a rewrite left out of its files are exactly those that are deleted now.

A deletion vector can be added to a file without the file changing. If that happens after a rewrite has read the file, a commit
that removes the file, vector and all, would bring the deleted rows back. And rows can only be marked in a file that is still
there, on top of the vectors that were read.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakelet.commit.conflict.conflicts import live_in
from lakelet.commit.index_changes import DELETION_VECTORS, read_index_entries
from lakelet.errors import ConflictError
from lakelet.model.commit_message import CommitMessage
from lakelet.model.manifest import ManifestFile
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome


def check_vectors(home: TableHome, messages: Sequence[CommitMessage], latest: Snapshot | None) -> None:
    """Rule 6: the index files with vectors of removed files must be the `old_vectors` that were read; every change of a
    vector makes a new index file. Messages that say `settled` are checked as a whole elsewhere."""
    resting = [
        message
        for message in messages
        if message.old_vectors is not None and message.settled is None and message.deleted_files
    ]
    if not resting or latest is None or latest.index_manifest is None:
        return
    holders = _holders(home, latest)
    for message in resting:
        now = {holders[file.name] for file in message.deleted_files if file.name in holders}
        if now != set(message.old_vectors or ()):
            raise ConflictError(
                f"{home.where(home.paths.branch_root)}: rows of files that were rewritten have been deleted meanwhile; read them "
                "again"
            )


def check_marks(
    home: TableHome,
    messages: Sequence[CommitMessage],
    latest: Snapshot | None,
    previous: Sequence[ManifestFile],
    schema: TableSchema,
    *,
    threads: int = 1,
) -> None:
    """Rule 6: files whose rows are marked must be live, with the vectors that the marks were added to."""
    newest = None if latest is None else (latest.id, latest.delta_manifest_list)
    marking = [message for message in messages if message.marked_files and message.sequenced_at != newest]
    if not marking:
        return
    places = {(message.partition, message.bucket) for message in marking}
    live = live_in(home, previous, places, schema.partition_types, columns=(), threads=threads)
    names = ("_PARTITION", "_BUCKET", "_FILE_NAME")
    there = set(zip(*(live.column(name).to_pylist() for name in names), strict=True))
    holders = {} if latest is None else _holders(home, latest)
    standing = set(holders.values())
    for message in marking:
        gone = [name for name in message.marked_files if (message.partition, message.bucket, name) not in there]
        if gone:
            raise ConflictError(
                f"{home.where(home.paths.branch_root)}: another writer removed or rewrote {gone[0]}, of which rows were to be "
                "deleted: look again"
            )
        old = set(message.old_vectors or ())
        if not old <= standing or not {holders[name] for name in message.marked_files if name in holders} <= old:
            raise ConflictError(
                f"{home.where(home.paths.branch_root)}: another writer deleted rows of the same files: look again"
            )


def _holders(home: TableHome, snapshot: Snapshot) -> dict[str, str]:
    """The index file that holds the vector of each data file."""
    holders: dict[str, str] = {}
    for entry in read_index_entries(home, snapshot):
        if entry.file.index_type == DELETION_VECTORS:
            holders.update(
                dict.fromkeys((place.data_file for place in entry.file.deletion_vectors or ()), entry.file.name)
            )
    return holders
