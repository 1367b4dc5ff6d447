"""Check that the rows that a rewrite left out of its files are exactly those that are deleted now.

A deletion vector can be added to a file without the file changing. If that happens after a rewrite has read the file, a commit
that removes the file, vector and all, would bring the deleted rows back.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakelet.commit.index_changes import DELETION_VECTORS, read_index_entries
from lakelet.errors import ConflictError
from lakelet.model.commit_message import CommitMessage
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
    holders: dict[str, str] = {}
    for entry in read_index_entries(home, latest):
        if entry.file.index_type == DELETION_VECTORS:
            holders.update(
                dict.fromkeys((place.data_file for place in entry.file.deletion_vectors or ()), entry.file.name)
            )
    for message in resting:
        now = {holders[file.name] for file in message.deleted_files if file.name in holders}
        if now != set(message.old_vectors or ()):
            raise ConflictError(
                f"{home.where(home.paths.branch_root)}: rows of files that were rewritten have been deleted meanwhile; read them "
                "again"
            )
