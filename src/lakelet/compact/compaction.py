"""Run a compaction: plan from the newest snapshot, rewrite, commit a COMPACT snapshot.

    newest snapshot ─ plan: tasks by bucket ─ rewrite, in threads ─ commit COMPACT ─┬─ committed
                                                                                    └─ some bucket changed meanwhile: its
                                                                                       files are removed, the others committed

The commit replaces exactly the files that were read, so rows of concurrent commits stay; where one of them has removed or
rewritten one of those files, that bucket's work is discarded and cleaned up. Nothing of this changes the visible rows.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.changes import compute_changes
from lakelet.commit.committed_files import remove_files
from lakelet.commit.committer import commit, gives_up
from lakelet.commit.conflict.conflicts import PartitionFilter, live_in
from lakelet.commit.dropped_table import schema_for_commit
from lakelet.commit.metadata.manifests import ManifestSettings, live_entries, snapshot_manifests
from lakelet.commit.metadata.missing_file import SnapshotExpiredError
from lakelet.commit.metadata.schemas import SchemaVersions, latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.metadata.table_identity import check_same_table, table_uuid
from lakelet.commit.request import CommitRequest
from lakelet.compact.all_or_nothing import run_all_or_nothing
from lakelet.compact.append.append_plan import append_tasks, cluster_tasks, inline_append_tasks
from lakelet.compact.append.append_rewrite import AppendRewriter
from lakelet.compact.cluster.chosen_order import RowOrdering
from lakelet.compact.cluster.cluster_rewrite import ClusterRewriter
from lakelet.compact.keyed.keyed_plan import keyed_tasks
from lakelet.compact.keyed.keyed_rewrite import KeyedRewriter
from lakelet.compact.progress import Cancel, CompactionCancelled, Progress, Watch
from lakelet.compact.row_expiry import RowExpiry
from lakelet.compact.task import CompactionTask
from lakelet.errors import CommitUnknownError, ConflictError, LakeletError
from lakelet.format.manifest.manifest_columns import columns_to_entries
from lakelet.lsm.changelog_producer import check_changelog
from lakelet.model.bucket_mode import Place
from lakelet.model.commit_message import CommitMessage
from lakelet.model.manifest import ManifestEntry
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from lakelet.model.split import DeletionVector
from lakelet.options import TableOptions, check_stored
from lakelet.scan.plan import Planner
from lakelet.storage.home import TableHome

_LOG = logging.getLogger(__name__)
THREADS = min(2, os.cpu_count() or 1)
# How often buckets with conflicts are planned again.
_ATTEMPTS = 3
# How often a snapshot may expire while it is rewritten.
_MOST_EXPIRIES = 10


Elsewhere = Callable[[TableSchema, Sequence[CompactionTask]], tuple[CommitMessage, ...]]


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of a compaction: all of a table, the partitions that match a filter, or some buckets."""

    partitions: PartitionFilter | None = None
    places: frozenset[Place] | None = None


@dataclass(frozen=True, slots=True)
class Committer:
    """The commit user and identifier of a compaction: those of the write it follows, or unique ones."""

    user: str
    identifier: int = BATCH_COMMIT_IDENTIFIER


