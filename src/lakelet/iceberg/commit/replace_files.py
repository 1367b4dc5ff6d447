"""Replace files of a table by others as one snapshot: the commit of compaction, DELETE, UPDATE and MERGE.

The caller has read the removed files, with their deletes, in a base snapshot. The replacement is valid only if no concurrent
commit has changed what was read, so that at every attempt, on the head that it is made for:

    every removed file is still live                                     or a ConflictError
    no delete file added since may delete rows of a removed file         or a ConflictError
    `serializable`: no data file added since may match `where`           or a ConflictError

Other data files added since are kept. Delete files that apply to removed files alone are removed with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from pyiceberg.expressions.visitors import (
    ROWS_MIGHT_NOT_MATCH,
    _InclusiveMetricsEvaluator,
    expression_evaluator,
)
from pyiceberg.manifest import DataFile, DataFileContent, ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot

from lakelet.clock import Clock, SystemClock
from lakelet.errors import ConflictError, InvalidError, NotFoundError
from lakelet.iceberg.commit.attempts import MadeSnapshot, SnapshotCommit
from lakelet.iceberg.commit.change import Change, added_file
from lakelet.iceberg.commit.partition_keys import partition_key
from lakelet.iceberg.commit.removal import remove_paths
from lakelet.iceberg.commit.schema_changes import check_schema
from lakelet.iceberg.commit.snapshot.live_files import LiveFile, LiveFiles, path_bounds
from lakelet.iceberg.commit_data import CommitData
from lakelet.iceberg.scan.partition_projection import partition_projection
from lakelet.iceberg.scan.pruning import planning_schema, pruning_expression
from lakelet.iceberg.table import IcebergTable
from lakelet.ids import Ids, RandomIds
from lakelet.predicate.tree import Predicate


def replace_files(
    table: IcebergTable,
    removed: Iterable[str],
    added: Sequence[CommitData],
    *,
    base_snapshot_id: int | None,
    operation: str,
    branch: str = "main",
    serializable: bool = False,
    where: Predicate | None = None,
    commit_id: str | None = None,
    ids: Ids | None = None,
    clock: Clock | None = None,
) -> MadeSnapshot | None:
    """Replaces data files of the base snapshot, by their paths, by files that were written by the table's spec; None where
    there is nothing to do. `operation` is overwrite, delete, replace, or append where nothing is removed. Raises what the module
    says; then, unless it is a CommitUnknownError, the added files have been removed. The table is the one that the rows were read
    from, as it was loaded then."""
    kinds = {one.value: one for one in (Operation.APPEND, Operation.OVERWRITE, Operation.DELETE, Operation.REPLACE)}
    if operation not in kinds:
        raise InvalidError(f"operation {operation!r}: expected one of {', '.join(kinds)}")
    removed = frozenset(removed)
    if operation == Operation.APPEND.value and removed:
        raise InvalidError(f"operation 'append' removes nothing, found {len(removed)} files to remove")
    ids = ids or RandomIds()
    job = ids.uuid()
    exchange = _Exchange(table, removed, tuple(added), base_snapshot_id, kinds[operation], serializable, where)
    commit = SnapshotCommit(
        branch=branch,
        commit_id=commit_id or job,
        job=job,
        ids=ids,
        clock=clock or SystemClock(),
        spec_id=table.metadata.default_spec_id if added else None,
    )
    made = None
    try:
        made = commit.run(table, exchange.change, look_first=commit_id is not None)
        return made
    finally:
        if not commit.undecided and (made is None or not commit.is_ours(made.id)):
            remove_paths(table.library.io, (data.file_path for data in added))


class _Exchange:
    """One replacement, which computes the change for every attempt."""

    def __init__(
        self,
        table: IcebergTable,
        removed: frozenset[str],
        added: tuple[CommitData, ...],
        base_id: int | None,
        operation: Operation,
        serializable: bool,
        where: Predicate | None,
    ) -> None:
        self._table = table
        self._removed = removed
        self._added = added
        self._base_id = base_id
        self._operation = operation
        self._serializable = serializable
        self._where = where

    def change(self, now: IcebergTable, head: Snapshot | None, live: LiveFiles) -> Change:
        """The change for a head."""
        if self._added:
            planned, found = self._table.metadata.default_spec_id, now.metadata.default_spec_id
            if planned != found:
                raise ConflictError(
                    f"table {now.full_name}: rows were written by partition spec {planned}, and the table's is {found} by now"
                )
            check_schema(now.full_name, self._table.metadata.schema(), now.metadata.schema())
        data = list(live.data(head))
        gone = tuple(one for one in data if one.path in self._removed)
        missing = self._removed - {one.path for one in gone}
        if missing:
            raise ConflictError(
                f"table {now.full_name}: {len(missing)} of {len(self._removed)} files to replace are not live any more, such as "
                f"{min(missing)}"
            )
        deletes = list(live.deletes(head))
        if head is not None and head.snapshot_id != self._base_id:
            self._check_since_base(now, head, gone, deletes, live)
        return Change(
            self._operation,
            tuple(added_file(one) for one in self._added),
            gone,
            removed_deletes=tuple(_only_for(gone, data, deletes)),
        )

    def _check_since_base(
        self,
        now: IcebergTable,
        head: Snapshot,
        gone: tuple[LiveFile, ...],
        deletes: list[LiveFile],
        live: LiveFiles,
    ) -> None:
        base = now.metadata.snapshot_by_id(self._base_id) if self._base_id is not None else None
        if base is None and self._base_id is not None:
            raise ConflictError(f"table {now.full_name}: snapshot {self._base_id} has expired meanwhile")
        try:
            known = {one.path for one in live.deletes(base)}
            added = list(self._added_since(now.metadata, head, base, live)) if self._serializable else []
        except (FileNotFoundError, NotFoundError) as error:
            raise ConflictError(f"table {now.full_name}: snapshot {self._base_id} has expired meanwhile") from error
        for delete in deletes:
            if delete.path not in known and any(may_delete(delete, one, now.metadata) for one in gone):
                raise ConflictError(
                    f"table {now.full_name}: rows of the files to replace were deleted meanwhile by {delete.path}"
                )
        matching = FileMatch(now.metadata, self._where, self._table.metadata.schema())
        for one in added:
            if matching.may_match(one.file):
                raise ConflictError(
                    f"table {now.full_name}: rows that the statement may be about were added meanwhile in {one.path}"
                )

    def _added_since(
        self, metadata: TableMetadata, head: Snapshot, base: Snapshot | None, live: LiveFiles
    ) -> Iterator[LiveFile]:
        """The data files that added rows since the base, also those that a rewrite has replaced by now. Files that only a
        rewrite added do not count."""
        had = {one.path for one in live.data(base)}
        snapshot: Snapshot | None = head
        while snapshot is not None and snapshot.snapshot_id != self._base_id:
            number, parent_id = snapshot.snapshot_id, snapshot.parent_snapshot_id
            if snapshot.summary is None or snapshot.summary.operation != Operation.REPLACE:
                for one in live.data(snapshot, partial(_made_by, number)):
                    if one.entry.snapshot_id == number and one.path not in had:
                        yield one
            snapshot = metadata.snapshot_by_id(parent_id) if parent_id is not None else None
        if snapshot is None:
            # The ancestry down to the base has a gap left by expired snapshots: a rewrite may have moved their rows.
            yield from (one for one in live.data(head) if one.path not in had)


class FileMatch:
    """Whether files may hold rows that match a condition, by their partitions and bounds."""

    def __init__(self, metadata: TableMetadata, where: Predicate | None, schema: Schema) -> None:
        self._metadata = metadata
        self._where = pruning_expression(where, schema)
        self._schema = planning_schema(metadata, schema)
        self._metrics = _InclusiveMetricsEvaluator(self._schema, self._where)

    def may_match(self, file: DataFile) -> bool:
        """False only where no row can match."""
        spec = self._metadata.specs()[file.spec_id]
        partition = partition_projection(self._schema, spec)(self._where)
        kind = Schema(*spec.partition_type(self._schema).fields)
        if not expression_evaluator(kind, partition, True)(file.partition):
            return False
        return self._metrics.eval(file) != ROWS_MIGHT_NOT_MATCH


def may_delete(delete: LiveFile, data: LiveFile, metadata: TableMetadata) -> bool:
    """Whether a delete file added after a data file may delete rows of it."""
    if delete.file.content == DataFileContent.EQUALITY_DELETES:
        # One of an unpartitioned spec applies to all partitions.
        if not metadata.specs()[delete.file.spec_id].fields:
            return True
    elif delete.refers_to is not None:
        return delete.refers_to == data.path
    else:
        low, high = path_bounds(delete.file)
        if low is not None and high is not None and not low <= data.path.encode() <= high:
            return False
    return _same_partition(delete.file, data.file)


def _only_for(gone: tuple[LiveFile, ...], data: list[LiveFile], deletes: list[LiveFile]) -> list[LiveFile]:
    """The delete files that apply to removed files alone: those that name one of them, and those of partitions without remaining
    files that they apply to by sequence number."""
    paths = {one.path for one in gone}
    touched = {(one.file.spec_id, partition_key(one.file.partition)) for one in gone}
    left: dict[tuple[int, tuple[object, ...]], int] = {}
    for one in data:
        key = (one.file.spec_id, partition_key(one.file.partition))
        if key in touched and one.path not in paths:
            number = one.entry.sequence_number or 0
            left[key] = min(left.get(key, number), number)
    found = []
    for delete in deletes:
        key = (delete.file.spec_id, partition_key(delete.file.partition))
        if delete.refers_to is not None:
            if delete.refers_to in paths:
                found.append(delete)
        elif key in touched and len(delete.file.partition):
            oldest = left.get(key)
            if oldest is None or oldest > (delete.entry.sequence_number or 0):
                found.append(delete)
    return found


def _same_partition(one: DataFile, other: DataFile) -> bool:
    return one.spec_id == other.spec_id and partition_key(one.partition) == partition_key(other.partition)


def _made_by(snapshot_id: int, manifest: ManifestFile) -> bool:
    return manifest.added_snapshot_id == snapshot_id
