"""Rescale a table to another number of buckets: rewrite its partitions, and change the option `bucket`.

    plan ─ rewrite all partitions ─ option `bucket` ─ OVERWRITE: old files out, new files in ─┬─ all partitions: done
      ▲      nothing is seen of it    from here on,                                           │
      │                               writers for the old number are refused                  └─ some changed meanwhile
      └────────────────────────────────────────────────────────────────────────────── again for those

The bucket of a key depends on the number of buckets, so that a partition's files must all agree on it. Every file records the
number it was written for, and this is how that holds with concurrent writers:

- A writer who started before finds another `bucket` when it commits, and its commit conflicts; one who starts after the option
  changed and before the partition is rewritten is refused at once, with the old number in the message.
- Rows that were committed while a partition was rewritten are found by the commit: a file of the old number would stay behind, or
  one that was read is removed. The work on that partition is discarded and done again, and now no writer can interfere.
- The commit removes exactly the files that were read, never "whatever is there".

Rewriting comes before the change of the option because it takes long, and writers are refused only after it. A crash before
the option changes leaves orphan files. After that it leaves partitions of the old number: they are read as before,
writers are refused, and the same call continues from there. Partitions that are left out keep their number until they are
rewritten.

In a table with postponed buckets every partition has a number of its own; no option changes, and postponed rows stay postponed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lakelet.commit.committed_files import remove_files
from lakelet.commit.metadata.missing_file import SnapshotExpiredError
from lakelet.commit.metadata.schemas import SchemaVersions, change_schema, latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.request import CommitRequest
from lakelet.compact.all_or_nothing import run_all_or_nothing
from lakelet.compact.buckets.rescale_plan import RescaleTask, rescale_tasks
from lakelet.compact.buckets.rescale_rewrite import RescaleRewriter
from lakelet.compact.compaction import THREADS, Scope, check_compactable, scope_entries
from lakelet.compact.partition_commit import MOST_LOSSES, Group, commit_partitions
from lakelet.compact.progress import Cancel, CompactionCancelled, Progress, Watch
from lakelet.errors import CommitUnknownError, ConflictError, InvalidError, LakeletError
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.schema import TableSchema
from lakelet.model.schema_change import evolution
from lakelet.model.snapshot import Snapshot
from lakelet.options import BUCKET, TableOptions
from lakelet.scan.plan import Planner
from lakelet.storage.home import TableHome

# Java keeps the number in an INT, and a folder per bucket is made.
_MOST_BUCKETS = 2**31 - 1
_WHY_NOT = {
    BucketMode.HASH_DYNAMIC: "has dynamic buckets, whose number grows with its rows",
    BucketMode.KEY_DYNAMIC: "has dynamic buckets, whose number grows with its rows",
    BucketMode.BUCKET_UNAWARE: "has no buckets",
}


RescaleElsewhere = Callable[[TableSchema, Sequence[RescaleTask]], list[Group]]


@dataclass(frozen=True, slots=True)
class Rescale:
    """Rewrites the partitions of a scope into `buckets` buckets. `changed` is called with the schema that has the new number;
    `elsewhere` runs tasks on other machines."""

    home: TableHome
    buckets: int
    scope: Callable[[TableSchema], Scope]
    progress: Progress | None = None
    cancel: Cancel | None = None
    threads: int = THREADS
    changed: Callable[[TableSchema], None] | None = None
    elsewhere: RescaleElsewhere | None = None

    def run(self) -> Snapshot | None:
        """The last snapshot made; None where no partition had another number of buckets, or the caller cancelled."""
        made: Snapshot | None = None
        check_rescalable(self.home, latest_schema(self.home), self.buckets)
        losses, changed = 0, False
        while True:
            snapshot = latest_snapshot(self.home)
            # A schema that is read after the snapshot knows every column of its files.
            schema = latest_schema(self.home)
            if changed:
                self._check_unchanged(schema)
            try:
                tasks = [] if snapshot is None else self.plan(schema, snapshot)
                # As long as the option is another, rows of the old number may still come in.
                if not tasks and (changed or self._has_buckets(schema)):
                    return made
                groups = self.rewrite(schema, tasks) if self.elsewhere is None else self.elsewhere(schema, tasks)
            except CompactionCancelled:
                return made
            except SnapshotExpiredError:
                losses += 1
                if losses == MOST_LOSSES:
                    raise
                continue
            newest = schema if self._has_buckets(schema) else self._set_buckets(schema, groups)
            changed = True
            whole = False
            if _same_layout(schema, newest):
                committed, whole = commit_rescaled(self.home, [_of_version(group, newest.id) for group in groups])
                made = committed or made
            else:
                self._remove(schema, groups)
            losses += not whole
            if losses == MOST_LOSSES:
                raise ConflictError(
                    f"{self.home.where(self.home.paths.branch_root)}: gave up after {losses} attempts, each time others had "
                    f"changed partitions that were rewritten for {self.buckets} buckets: rescale again"
                )

    def plan(self, schema: TableSchema, snapshot: Snapshot) -> list[RescaleTask]:
        """The partitions that have another number of buckets."""
        entries = scope_entries(self.home, schema, snapshot, self.scope(schema))
        versions = SchemaVersions(self.home, {schema.id: schema})
        planner = Planner(self.home, schema, versions, TableOptions(schema.options))
        vectors = planner.deletion_vectors(snapshot) if snapshot.index_manifest is not None else {}
        return rescale_tasks(entries, self.buckets, snapshot_id=snapshot.id, vectors=vectors)

    def rewrite(self, schema: TableSchema, tasks: Sequence[RescaleTask]) -> list[Group]:
        """Run the tasks; after an error or when cancelled there are no new files."""
        rows, size = sum(task.row_count for task in tasks), sum(task.size for task in tasks)
        watch = Watch(len(tasks), rows, size, self.progress, self.cancel)
        rewriter = RescaleRewriter(self.home.deferring(), schema, SchemaVersions(self.home, {schema.id: schema}))
        return run_all_or_nothing(
            sorted(tasks, key=lambda task: -task.size),
            lambda task: rewriter.rewrite(task, watch),
            threads=self.threads,
            undo=lambda groups: self._remove(schema, groups),
        )

    def _has_buckets(self, schema: TableSchema) -> bool:
        """Whether the newest schema has the new number of buckets."""
        buckets = TableOptions(schema.options).get(BUCKET)
        return buckets == self.buckets or bucket_mode(schema) is BucketMode.POSTPONE_MODE

    def _check_unchanged(self, schema: TableSchema) -> None:
        """Refuse to go on where a concurrent rescale set another number: the two would undo each other's work forever."""
        if not self._has_buckets(schema):
            raise ConflictError(
                f"{self.home.where(self.home.paths.branch_root)}: while it was rewritten for {self.buckets} buckets, somebody "
                f"else changed the number to {TableOptions(schema.options).get(BUCKET)}"
            )

    def _set_buckets(self, schema: TableSchema, groups: Sequence[Group]) -> TableSchema:
        """Set the number of buckets from now on; returns the newest schema."""
        try:
            newest = set_buckets(self.home, self.buckets)
        except CommitUnknownError:
            raise
        except LakeletError:
            self._remove(schema, groups)
            raise
        if self.changed is not None:
            self.changed(newest)
        return newest

    def _remove(self, schema: TableSchema, groups: Sequence[Group]) -> None:
        remove_files(self.home, schema, [message for group in groups for message in group])


