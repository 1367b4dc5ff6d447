"""A change of rows that were looked up in one snapshot, retried when a concurrent commit changed these rows.

    newest snapshot ─ look up ─ write files ─ commit ─┬─ committed ─ compaction and upkeep
          ↑             │                             └─ conflict: the files are removed
          └─────────────┴─ the snapshot is expired meanwhile ──┘

This owns the retry loop and the removal of uncommitted files; `prepare` decides what is looked up and written.
Nothing is visible before the commit, and a crash on the way leaves files that nobody names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from lakelet.commit.committed_files import remove_files
from lakelet.commit.metadata.missing_file import SnapshotExpiredError
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.errors import CommitUnknownError, ConflictError, LakeletError
from lakelet.model.commit_message import CommitMessage
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome
from lakelet.table.write.after_write import AfterWrite, RunsOf
from lakelet.table.write.repetition import Repetition
from lakelet.table.write.table_commit import TableCommit


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prepared change: its files, and how many sorted runs their buckets had before."""

    messages: tuple[CommitMessage, ...]
    runs_of: RunsOf = lambda _: 0


@dataclass(frozen=True, slots=True)
class LookedUpChange:
    """A change that `prepare` computes on a version of the table.

    With `rests_on_all` it depends on the absence of rows as much as on their presence, so that any row written meanwhile
    makes it retry; otherwise only a change of what it touches does.
    """

    home: TableHome
    commit: TableCommit
    prepare: Callable[[TableSchema, Snapshot | None], Prepared]
    rests_on_all: bool = False

    def run(self) -> Snapshot | None:
        """Change and commit; the last snapshot made, None where there was nothing to change."""
        commit, done = replace(self.commit, fresh=True).look_back()
        if done is not None:
            return AfterWrite(self.home, latest_schema(self.home), commit).repeated(done)
        repetition: Repetition | None = None
        while True:
            # The snapshot comes first: a schema read after it knows every column of its files.
            snapshot = latest_snapshot(self.home)
            schema = latest_schema(self.home)
            repetition = repetition or Repetition(self.home, schema)
            try:
                prepared = self.prepare(schema, snapshot)
            except SnapshotExpiredError as expired:
                repetition.again(expired)
                continue
            try:
                made = self._looked_at(replace(commit, schema=schema), snapshot).commit(prepared.messages)
                break
            except CommitUnknownError:
                raise
            except ConflictError as conflict:
                remove_files(self.home, schema, prepared.messages)
                repetition.again(conflict)
            except LakeletError:
                # After other errors the outcome of the commit is unknown: committed files must be kept.
                remove_files(self.home, schema, prepared.messages)
                raise
        return AfterWrite(self.home, schema, commit).run(made, prepared.messages, prepared.runs_of)

    def _looked_at(self, commit: TableCommit, snapshot: Snapshot | None) -> TableCommit:
        version = (0, "") if snapshot is None else (snapshot.id, snapshot.delta_manifest_list)
        return replace(commit, read_at=version[0], same_rows_as=version if self.rests_on_all else None)
