"""The two-phase insert into an Iceberg table, on the driver: a plan for the writers, then one snapshot of all their files.

transaction = IcebergTransaction(table, branch=…)
plan = transaction.begin_insert(mode, partition)      to every writer
transaction.update_commit_data(files)                 from every writer
transaction.finish_insert()                           one snapshot, or none
transaction.rollback()                                removes the files

An error before the request to the catalog, or a refusal by it, leaves nothing: `finish_insert` removes the files that were
reported to it. Only a commit of unknown outcome keeps its files; `finish_insert` may be called again
then, for a committed one is found by its id, and the catalog accepts at most one of two requests for the same head.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyiceberg.table.snapshots import Snapshot

from lakelet.clock import Clock, SystemClock
from lakelet.errors import ConflictError, InternalError, InvalidError, NotFoundError
from lakelet.iceberg.catalog.library_errors import lakelet_errors
from lakelet.iceberg.commit.attempts import (
    MadeSnapshot,
    SnapshotCommit,
    find_batch,
    find_commit,
    head_of,
    made_snapshot,
)
from lakelet.iceberg.commit.change import Change, added_file, operation_of
from lakelet.iceberg.commit.overwrite import (
    Overwrite,
    Replaced,
    StaticPartition,
    WholeTable,
    static_partition,
    written_partitions,
)
from lakelet.iceberg.commit.removal import remove_paths
from lakelet.iceberg.commit.schema_changes import check_schema
from lakelet.iceberg.commit.snapshot.live_files import LiveFiles
from lakelet.iceberg.commit.snapshot.summary import COMMIT_ID
from lakelet.iceberg.commit.stream_batch import StreamBatch
from lakelet.iceberg.commit.written_files import check_written
from lakelet.iceberg.commit_data import CommitData
from lakelet.iceberg.table import IcebergTable
from lakelet.iceberg.write.leftovers import remove_files_of_job
from lakelet.iceberg.write.write_plan import WritePlan, write_plan
from lakelet.ids import Ids, RandomIds

__all__ = ["COMMIT_ID", "MODES", "IcebergTransaction", "MadeSnapshot"]

MODES = ("append", "overwrite", "overwrite_partitions")


class IcebergTransaction:
    """One insert. `commit_id` names it in the snapshot's summary, by which its outcome can be looked up; one that is given by the
    caller is an idempotency key: it is committed once, however often it is sent. A `batch` of a stream is known by its user and
    number, also after its snapshot has expired."""

    def __init__(
        self,
        table: IcebergTable,
        *,
        branch: str | None = None,
        commit_id: str | None = None,
        batch: StreamBatch | None = None,
        ids: Ids | None = None,
        clock: Clock | None = None,
    ) -> None:
        commit_id = commit_id if batch is None else batch.commit_id
        self._batch = batch
        self._table = table
        self._branch = branch or "main"
        self._ids = ids or RandomIds()
        self._clock = clock or SystemClock()
        self._job = self._ids.uuid()
        self._named = commit_id is not None
        self._commit_id = commit_id or self._job
        self._mode = "append"
        self._plan: WritePlan | None = None
        self._static: StaticPartition | None = None
        self._base: Snapshot | None = None
        self._data: list[CommitData] = []
        self._commit: SnapshotCommit | None = None
        self._made: MadeSnapshot | None = None

    def applied(self) -> MadeSnapshot | None:
        """The snapshot of an earlier commit of this id, as far as the table's history goes back: nothing need be written then.
        Of a batch that has expired it is the newest one."""
        if self._batch is not None:
            found = find_batch(self._table, self._branch, self._batch)
        else:
            found = find_commit(self._table.metadata, self._commit_id) if self._named else None
        return made_snapshot(found) if found is not None else None

    def begin_insert(
        self,
        mode: str = "append",
        partition: Mapping[str, object] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> WritePlan:
        """Pins the table's version and returns the plan for writers. `partition` holds values of identity partition columns:
        all rows have to have them, and a static overwrite replaces the rows that have them. `options` are table properties for
        this write alone."""
        if mode not in MODES:
            raise InvalidError(f"mode {mode!r}: expected one of {', '.join(MODES)}")
        self._mode = mode
        with lakelet_errors(f"table {self._table.full_name}"):
            self._base = head_of(self._table, self._branch)
            self._plan = write_plan(self._table, self._job, options)
            if partition:
                self._static = static_partition(self._table.metadata, self._plan.spec, partition)
        return self._plan

    def update_commit_data(self, data: Iterable[CommitData]) -> None:
        """Adds the files of a writer; InvalidError, and none is added, where one is not a data file of this insert."""
        if self._plan is None:
            raise InternalError("update_commit_data before begin_insert")
        told = tuple(data)
        check_written(self._plan, told, {one.file_path for one in self._data})
        self._data.extend(told)

    def finish_insert(self) -> MadeSnapshot | None:
        """Commits all files as one snapshot; None where there is nothing to commit."""
        if self._plan is None:
            raise InternalError("finish_insert before begin_insert")
        if self._made is not None:
            return self._made
        if self._commit is None:
            self._commit = SnapshotCommit(
                branch=self._branch,
                commit_id=self._commit_id,
                job=self._job,
                ids=self._ids,
                clock=self._clock,
                spec_id=self._plan.partition_spec_id,
                batch=self._batch,
            )
        try:
            if self._static is not None:
                self._static.check_written(data.partition_values for data in self._data)
            made = self._commit.run(self._table, self._change, look_first=self._named)
        except BaseException:
            self._remove_told()
            raise
        if made is None or not self._commit.is_ours(made.id):
            self._remove_told()
        self._made = made
        return made

    @property
    def is_own(self) -> bool:
        """Whether the snapshot that `finish_insert` returned was made by this insert, not by another one of its id that was
        committed since `applied` was asked."""
        return self._made is not None and self._commit is not None and self._commit.is_ours(self._made.id)

    def rollback(self) -> None:
        """Removes the files of this insert, also those that lost writers did not report, unless they are committed or the
        outcome is unknown. It may be called again."""
        if self._made is None and self._remove_told() and self._plan is not None:
            remove_files_of_job(self._plan, ())

    def _remove_told(self) -> bool:
        """Removes the files that writers reported; False where they may be part of the table."""
        if self._commit is not None and self._commit.undecided:
            return False
        remove_paths(self._table.library.io, (data.file_path for data in self._data))
        self._data = []
        return True

    def _change(self, now: IcebergTable, head: Snapshot | None, live: LiveFiles) -> Change | None:
        plan = self._plan
        assert plan is not None
        _check_spec(now, plan)
        check_schema(now.full_name, plan.schema, now.metadata.schema())
        added = tuple(added_file(data) for data in self._data)
        overwrite = self._overwrite(plan)
        if overwrite is None:
            return Change(operation_of(len(added), 0), added)
        replaced = overwrite.replaced(now.metadata, head, live)
        self._check_unchanged(now, overwrite, replaced, head, live)
        return Change(
            operation_of(len(added), len(replaced.paths)), added, replaced.data, removed_deletes=replaced.deletes
        )

    def _overwrite(self, plan: WritePlan) -> Overwrite | None:
        if self._mode == "append" or (self._mode == "overwrite_partitions" and not self._data):
            return None
        if self._mode == "overwrite_partitions":
            return written_partitions(plan.spec, (data.partition_values for data in self._data))
        return self._static or WholeTable()

    def _check_unchanged(
        self, now: IcebergTable, overwrite: Overwrite, replaced: Replaced, head: Snapshot | None, live: LiveFiles
    ) -> None:
        """ConflictError where the replaced files have changed since the insert began: rows added meanwhile were not
        known when it was decided to replace them."""
        base = self._base
        if (base.snapshot_id if base else None) == (head.snapshot_id if head else None):
            return
        try:
            before = overwrite.replaced(now.metadata, base, live).paths
        except (FileNotFoundError, NotFoundError) as error:
            raise ConflictError(
                f"table {now.full_name}: the snapshot that this overwrite began from has expired meanwhile"
            ) from error
        changed = sorted(before ^ replaced.paths)
        if changed:
            raise ConflictError(
                f"table {now.full_name}: {overwrite.shown} changed while it was overwritten ({len(changed)} files, such as "
                f"{changed[0]}); nothing was committed"
            )


def _check_spec(now: IcebergTable, plan: WritePlan) -> None:
    found = now.metadata.default_spec_id
    if found != plan.partition_spec_id:
        raise ConflictError(
            f"table {now.full_name}: rows were written by partition spec {plan.partition_spec_id}, and the table's is {found} by "
            "now; nothing was committed"
        )
