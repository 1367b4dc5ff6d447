"""Commit rewritten partitions, each of them all or nothing.

    groups of messages, one per partition ─ commit ─┬─ committed
                                                    └─ some partition changed meanwhile: the new files of these are
                                                       removed, and the others committed without them

The messages of a partition depend on one another: rows removed with some files are added with others. A concurrent commit to
one partition does not discard the work on another.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

from lakelet.commit.changes import compute_changes
from lakelet.commit.committed_files import remove_files
from lakelet.commit.committer import commit
from lakelet.commit.dropped_table import schema_for_commit
from lakelet.commit.metadata.manifests import ManifestSettings
from lakelet.commit.metadata.missing_file import SnapshotExpiredError
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.metadata.table_identity import check_same_table
from lakelet.commit.request import CommitRequest
from lakelet.errors import CommitUnknownError, ConflictError, LakeletError
from lakelet.model.commit_message import CommitMessage
from lakelet.model.snapshot import Snapshot
from lakelet.options import TableOptions
from lakelet.storage.home import TableHome

_LOG = logging.getLogger(__name__)
Group: TypeAlias = tuple[CommitMessage, ...]
# How often partitions with conflicts are retried. A count and no time limit, since rewriting may take hours.
MOST_LOSSES = 10


def commit_partitions(
    home: TableHome, groups: Sequence[Group], request: Callable[[Group], CommitRequest]
) -> tuple[Snapshot | None, bool]:
    """Commit the groups that can be; returns the snapshot, and whether all were in it. New files of the others are removed."""
    left, lost = list(groups), False
    schema = schema_for_commit(home, [message for group in groups for message in group])
    try:
        while left:
            messages = tuple(message for group in left for message in group)
            try:
                check_same_table(home, messages)
                return commit(home, request(messages)), not lost
            except ConflictError as conflict:
                late = [group for group in left if _is_late(home, request(group))]
                if not late:
                    raise
                _LOG.info("%d of %d partitions were changed meanwhile: %s", len(late), len(left), conflict)
                for group in late:
                    left.remove(group)
                    remove_files(home, schema, group)
                lost = True
    except CommitUnknownError:
        raise
    except LakeletError:
        remove_files(home, schema, [message for group in left for message in group])
        raise
    return None, not lost


def _is_late(home: TableHome, request: CommitRequest) -> bool:
    """Whether a request cannot be committed on top of the newest snapshot."""
    snapshot, schema = latest_snapshot(home), latest_schema(home)
    try:
        check_same_table(home, request.messages)
        compute_changes(home, request, snapshot, schema, ManifestSettings.of(TableOptions(schema.options)))
    except (ConflictError, SnapshotExpiredError):
        return True
    return False
