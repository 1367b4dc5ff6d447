"""The request of a commit: the committer's input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lakelet.model.commit_message import CommitMessage
from lakelet.model.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot

CHANGELOG_KINDS = (CommitKind.APPEND, CommitKind.COMPACT)
"""The kinds of commits that have a changelog. That of an overwrite would tell of the rows it adds, not of those it removes."""


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Which files a commit replaces.

    `partition` maps partition columns to values (None is NULL): every file of the matching partitions is removed, the
    whole table's for an empty mapping. None means dynamic overwrite: exactly `partitions` (BinaryRow bytes), or, where
    they are not named, those that the new files belong to. They are named where new files also delete rows of
    partitions that stay, since a key moved out of them.
    """

    partition: Mapping[str, object] | None
    partitions: frozenset[bytes] | None = None


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """One commit: its user and identifier, its messages, and its options.

    A `named` request comes with a user and an identifier of the caller's choosing and is applied once however often it
    is sent; identifiers of one user rise. Others have a generated user. `searched` is the id of a snapshot up to which
    the caller has looked for an earlier sending already; `when_found` is called with one that is found now, for then the files of
    these messages may be left over.

    Rows of a primary-key table were looked up in snapshot `read_at`, where it is given: the commit conflicts if their buckets
    were written to since. Where it depends on all rows of a version, also on the absence of rows, `same_rows_as` names that
    snapshot, by its id and its delta manifest list ((0, "") for none): the commit conflicts if anything but compaction
    was committed since.

    A request that `compacts` replaces files by others with the same rows. A write and the compaction that follows it may share
    their user and identifier. `statistics` names a file with statistics of the newest snapshot's rows, none of which changes.
    With `packs_manifests` all manifests are merged, not only those that are due. With `files_added_once` the commit conflicts
    if a file that it adds is live already.
    """

    user: str
    messages: tuple[CommitMessage, ...]
    identifier: int = BATCH_COMMIT_IDENTIFIER
    named: bool = False
    overwrite: Overwrite | None = None
    ignore_empty: bool = True
    watermark: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    searched: int | None = None
    when_found: Callable[[Snapshot], None] | None = None
    read_at: int | None = None
    same_rows_as: tuple[int, str] | None = None
    compacts: bool = False
    statistics: str | None = None
    packs_manifests: bool = False
    files_added_once: bool = False

    @property
    def kind(self) -> CommitKind:
        """OVERWRITE if files are removed, or their rows marked as deleted, other than by compaction; APPEND otherwise."""
        if self.compacts:
            return CommitKind.COMPACT
        if self.statistics is not None:
            return CommitKind.ANALYZE
        takes_away = self.overwrite is not None or any(
            message.deleted_files or message.marked_files for message in self.messages
        )
        return CommitKind.OVERWRITE if takes_away else CommitKind.APPEND