@dataclass(frozen=True, slots=True)
class Compaction:
    """Compacts a table in its newest schema. `full` merges all runs of a bucket, and packs all small files of an append table.

    With `inline`, after a write, it picks only what costs little over many writes. With `insists` it retries until every
    bucket is done, despite concurrent commits, and raises a ConflictError after the last retry. `elsewhere` runs the tasks
    on other machines, and like `rewrite` leaves no files after an error. `extra` options are added to the table's own. With an
    `ordering` all files of an append table's partitions are rewritten in that order of rows.
    """

    home: TableHome
    schema: TableSchema
    full: bool = False
    scope: Scope = Scope()
    progress: Progress | None = None
    cancel: Cancel | None = None
    threads: int = THREADS
    inline: bool = False
    elsewhere: Elsewhere | None = None
    insists: bool = False
    extra: Mapping[str, str] = field(default_factory=dict)
    ordering: RowOrdering | None = None

    def run(self, committer: Committer | None = None) -> Snapshot | None:
        """Compacts what is due; the last snapshot made, None where nothing was, or the caller cancelled."""
        made: Snapshot | None = None
        scope = self.scope
        started = self.home.clock.monotonic()
        for attempt in count(1):
            snapshot = latest_snapshot(self.home)
            newest = self._in_newest_schema()
            try:
                tasks = [] if snapshot is None else newest.plan(snapshot, scope)
                if not tasks:
                    break
                messages = newest.rewrite(tasks) if self.elsewhere is None else self.elsewhere(newest.schema, tasks)
            except CompactionCancelled:
                return made
            except SnapshotExpiredError:
                if attempt == _MOST_EXPIRIES:
                    raise
                continue
            assert snapshot is not None
            base = (snapshot.id, snapshot.delta_manifest_list)
            messages = tuple(replace(message, sequenced_at=base) for message in messages)
            by = committer or Committer(self.home.ids.uuid())
            committed, lost = commit_compaction(self.home, messages, by, packs_manifests=self.full)
            made = committed or made
            if not lost or not self._goes_on(attempt, self.home.clock.monotonic() - started):
                break
            scope = replace(scope, places=frozenset((message.partition, message.bucket) for message in lost))
        return made

    def _in_newest_schema(self) -> Compaction:
        """The same after the snapshot was read: a schema read later knows every column of its files."""
        schema = latest_schema(self.home)
        check_compactable(schema)
        if self.ordering is not None:
            self.ordering.check(schema, self.home.where(self.home.paths.branch_root))
        # What is rewritten in this process is synced by its commit; tasks elsewhere sync their own files.
        home = self.home.deferring()
        return replace(self, home=home, schema=replace(schema, options={**schema.options, **self.extra}))

    def _goes_on(self, attempts: int, seconds: float) -> bool:
        """Whether buckets with conflicts are retried."""
        if not self.insists:
            return attempts < _ATTEMPTS
        if gives_up(TableOptions(self.schema.options), attempts, seconds):
            raise ConflictError(
                f"{self.home.where(self.home.paths.branch_root)}: gave up after {attempts} attempts, each time others had "
                "compacted the same buckets first"
            )
        return True

    def plan(self, snapshot: Snapshot, scope: Scope | None = None) -> list[CompactionTask]:
        """Plan the tasks of a snapshot."""
        scope = scope or self.scope
        entries = scope_entries(self.home, self.schema, snapshot, scope)
        if self.ordering is not None:
            vectors = deletion_vectors(self.home, self.schema, snapshot)
            return cluster_tasks(entries, self.schema, snapshot_id=snapshot.id, vectors=vectors)
        return plan_entries(self.home, self.schema, snapshot, entries, full=self.full, inline=self.inline)

    def rewrite(self, tasks: Sequence[CompactionTask]) -> tuple[CommitMessage, ...]:
        """Run the tasks, largest first; after an error or when cancelled there are no new files."""
        watch = Watch(
            len(tasks),
            sum(task.row_count for task in tasks),
            sum(task.size for task in tasks),
            self.progress,
            self.cancel,
        )
        do = rewriter(self.home, self.schema, self.ordering)
        uuid = table_uuid(self.home)

        def one(task: CompactionTask) -> CommitMessage:
            watch.check()
            message = replace(do(task, watch), table_uuid=uuid)
            watch.advance(tasks=1)
            return message

        done = run_all_or_nothing(
            sorted(tasks, key=lambda task: -task.size),
            one,
            threads=self.threads,
            undo=lambda messages: remove_files(self.home, self.schema, messages),
        )
        return tuple(message for message in done if message.new_files or message.deleted_files)


def check_compactable(schema: TableSchema) -> None:
    """Refuses tables whose rows are merged in other ways, or whose changelog would be missing."""
    check_stored(schema.options)
    check_changelog(schema)


def plan_entries(
    home: TableHome,
    schema: TableSchema,
    snapshot: Snapshot,
    entries: Sequence[ManifestEntry],
    *,
    full: bool,
    inline: bool = False,
) -> list[CompactionTask]:
    """The tasks of these live entries of a snapshot, which include all files of each bucket."""
    vectors = deletion_vectors(home, schema, snapshot)
    if not schema.primary_keys:
        if inline:
            return inline_append_tasks(entries, schema, snapshot_id=snapshot.id, vectors=vectors)
        return append_tasks(entries, schema, snapshot_id=snapshot.id, vectors=vectors, full=full)
    now_ms = home.clock.now_ms()
    expiry = RowExpiry.of(schema, now_ms) if full else None
    expired: frozenset[str] = frozenset()
    if expiry is not None:
        schema_of = SchemaVersions(home, {schema.id: schema})
        expired = frozenset(e.file.name for e in entries if expiry.may_hold_expired(e.file, schema_of))
    return keyed_tasks(
        entries, schema, snapshot_id=snapshot.id, vectors=vectors, now_ms=now_ms, full=full, expired=expired
    )