def check_rescalable(home: TableHome, schema: TableSchema, buckets: object) -> None:
    """InvalidError unless a table can be rescaled to this number of buckets."""
    check_compactable(schema)
    if isinstance(buckets, bool) or not isinstance(buckets, int) or not 1 <= buckets <= _MOST_BUCKETS:
        raise InvalidError(f"buckets {buckets!r}: expected a whole number from 1 to {_MOST_BUCKETS}")
    reason = _WHY_NOT.get(bucket_mode(schema))
    if reason is not None:
        raise InvalidError(
            f"{home.where(home.paths.root)} {reason} ('bucket' = {TableOptions(schema.options).get(BUCKET)}): only a table with "
            "a fixed number of buckets, or with postponed ones, can be given another"
        )


def set_buckets(home: TableHome, buckets: int) -> TableSchema:
    """The newest schema with this number of buckets, created if needed."""

    def change(schema: TableSchema) -> TableSchema:
        check_rescalable(home, schema, buckets)
        return evolution.change_options(schema, {BUCKET.name: str(buckets)})

    return change_schema(home, change)


def commit_rescaled(home: TableHome, groups: Sequence[Group]) -> tuple[Snapshot | None, bool]:
    """Commits rewritten partitions; the snapshot made, and whether all partitions were in it."""
    user = home.ids.uuid()
    return commit_partitions(home, groups, lambda messages: CommitRequest(user, messages))


def _of_version(group: Group, schema_id: int) -> Group:
    """The messages with their new files as files of another version of the schema, which has the same columns."""
    return tuple(
        replace(message, new_files=tuple(replace(file, schema_id=schema_id) for file in message.new_files))
        for message in group
    )


def _same_layout(one: TableSchema, other: TableSchema) -> bool:
    """Whether two versions differ in nothing but the number of buckets."""
    options = [{key: text for key, text in schema.options.items() if key != BUCKET.name} for schema in (one, other)]
    return replace(one, options={}, id=0, time_ms=0) == replace(other, options={}, id=0, time_ms=0) and (
        options[0] == options[1]
    )
