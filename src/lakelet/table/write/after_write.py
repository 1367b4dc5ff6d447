"""The steps of a write after its commit, unless the table is `write-only`: compaction of the buckets it touched, and upkeep.

    APPEND snapshot ─ buckets with too many runs ─ compacted ─ COMPACT snapshot, same user and identifier

A bucket is examined only if the write found enough runs in it that the policy may ask for compaction, so most writes read
nothing here. Where compaction makes the changelog, it follows every write. Rows are committed before any of this, and failures
are logged, with one exception: where readers do not see level 0, a write whose compaction failed would look like one that lost
its rows. A changelog that is late is told of by the next compaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lakelet.commit.metadata.manifests import read_entries, read_manifest_list
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot, try_snapshot
from lakelet.commit.upkeep import upkeep
from lakelet.compact.compaction import Committer, Compaction, Elsewhere, Scope, touched
from lakelet.errors import CommitUnknownError, ConflictError, LakeletError
from lakelet.lsm.changelog_producer import FULL_COMPACTION
from lakelet.lsm.universal import UniversalPolicy
from lakelet.model.bucket_mode import Place
from lakelet.model.commit_message import CommitMessage
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import CommitKind, Snapshot
from lakelet.options import CHANGELOG_PRODUCER, COMPACTION_MIN_FILE_NUM, WRITE_ONLY, TableOptions
from lakelet.scan.tree import hides_level0, takes_level0
from lakelet.storage.home import TableHome
from lakelet.table.write.table_commit import TableCommit

_LOG = logging.getLogger(__name__)
RunsOf = Callable[[Place], int]
_MANY = 2**31


@dataclass(frozen=True, slots=True)
class AfterWrite:
    """The steps after the commit of a write to a table in its newest schema; compaction may run `elsewhere`, with
    `extra` options. `looks` says whether this write looks for files to compact: by default when the table's policy has it due;
    False leaves them to a later write or to a job, unless readers would not see the rows before."""

    home: TableHome
    schema: TableSchema
    commit: TableCommit
    elsewhere: Elsewhere | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    looks: bool | None = None

    def run(self, made: Snapshot | None, messages: Sequence[CommitMessage], runs_of: RunsOf) -> Snapshot | None:
        """Run the steps; the last snapshot of the write. `runs_of` gives how many runs a bucket had before."""
        options = TableOptions(self.schema.options)
        if options.get(WRITE_ONLY):
            return made
        if made is None:
            # Expiry is due even without new rows.
            newest = latest_snapshot(self.home) if self.commit.upkeep_when_empty else None
            if newest is not None:
                upkeep(self.home, self.schema, newest)
            return None
        last = self._compact(made, messages, runs_of, options)
        upkeep(self.home, self.schema, last)
        return last

    def _compact(
        self, made: Snapshot, messages: Sequence[CommitMessage], runs_of: RunsOf, options: TableOptions
    ) -> Snapshot:
        waits = bool(self.schema.primary_keys) and _readers_wait(options)
        if self.looks is False and not waits:
            return made
        if not self.schema.primary_keys:
            # Small files accumulate over commits, so that looking for them at every one of them is a waste.
            is_turn = self.looks or made.id % options.get(COMPACTION_MIN_FILE_NUM) == 0
            return self._compacted(made, touched(messages) if is_turn else frozenset())
        policy = UniversalPolicy.of(options)
        is_full = self._full_due(policy, made)
        always = is_full or takes_level0(options) or policy.looks_always or self.looks is True
        places = frozenset(
            (message.partition, message.bucket)
            for message in messages
            if message.new_files
            and (always or runs_of((message.partition, message.bucket)) + len(message.new_files) >= policy.trigger)
        )
        if is_full and policy.full_delta_commits != 1 and options.get(CHANGELOG_PRODUCER) == FULL_COMPACTION:
            # The changelog tells also of what the writes before this one put into other buckets.
            return self._compacted(made, None, full=True)
        return self._compacted(made, places, full=is_full, hides=hides_level0(options))

    def repeated(self, done: Snapshot) -> Snapshot:
        """The last snapshot of a repeated write; compacts if it was interrupted before readers saw its rows, or the
        changelog told of them."""
        options = TableOptions(self.schema.options)
        following = try_snapshot(self.home, done.id + 1)
        last = done
        if following is not None and following.committed_as() == (*done.committed_as()[:2], CommitKind.COMPACT):
            last = following
        if options.get(WRITE_ONLY) or not self.schema.primary_keys or not takes_level0(options):
            return last
        manifests = read_manifest_list(self.home, done.delta_manifest_list)
        entries = read_entries(self.home, manifests, columns=["_PARTITION", "_BUCKET"])
        columns = (entries.column(name).to_pylist() for name in ("_PARTITION", "_BUCKET"))
        return self._compacted(last, frozenset(zip(*columns, strict=True)), full=False, hides=hides_level0(options))

    def _compacted(
        self, made: Snapshot, places: frozenset[Place] | None, *, full: bool = False, hides: bool = False
    ) -> Snapshot:
        if places is not None and not places:
            return made
        scope = Scope(places=places)
        compaction = Compaction(
            self.home,
            self.schema,
            full,
            scope,
            inline=True,
            elsewhere=self.elsewhere,
            insists=hides,
            extra=self.extra,
        )
        try:
            return compaction.run(Committer(self.commit.user, self.commit.identifier)) or made
        except LakeletError as error:
            if hides:
                # Of a compaction whose own outcome is unknown nobody can tell whether the rows are hidden.
                kind = CommitUnknownError if isinstance(error, CommitUnknownError) else ConflictError
                raise kind(
                    f"{self.home.where(self.home.paths.branch_root)}: snapshot {made.id} is committed, but its rows stay hidden "
                    f"until the table is compacted, and that failed: {error}"
                ) from error
            _LOG.warning("snapshot %d is committed, but the compaction after it failed: %s", made.id, error)
            return made

    def _full_due(self, policy: UniversalPolicy, made: Snapshot) -> bool:
        """Whether it is time for a full compaction, counting every snapshot since the write before this one."""
        if policy.full_delta_commits is None:
            return False
        before = try_snapshot(self.home, made.id - 1) if made.id > 1 else None
        skipped = before is not None and before.commit_kind is CommitKind.COMPACT
        return policy.full_due(made.id) or (skipped and policy.full_due(made.id - 1))


def _readers_wait(options: TableOptions) -> bool:
    """Whether readers wait for compaction, for rows or for the changelog."""
    return takes_level0(options) or options.get(CHANGELOG_PRODUCER) == FULL_COMPACTION


def after_commit(commit: TableCommit, made: Snapshot | None, messages: Sequence[CommitMessage]) -> Snapshot | None:
    """The last snapshot of a commit whose files were written elsewhere, where the numbers of runs are unknown."""
    return AfterWrite(commit.home, latest_schema(commit.home), commit).run(made, messages, lambda _: _MANY)
