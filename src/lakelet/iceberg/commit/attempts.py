"""Send a change to the catalog until it is committed, is impossible, or its outcome is unknown.

    now ─ change for its head ─ manifests ─ one request: add the snapshot and move the branch,
     ▲                                      if the table is the same, the branch has not moved, the spec is the planned one
     │                                           │
     └── wait, with jitter; remove manifests ◄── concurrent commit

The request is the only step that makes anything visible. Any response that is not a success is followed by a search for
the commit's id among the table's snapshots, for a response can be lost after the catalog has acted. Where the catalog does not
respond and the branch has not moved, the request may still be applied: that is a CommitUnknownError, and its files are kept.
They are kept too where the table is not under its name any more, for it may have been renamed with the commit in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from pyiceberg.exceptions import BadRequestError
from pyiceberg.table import TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertDefaultSpecId,
    AssertRefSnapshotId,
    AssertTableUUID,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)

from lakelet.clock import Clock
from lakelet.errors import CommitUnknownError, ConflictError, InvalidError, LakeletError, NotFoundError
from lakelet.events import Committed, publish
from lakelet.iceberg.catalog.library_errors import first_line, lakelet_errors
from lakelet.iceberg.commit.change import Change
from lakelet.iceberg.commit.change_events import publish_unknown
from lakelet.iceberg.commit.lost_metadata import remove_lost_metadata
from lakelet.iceberg.commit.outcomes import Outcome, never_sent, outcome_of
from lakelet.iceberg.commit.request import send
from lakelet.iceberg.commit.snapshot.live_files import LiveFiles
from lakelet.iceberg.commit.snapshot.snapshot_files import SnapshotFiles
from lakelet.iceberg.commit.snapshot.summary import COMMIT_ID, JOB_ID
from lakelet.iceberg.commit.stream_batch import StreamBatch
from lakelet.iceberg.commit.table_settings import number_property
from lakelet.iceberg.table import IcebergTable
from lakelet.ids import Ids

# More than Iceberg's four: a retry costs little, and a job that gives up loses all its work.
_RETRIES = 10
_LOOKS = 4

# The change for a head, or None where there is nothing to do; raises where the commit is impossible.
Plan = Callable[[IcebergTable, Snapshot | None, LiveFiles], Change | None]


@dataclass(frozen=True, slots=True)
class MadeSnapshot:
    """A committed snapshot."""

    id: int
    operation: str
    added_files: int
    added_rows: int
    removed_files: int


def made_snapshot(snapshot: Snapshot) -> MadeSnapshot:
    """A committed snapshot with the counts of its summary."""
    summary: Mapping[str, str] = snapshot.summary.additional_properties if snapshot.summary is not None else {}
    return MadeSnapshot(
        snapshot.snapshot_id,
        snapshot.summary.operation.value if snapshot.summary is not None else "append",
        int(summary.get("added-data-files", 0)),
        int(summary.get("added-records", 0)),
        int(summary.get("deleted-data-files", 0)),
    )


def find_commit(metadata: TableMetadata, commit_id: str) -> Snapshot | None:
    """The snapshot of a commit id, on any branch."""
    for snapshot in reversed(metadata.snapshots):
        if snapshot.summary is not None and snapshot.summary.additional_properties.get(COMMIT_ID) == commit_id:
            return snapshot
    return None


def head_of(table: IcebergTable, branch: str) -> Snapshot | None:
    """The newest snapshot of a branch; None where the table is empty. NotFoundError names the branches there are."""
    metadata = table.metadata
    ref = metadata.refs.get(branch)
    if ref is None:
        if branch == MAIN_BRANCH:
            return None
        known = [name for name, one in metadata.refs.items() if one.snapshot_ref_type == SnapshotRefType.BRANCH]
        raise NotFoundError(
            f"table {table.full_name} has no branch {branch!r}; there are {', '.join(sorted({*known, MAIN_BRANCH}))}"
        )
    if ref.snapshot_ref_type != SnapshotRefType.BRANCH:
        raise InvalidError(f"table {table.full_name}: {branch!r} is a tag, and only branches are written to")
    return metadata.snapshot_by_id(ref.snapshot_id)


def find_batch(table: IcebergTable, branch: str, batch: StreamBatch) -> Snapshot | None:
    """The snapshot of a stream's batch on a branch, the branch's newest where it is gone; None where the batch is not there.

    The number of a batch says nothing about other branches, which may have been given the same one with other rows.
    """
    known = batch.known(table.metadata, branch)
    if known is not None and known.batch_id < batch.batch_id:
        return None
    snapshots = {snapshot.snapshot_id: snapshot for snapshot in table.metadata.snapshots}
    head = head_of(table, branch)
    found = head
    while found is not None:
        if found.summary is not None and found.summary.additional_properties.get(COMMIT_ID) == batch.commit_id:
            return found
        found = None if found.parent_snapshot_id is None else snapshots.get(found.parent_snapshot_id)
    return None if known is None else head


class SnapshotCommit:
    """One change of one branch. That of a `batch` of a stream sets the table property by which the batch is known."""

    def __init__(
        self,
        *,
        branch: str,
        commit_id: str,
        job: str,
        ids: Ids,
        clock: Clock,
        spec_id: int | None = None,
        batch: StreamBatch | None = None,
    ) -> None:
        self._batch = batch
        self._branch = branch
        self._commit_id = commit_id
        self._job = job
        self._ids = ids
        self._clock = clock
        self._spec_id = spec_id
        self._tried: set[int] = set()
        # The heads of the requests that may have been applied, or may still be.
        self._pending: list[int | None] = []

    @property
    def undecided(self) -> bool:
        """Whether the outcome is unknown; then none of the files may be removed."""
        return bool(self._pending)

    def is_ours(self, snapshot_id: int) -> bool:
        """Whether a snapshot was made by this very commit, not by another one of the same id."""
        return snapshot_id in self._tried

    def run(self, table: IcebergTable, plan: Plan, *, look_first: bool = False) -> MadeSnapshot | None:
        """Commits, with retries. `look_first`: the id may have been committed before, by anyone."""
        began = self._clock.monotonic()
        live = LiveFiles(table.library.io, table.source)
        now = table.reloaded()
        number = 0
        while True:
            if look_first or self.undecided:
                found = self._found(now)
                if found is not None:
                    self._pending.clear()
                    self._publish(now, found)
                    return made_snapshot(found)
                self._forget_moved(now)
            head = head_of(now, self._branch)
            try:
                with lakelet_errors(f"table {table.full_name}"):
                    change = plan(now, head, live)
                if change is None or change.empty:
                    return None
                files, snapshot = self._write(now, head, change, live)
            except NotFoundError as gone:
                now = self._newer(now, head, gone)
                self._wait(now, number, began, gone)
                number += 1
                continue
            error = self._send(now, head, snapshot)
            if error is None:
                return made_snapshot(snapshot)
            sent = now
            try:
                now, found = self._after(sent, head, error)
            except BaseException:
                if self.undecided:
                    publish_unknown(sent, "commit", self._branch)
                if not self.undecided:
                    files.remove()
                raise
            if found is not None:
                self._publish(now, found)
                if not self.is_ours(found.snapshot_id) and self._moved(now, head):
                    files.remove()
                return made_snapshot(found)
            files.remove()
            remove_lost_metadata(sent, now, snapshot.snapshot_id)
            self._wait(now, number, began, error)
            number += 1

    def _found(self, now: IcebergTable) -> Snapshot | None:
        """The snapshot of this commit."""
        if self._batch is not None:
            return find_batch(now, self._branch, self._batch)
        return find_commit(now.metadata, self._commit_id)

    def _publish(self, now: IcebergTable, found: Snapshot) -> None:
        """Notifies listeners of a snapshot of this very commit that was found although the catalog did not report it."""
        if self.is_ours(found.snapshot_id):
            operation = "" if found.summary is None else found.summary.operation.value
            publish(Committed(now.table_name, self._branch, found.snapshot_id, operation))

    def _newer(self, now: IcebergTable, head: Snapshot | None, gone: NotFoundError) -> IcebergTable:
        """The table with a newer head than one whose files are missing because it has expired; else raises `gone`."""
        later = now.reloaded() if isinstance(gone.__cause__, FileNotFoundError) else now
        if not self._moved(later, head):
            raise gone
        return later

    def _write(
        self, now: IcebergTable, head: Snapshot | None, change: Change, live: LiveFiles
    ) -> tuple[SnapshotFiles, Snapshot]:
        snapshot_id = _snapshot_id(now.metadata, self._ids)
        files = SnapshotFiles(now, live, attempt=self._ids.uuid(), snapshot_id=snapshot_id)
        properties = {COMMIT_ID: self._commit_id, JOB_ID: self._job}
        try:
            with lakelet_errors(f"table {now.full_name}"):
                return files, files.write(change, head, properties, self._clock.now_ms())
        except BaseException:
            files.remove()
            raise

    def _send(self, now: IcebergTable, head: Snapshot | None, snapshot: Snapshot) -> Exception | None:
        self._tried.add(snapshot.snapshot_id)
        requirements: list[TableRequirement] = [
            AssertTableUUID(uuid=now.metadata.table_uuid),
            AssertRefSnapshotId.model_validate({"ref": self._branch, "snapshot-id": _id(head)}),
        ]
        if self._spec_id is not None:
            requirements.append(AssertDefaultSpecId.model_validate({"default-spec-id": self._spec_id}))
        updates: tuple[TableUpdate, ...] = (
            AddSnapshotUpdate(snapshot=snapshot),
            moved_ref(self._branch, snapshot.snapshot_id, now.metadata.refs.get(self._branch)),
        )
        if self._batch is not None:
            updates = (*updates, SetPropertiesUpdate(updates=self._batch.properties(self._branch)))
        self._pending.append(_id(head))
        try:
            send(now, tuple(requirements), updates)
        except Exception as error:
            return error
        self._pending.clear()
        return None

    def _after(
        self, sent: IcebergTable, head: Snapshot | None, error: Exception
    ) -> tuple[IcebergTable, Snapshot | None]:
        """The outcome of a request that ended with an error: the current table, and the snapshot if it is committed after all."""
        outcome = outcome_of(error, sent.library.catalog)
        now = None
        for look in range(_LOOKS):
            now = self._look(sent, head, error, outcome)
            if now is None and outcome is Outcome.REFUSED and never_sent(error):
                break
            if now is not None:
                found = self._found(now)
                if found is not None:
                    self._pending.clear()
                    return now, found
                if outcome is not Outcome.UNKNOWN or self._moved(now, head):
                    break
            if look + 1 < _LOOKS:
                self._clock.sleep((0.1 + self._ids.jitter()) * 2**look)
        where = f"table {sent.full_name}"
        if now is None and not (outcome is Outcome.REFUSED and never_sent(error)):
            raise CommitUnknownError(
                f"{where}: commit {self._commit_id} failed and the catalog does not answer; its files are left: "
                f"{first_line(error)}"
            ) from error
        if now is not None and outcome is Outcome.UNKNOWN and not self._moved(now, head):
            raise CommitUnknownError(
                f"{where}: the catalog did not say whether commit {self._commit_id} is committed, and no snapshot has it yet; "
                f"its files are left: {first_line(error)}"
            ) from error
        self._pending.remove(_id(head))
        if now is not None:
            self._forget_moved(now)
        unmoved = now is not None and now.library.metadata_location == sent.library.metadata_location
        refused = outcome is Outcome.REFUSED and not (now is not None and _overtaken(sent, now, error))
        if now is None or refused or (isinstance(error, ValueError) and unmoved):
            with lakelet_errors(where):
                raise error
        return now, None

    def _look(
        self, sent: IcebergTable, head: Snapshot | None, error: Exception, outcome: Outcome
    ) -> IcebergTable | None:
        """The current table; None where it cannot be loaded. ConflictError where it was dropped or replaced first."""
        try:
            return sent.reloaded()
        except ConflictError as gone:
            conflict: ConflictError = gone
        except NotFoundError as gone:
            if isinstance(gone.__cause__, FileNotFoundError):
                # The catalog has the table, but its metadata cannot be read at the moment.
                return None
            conflict = ConflictError(f"table {sent.full_name} was dropped meanwhile")
        except LakeletError:
            return None
        if outcome is Outcome.UNKNOWN:
            raise CommitUnknownError(
                f"{conflict}, after commit {self._commit_id} was sent to it and the catalog did not say whether it is committed; "
                f"its files are left: {first_line(error)}"
            ) from error
        self._pending.remove(_id(head))
        raise conflict from error

    def _forget_moved(self, now: IcebergTable) -> None:
        """Forgets requests that are not in the table and cannot be applied any more, for the branch has moved."""
        ref = now.metadata.refs.get(self._branch)
        at = ref.snapshot_id if ref is not None else None
        self._pending = [pending for pending in self._pending if pending == at]

    def _moved(self, now: IcebergTable, head: Snapshot | None) -> bool:
        """Whether the branch is no longer at the head that a request requires, so that the request cannot be applied any more."""
        ref = now.metadata.refs.get(self._branch)
        return (ref.snapshot_id if ref is not None else None) != _id(head)

    def _wait(self, now: IcebergTable, number: int, began: float, error: Exception) -> None:
        settings = now.metadata.properties
        retries = number_property(settings, TableProperties.COMMIT_NUM_RETRIES, _RETRIES, least=0)
        least = number_property(
            settings,
            TableProperties.COMMIT_MIN_RETRY_WAIT_MS,
            TableProperties.COMMIT_MIN_RETRY_WAIT_MS_DEFAULT,
            least=0,
        )
        most = number_property(
            settings,
            TableProperties.COMMIT_MAX_RETRY_WAIT_MS,
            TableProperties.COMMIT_MAX_RETRY_WAIT_MS_DEFAULT,
            least=0,
        )
        total = number_property(
            settings,
            TableProperties.COMMIT_TOTAL_RETRY_TIME_MS,
            TableProperties.COMMIT_TOTAL_RETRY_TIME_MS_DEFAULT,
            least=0,
        )
        if number >= retries or (self._clock.monotonic() - began) * 1000 >= total:
            raise ConflictError(
                f"table {now.full_name}: others were first at each of {number + 1} attempts to commit: {first_line(error)}"
            ) from error
        self._clock.sleep(min(most, least * 2**number) * (0.5 + self._ids.jitter() / 2) / 1000)


def moved_ref(name: str, snapshot_id: int, existing: SnapshotRef | None) -> SetSnapshotRefUpdate:
    """The update that moves a branch to a snapshot and keeps its retention settings, which the update has to repeat."""
    ages = existing.model_dump(by_alias=True, exclude_none=True) if existing is not None else {}
    return SetSnapshotRefUpdate.model_validate(
        {**ages, "ref-name": name, "type": SnapshotRefType.BRANCH, "snapshot-id": snapshot_id}
    )


def _overtaken(sent: IcebergTable, now: IcebergTable, error: Exception) -> bool:
    """Whether a bad-request response may be about the sequence number, which another branch has taken meanwhile."""
    before, after = sent.metadata.next_sequence_number(), now.metadata.next_sequence_number()
    return isinstance(error, BadRequestError) and before < after


def _id(snapshot: Snapshot | None) -> int | None:
    return snapshot.snapshot_id if snapshot is not None else None


def _snapshot_id(metadata: TableMetadata, ids: Ids) -> int:
    taken = {snapshot.snapshot_id for snapshot in metadata.snapshots}
    while True:
        drawn = blake2b(ids.uuid().encode(), digest_size=8).digest()
        found = int.from_bytes(drawn) & 0x7FFF_FFFF_FFFF_FFFF
        if found and found not in taken:
            return found
