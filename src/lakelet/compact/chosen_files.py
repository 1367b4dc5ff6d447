"""Compact chosen files of an append table without buckets: the work that a task names which was planned elsewhere.

A task is older than the snapshot that it meets. Its files are looked up there: where one is gone, others have rewritten it, and
nothing is done. Deletion vectors and the place of the files are those of the newest snapshot, never those of the task.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.compact.compaction import (
    Committer,
    Compaction,
    Scope,
    check_compactable,
    commit_compaction,
    deletion_vectors,
    scope_entries,
)
from lakelet.compact.progress import Cancel, CompactionCancelled
from lakelet.compact.task import CompactionTask
from lakelet.errors import InvalidError
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome

_BUCKET = 0


def takes_chosen_files(schema: TableSchema) -> bool:
    """Whether files of this table may be compacted in any company: it has neither keys nor an order of rows in buckets."""
    return not schema.primary_keys and bucket_mode(schema) is BucketMode.BUCKET_UNAWARE


def compact_files(
    home: TableHome, partition: bytes, names: Collection[str], cancel: Cancel | None = None
) -> Snapshot | None:
    """Rewrite these files of a partition into fewer; the snapshot made, None where some are gone, or the caller cancelled."""
    snapshot, schema = latest_snapshot(home), latest_schema(home)
    check_compactable(schema)
    if not takes_chosen_files(schema):
        raise InvalidError(
            f"{home.where(home.paths.branch_root)}: chosen files are compacted in append tables without buckets alone"
        )
    if snapshot is None:
        return None
    entries = scope_entries(home, schema, snapshot, Scope(places=frozenset({(partition, _BUCKET)})))
    live = {entry.file.name: entry for entry in entries if entry.file.name in names}
    if not live or len(live) < len(set(names)):
        return None
    vectors = deletion_vectors(home, schema, snapshot)
    task = CompactionTask(
        snapshot.id,
        partition,
        _BUCKET,
        entries[0].total_buckets,
        tuple(entry.file for entry in live.values()),
        vectors={name: vectors[name] for name in live if name in vectors},
    )
    try:
        messages = Compaction(home.deferring(), schema, cancel=cancel).rewrite([task])
    except CompactionCancelled:
        return None
    base = (snapshot.id, snapshot.delta_manifest_list)
    made, _ = commit_compaction(
        home, [replace(message, sequenced_at=base) for message in messages], Committer(home.ids.uuid())
    )
    return made
