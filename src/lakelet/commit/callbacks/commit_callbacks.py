"""Commit callbacks: user code that is called after every commit.

    class Audit:
        def __init__(self, argument=None): ...                            # `commit.callback.<class>.param`, where it is set
        def open(self, home, schema): ...                                 # optional: the table, before the first call
        def call(self, base_files, delta_files, identifier, snapshot): ...
        def close(self): ...                                              # optional

A callback is called for every snapshot committed under a schema that names it, in order, at least once: never skipped,
sometimes repeated. The committer calls this once its snapshot is committed:

    read the record of what is settled ─ call for each later snapshot up to ours ─ write the record

A crash anywhere before the record is written makes the next commit, of whichever writer, call again; a snapshot that another
writer has just made, and may be calling for now, is called for here as well if it is not recorded. Whatever a callback raises
is logged, changes nothing about the commit, and ends the round: the record goes no further than the last success, so
that the next commit tries the same snapshot again. What interrupts a program from outside (KeyboardInterrupt, a cancelled task)
is raised again after that; a callback that wants to end the program (SystemExit) is ignored. A class that the program does
not allow (`callback_classes`) is not imported.
A snapshot that was expired before its turn is reported and skipped.

A callback may write to its own table: for that commit it is called with the next one, to avoid endless recursion.

Nothing here ever fails a commit, and a table without callbacks has no cost.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol, TypeAlias, cast

from lakelet.commit.callbacks.callback_classes import COMMIT_METHODS, CallbackClass, commit_classes, make
from lakelet.commit.callbacks.callback_files import CommitFiles, base_files, delta_files
from lakelet.commit.callbacks.callback_record import Record, Settled, extended, read_record, write_record
from lakelet.commit.metadata.manifests import ManifestSettings
from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.commit.metadata.snapshots import snapshot_is_gone, snapshots_backwards, try_snapshot
from lakelet.commit.metadata.version_ids import snapshot_ids
from lakelet.errors import NotFoundError
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import CommitKind, Snapshot
from lakelet.options import TableOptions
from lakelet.storage.home import TableHome
from lakelet.storage.paths import MAIN_BRANCH

_LOG = logging.getLogger(__name__)

CommitIdentifier: TypeAlias = tuple[str, int, CommitKind]

# Calls after which the record is written, where many are pending.
_NOTED_EVERY = 32
# The callbacks that this thread is running, by table and class.
_RUNNING: ContextVar[frozenset[tuple[str, str]]] = ContextVar("running commit callbacks", default=frozenset())


class CommitCallback(Protocol):
    """The interface of a class named by `commit.callbacks`; the same commit may be passed more than once.

    `base_files` are the files that were live before the commit, `delta_files` those that it added and removed; both are read
    at their first use. `identifier` is the commit's user, identifier and kind.
    """

    def call(
        self, base_files: CommitFiles, delta_files: CommitFiles, identifier: CommitIdentifier, snapshot: Snapshot
    ) -> None: ...


def run_commit_callbacks(home: TableHome, schema: TableSchema, snapshot: Snapshot) -> None:
    """Call the table's callbacks for a committed snapshot, and for those before it whose calls are pending."""
    for named in commit_classes(TableOptions(schema.options)):
        running, this = _RUNNING.get(), (home.where(home.paths.branch_root), named.name)
        if this in running:
            continue
        token = _RUNNING.set(running | {this})
        try:
            _CallbackRound(home, schema, named).run(snapshot)
        except BaseException as error:
            # Whatever goes wrong in or around a callback, the snapshot is committed and its caller must be told so.
            _LOG.warning(
                "commit callback %s could not be run for snapshot %d of %s (committed); the next commit tries again: %s: %s",
                named.spelling,
                snapshot.id,
                home.where(home.paths.branch_root),
                type(error).__name__,
                error,
            )
            if not isinstance(error, (Exception, SystemExit)):
                raise
        finally:
            _RUNNING.reset(token)