def deletion_vectors(home: TableHome, schema: TableSchema, snapshot: Snapshot) -> Mapping[str, DeletionVector]:
    """The deletion vectors of a snapshot by file name."""
    if snapshot.index_manifest is None:
        return {}
    planner = Planner(home, schema, SchemaVersions(home, {schema.id: schema}), TableOptions(schema.options))
    return planner.deletion_vectors(snapshot)


def rewriter(
    home: TableHome, schema: TableSchema, ordering: RowOrdering | None = None
) -> Callable[[CompactionTask, Watch], CommitMessage]:
    """The rewriter for tasks of this table."""
    schema_of = SchemaVersions(home, {schema.id: schema})
    if ordering is not None:
        return ClusterRewriter(home, schema, schema_of, ordering).rewrite
    if not schema.primary_keys:
        return AppendRewriter(home, schema, schema_of).rewrite
    return KeyedRewriter(home, schema, schema_of).rewrite


def commit_compaction(
    home: TableHome, messages: Sequence[CommitMessage], committer: Committer, *, packs_manifests: bool = False
) -> tuple[Snapshot | None, tuple[CommitMessage, ...]]:
    """Commit what can be; returns the snapshot, and the messages of buckets with conflicts, whose files are removed."""
    left, lost = tuple(messages), list[CommitMessage]()
    schema = schema_for_commit(home, left)
    try:
        while left:
            try:
                return commit(home, _request(left, committer, packs_manifests)), tuple(lost)
            except ConflictError as conflict:
                late = _late(home, left)
                if not late:
                    raise
                _LOG.info("%d of %d compacted buckets were changed meanwhile: %s", len(late), len(left), conflict)
                remove_files(home, schema, late)
                lost += late
                left = tuple(message for message in left if message not in late)
    except CommitUnknownError:
        raise
    except LakeletError:
        remove_files(home, schema, left)
        raise
    return None, tuple(lost)


def pack_manifests(home: TableHome) -> Snapshot | None:
    """Merges the manifests of a table; the snapshot made, None where they are few and without removals already."""
    return commit(home, _request((), Committer(home.ids.uuid()), packs_manifests=True))


def _request(messages: tuple[CommitMessage, ...], committer: Committer, packs_manifests: bool) -> CommitRequest:
    # A repeated write is recognised by its commit user and identifier, a compaction by the files that it removes: it may make
    # several snapshots, all with the identity of the write that it follows.
    return CommitRequest(committer.user, messages, committer.identifier, compacts=True, packs_manifests=packs_manifests)


def _late(home: TableHome, messages: Sequence[CommitMessage]) -> list[CommitMessage]:
    """The messages that cannot be committed on top of the newest snapshot."""
    snapshot, schema = latest_snapshot(home), latest_schema(home)
    settings = ManifestSettings.of(TableOptions(schema.options))
    late: list[CommitMessage] = []
    for message in messages:
        try:
            check_same_table(home, [message])
            compute_changes(home, CommitRequest("", (message,), compacts=True), snapshot, schema, settings)
        except (ConflictError, SnapshotExpiredError):
            late.append(message)
    return late


def scope_entries(home: TableHome, schema: TableSchema, snapshot: Snapshot, scope: Scope) -> list[ManifestEntry]:
    """The live files of a scope."""
    manifests = snapshot_manifests(home, snapshot)
    threads = ManifestSettings.of(TableOptions(schema.options)).threads
    if scope.places is not None:
        found = live_in(home, manifests, scope.places, schema.partition_types, columns=None, threads=threads)
        return [e for e in columns_to_entries(found) if (e.partition, e.bucket) in scope.places]
    chosen = scope.partitions

    def keep(entries: pa.Table) -> pa.Table:
        if chosen is None:
            return entries
        encoded = entries.column("_PARTITION").combine_chunks().dictionary_encode()
        return entries.filter(pc.take(pa.array(chosen(encoded.dictionary)), encoded.indices))

    return list(columns_to_entries(live_entries(home, manifests, keep=keep, threads=threads)))


def touched(messages: Collection[CommitMessage]) -> frozenset[Place]:
    """The buckets that messages put files into."""
    return frozenset((message.partition, message.bucket) for message in messages if message.new_files)