@dataclass(frozen=True, slots=True)
class _CallbackRound:
    """The calls of one callback class after one commit."""

    home: TableHome
    schema: TableSchema
    named: CallbackClass

    def run(self, snapshot: Snapshot) -> None:
        """Make all pending calls up to the snapshot, and record them."""
        callback = make(self.named, COMMIT_METHODS, self.home.callback_modules)
        try:
            if hasattr(callback, "open"):
                callback.open(self.home, self.schema)
            self._call_owed(cast(CommitCallback, callback), snapshot)
        finally:
            if hasattr(callback, "close"):
                callback.close()

    def _call_owed(self, callback: CommitCallback, snapshot: Snapshot) -> None:
        record = read_record(self.home, self.named.name)
        start = self._last_settled(record, snapshot)
        owed: Iterator[Snapshot]
        settled: list[Settled] = []
        if start is None:
            first, due = self._never_called(snapshot)
            # Earlier snapshots need no call. That is recorded even if the first call fails, or every commit would search for
            # it.
            settled.append(first)
            owed = iter(due)
        else:
            owed = self._after(start.snapshot_id, snapshot)
        for each in owed:
            if not self._called(callback, each):
                break
            settled.append(Settled.of(each))
            # A long backlog is not repeated from its start if the writer dies on it.
            if len(settled) % _NOTED_EVERY == 0:
                record = self._recorded(record, settled)
        self._recorded(record, settled)

    def _recorded(self, record: Record, settled: Sequence[Settled]) -> Record:
        """Record more snapshots as settled."""
        changed = extended(record, settled)
        if changed != record:
            write_record(self.home, self.named.name, changed)
        return changed

    def _called(self, callback: CommitCallback, snapshot: Snapshot) -> bool:
        """Whether the snapshot is settled: the callback succeeded, or the snapshot was expired during the call."""
        threads = ManifestSettings.of(TableOptions(self.schema.options)).threads
        before, changed = base_files(self.home, snapshot, threads), delta_files(self.home, snapshot, threads)
        try:
            callback.call(before, changed, snapshot.committed_as(), snapshot)
        except (Exception, SystemExit) as error:
            if snapshot_is_gone(self.home, snapshot):
                self._report_expired(snapshot.id, snapshot.id)
                return True
            _LOG.warning(
                "commit callback %s failed on snapshot %d of %s (committed), and is called again with the next commit: %s: %s",
                self.named.spelling,
                snapshot.id,
                self.home.where(self.home.paths.branch_root),
                type(error).__name__,
                error,
            )
            return False
        return True

    def _last_settled(self, record: Record, snapshot: Snapshot) -> Settled | None:
        """The last entry of the record that a rollback has not undone; None where there is none."""
        for entry in reversed(record):
            if entry.snapshot_id == 0:
                return entry
            found = snapshot if entry.snapshot_id == snapshot.id else try_snapshot(self.home, entry.snapshot_id)
            if found is not None and entry.is_of(found):
                return entry
            # Ids have no gaps: one that is missing below ours was expired.
            if found is None and entry.snapshot_id < snapshot.id:
                return entry
        return None

    def _never_called(self, snapshot: Snapshot) -> tuple[Settled, Sequence[Snapshot]]:
        """The newest snapshot without a pending call, and those after it, where the callback has no record.

        Calls are pending for the commits since it was first named: from ours back to the first one under a schema without it.
        """
        is_due = self._due()
        due = [snapshot] if is_due(snapshot) else []
        for earlier in snapshots_backwards(self.home, snapshot.id - 1) if due else ():
            if not is_due(earlier):
                return Settled.of(earlier), due[::-1]
            due.append(earlier)
        if not due:
            return Settled.of(snapshot), ()
        oldest = due[-1].id
        # A branch begins with a snapshot of the branch that it was made from.
        if oldest > 1 and self.home.paths.branch == MAIN_BRANCH:
            self._report_expired(1, oldest - 1)
        return Settled(oldest - 1, ""), due[::-1]

    def _after(self, number: int, snapshot: Snapshot) -> Iterator[Snapshot]:
        """The snapshots whose calls are pending after that id, up to ours; expired ones are reported."""
        is_due = self._due()
        current = number + 1
        while current <= snapshot.id:
            found = snapshot if current == snapshot.id else try_snapshot(self.home, current)
            if found is not None:
                if is_due(found):
                    yield found
                current += 1
                continue
            ids = snapshot_ids(self.home)
            oldest = min(max(ids[0], current + 1), snapshot.id) if ids else snapshot.id
            self._report_expired(current, oldest - 1)
            current = oldest

    def _due(self) -> _Due:
        return _Due(SchemaVersions(self.home, {self.schema.id: self.schema}), self.named.name)

    def _report_expired(self, first: int, last: int) -> None:
        _LOG.warning(
            "commit callback %s: snapshots %d to %d of %s were expired before it could be called for them",
            self.named.spelling,
            first,
            last,
            self.home.where(self.home.paths.branch_root),
        )


@dataclass(frozen=True, slots=True)
class _Due:
    """Whether snapshots were committed while the table named the callback."""

    schemas: SchemaVersions
    name: str

    def __call__(self, snapshot: Snapshot) -> bool:
        try:
            options = self.schemas(snapshot.schema_id).options
        except NotFoundError:
            # It can no longer be determined, and a call too many is better than one too few.
            return True
        return any(named.name == self.name for named in commit_classes(TableOptions(options)))
