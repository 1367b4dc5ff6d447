"""Compute the delta of a commit on top of the newest snapshot: its manifest entries, or a conflict.

Everything here is computed anew at each attempt, since another writer may have committed first. A file that the commit
removes must be live in that snapshot; an overwrite removes whatever is live then. Other concurrent changes of a
primary-key table is checked in `conflicts`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.conflict.bucket_totals import check_same_number, check_totals
from lakelet.commit.conflict.conflicts import (
    PartitionFilter,
    check_added_once,
    check_assignments,
    check_kept,
    check_levels,
    check_one_writer,
    check_same_rows,
    check_schemas,
    check_sequences,
    check_settled,
    check_unread,
)
from lakelet.commit.conflict.vector_conflicts import check_marks, check_vectors
from lakelet.commit.metadata.manifests import ManifestSettings, live_entries, snapshot_manifests
from lakelet.commit.request import CHANGELOG_KINDS, CommitRequest, Overwrite
from lakelet.errors import ConflictError
from lakelet.format.manifest.manifest_columns import entries_to_columns
from lakelet.format.partition_folders import PartitionFolders
from lakelet.format.rows.binary_row_columns import decode_rows
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.bucket_mode import POSTPONE_BUCKET
from lakelet.model.commit_message import CommitMessage
from lakelet.model.manifest import EntryKind, ManifestEntry, ManifestFile
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import BUCKET, TableOptions
from lakelet.storage.home import TableHome

# Orphan removal spares files younger than a day; a commit of older files makes sure that they are still there.
_VERIFY_AFTER_MS = 12 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Changes:
    """The delta of one commit attempt: the entries that remove files, followed by those that add some; `replaced` is the filter
    of the partitions that an overwrite replaces, None where there is none. `changelog` are the files that tell of the changes.
    `marks` says whether rows of files that stay are deleted.
    """

    removed: pa.Table
    added: tuple[ManifestEntry, ...]
    record_delta: int
    previous: tuple[ManifestFile, ...]
    replaced: PartitionFilter | None = None
    changelog: tuple[ManifestEntry, ...] = ()
    marks: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether no file is removed or added, and no row marked as deleted."""
        return not self.added and self.removed.num_rows == 0 and not self.marks

    @property
    def changelog_rows(self) -> int:
        """The rows of the changelog files."""
        return sum(entry.file.row_count for entry in self.changelog)

    @property
    def entries(self) -> pa.Table:
        """All entries in columns."""
        return pa.concat_tables([self.removed, entries_to_columns(self.added)])


def compute_changes(
    home: TableHome, request: CommitRequest, latest: Snapshot | None, schema: TableSchema, settings: ManifestSettings
) -> Changes:
    """The delta of `request` on top of `latest`; ConflictError if it can no longer be applied."""
    previous = tuple(snapshot_manifests(home, latest)) if latest is not None else ()
    # Compaction leaves rows in their buckets, also where new rows would be assigned to others.
    if not request.compacts:
        _check_buckets(request.messages, schema)
        check_same_number(home, request.messages, schema)
    _check_old_files(home, request.messages, schema)
    added = tuple(
        ManifestEntry(EntryKind.ADD, message.partition, message.bucket, message.total_buckets, file)
        for message in request.messages
        for file in message.new_files
    )
    changelog = _changelog(request)
    touched = {message.partition for message in request.messages if message.new_files}
    replaced = replaced_partitions(request.overwrite, schema, touched)
    check_same_rows(home, request.same_rows_as, latest)
    if request.files_added_once:
        check_added_once(home, request.messages, previous, schema, threads=settings.threads)
    if schema.primary_keys and request.messages:
        check_schemas(home, request.messages, schema)
        check_unread(home, request.messages, request.read_at, latest)
        check_kept(home, request.messages, latest)
        check_one_writer(request.messages, schema)
        check_assignments(home, request.messages, latest)
        check_sequences(home, request.messages, latest, previous, replaced or _none, schema, threads=settings.threads)
    is_current = request.compacts and latest is not None and _planned_on(request.messages, latest)
    removed = _removed(home, request, previous, replaced, settings, is_current=is_current)
    record_delta = sum(entry.file.row_count for entry in added) - _rows(removed)
    if is_current:
        return Changes(removed, added, record_delta, previous, changelog=changelog)
    check_vectors(home, request.messages, latest)
    check_marks(home, request.messages, latest, previous, schema, threads=settings.threads)
    newest = (0, "") if latest is None else (latest.id, latest.delta_manifest_list)
    check_totals(home, request.messages, removed, previous, schema, newest=newest, threads=settings.threads)
    if schema.primary_keys:
        check_levels(home, request.messages, removed, previous, schema, threads=settings.threads)
        check_settled(home, request.messages, latest, previous, schema, threads=settings.threads)
    marks = any(message.marked_files for message in request.messages)
    return Changes(removed, added, record_delta, previous, replaced, changelog, marks)


def partition_mask(partitions: pa.Array, schema: TableSchema, spec: Mapping[str, object]) -> npt.NDArray[np.bool_]:
    """Which of these partitions (BinaryRow bytes) match a partition spec."""
    mask = np.ones(len(partitions), bool)
    if not spec:
        return mask
    columns = dict(zip(schema.partition_keys, decode_rows(partitions, schema.partition_types), strict=True))
    for name, value in spec.items():
        column = columns[name]
        if value is None:
            found = column.is_null()
        else:
            found = pc.fill_null(_agrees(column, pa.array([value], to_arrow(schema.field(name).type))), False)
        mask &= found.to_numpy(zero_copy_only=False)
    return mask


def _agrees(column: pa.Array, value: pa.Array) -> pa.Array:
    """Which partition values are the one given. NaN is one partition like any other, although it equals no number; -0.0 and 0.0
    are equal numbers and two partitions, distinguished by their bits."""
    if not pa.types.is_floating(column.type):
        return pc.equal(column, value[0])
    if math.isnan(value[0].as_py()):
        return pc.is_nan(column)
    bits = pa.int32() if column.type.bit_width == 32 else pa.int64()
    return pc.equal(column.view(bits), value.view(bits)[0])


def _changelog(request: CommitRequest) -> tuple[ManifestEntry, ...]:
    """The entries of the changelog files."""
    if request.kind not in CHANGELOG_KINDS:
        return ()
    return tuple(
        ManifestEntry(EntryKind.ADD, message.partition, message.bucket, message.total_buckets, file)
        for message in request.messages
        for file in message.changelog_files
    )


def _planned_on(messages: Sequence[CommitMessage], latest: Snapshot) -> bool:
    """Whether the newest snapshot is the one that a compaction was planned on: then nothing it depends on has changed."""
    return all(message.sequenced_at == (latest.id, latest.delta_manifest_list) for message in messages)


def _removed(
    home: TableHome,
    request: CommitRequest,
    previous: Sequence[ManifestFile],
    replaced: PartitionFilter | None,
    settings: ManifestSettings,
    *,
    is_current: bool = False,
) -> pa.Table:
    named = [
        ManifestEntry(EntryKind.DELETE, message.partition, message.bucket, message.total_buckets, file)
        for message in request.messages
        for file in message.deleted_files
    ]
    removed = entries_to_columns(named)
    if named and not is_current:
        _check_live(home, removed, previous, settings)
    if replaced is not None:
        live = _overwritten(home, previous, replaced, settings)
        if not named:
            return live
        # A file may be replaced by name and be in an overwritten partition; it is removed once.
        again = pc.is_in(live.column("_FILE_NAME"), value_set=removed.column("_FILE_NAME").combine_chunks())
        removed = pa.concat_tables([removed, live.filter(pc.invert(again))])
    return removed


def replaced_partitions(
    overwrite: Overwrite | None, schema: TableSchema, touched: Collection[bytes] = ()
) -> PartitionFilter | None:
    """The filter of the partitions (BinaryRow bytes) that an overwrite replaces, dynamically the `touched` ones unless it
    names them; None where there is no overwrite.
    """
    if overwrite is None:
        return None
    spec = overwrite.partition
    if spec is not None:
        return lambda partitions: partition_mask(partitions, schema, spec)
    value_set = pa.array(list(touched if overwrite.partitions is None else overwrite.partitions), pa.binary())
    return lambda partitions: np.asarray(pc.is_in(partitions, value_set=value_set))


def _none(partitions: pa.Array) -> npt.NDArray[np.bool_]:
    return np.zeros(len(partitions), bool)


def _overwritten(
    home: TableHome, previous: Sequence[ManifestFile], replaced: PartitionFilter, settings: ManifestSettings
) -> pa.Table:
    def keep(entries: pa.Table) -> pa.Table:
        encoded = entries.column("_PARTITION").combine_chunks().dictionary_encode()
        mask = replaced(encoded.dictionary)
        return entries.filter(pa.array(mask[encoded.indices.to_numpy()]))

    live = live_entries(home, previous, keep=keep, threads=settings.threads)
    return _as_removals(live)


def _as_removals(entries: pa.Table) -> pa.Table:
    kinds = pa.array(np.full(entries.num_rows, int(EntryKind.DELETE), np.int32))
    return entries.set_column(entries.schema.get_field_index("_KIND"), entries.schema.field("_KIND"), kinds)


def _check_live(
    home: TableHome, removed: pa.Table, previous: Sequence[ManifestFile], settings: ManifestSettings
) -> None:
    names = removed.column("_FILE_NAME").combine_chunks()
    partitions = removed.column("_PARTITION").combine_chunks().unique()

    def keep(entries: pa.Table) -> pa.Table:
        return entries.filter(pc.is_in(entries.column("_PARTITION"), value_set=partitions))

    live = live_entries(home, previous, columns=(), keep=keep, threads=settings.threads)
    found = set(_identities(live.filter(pc.is_in(live.column("_FILE_NAME"), value_set=names))))
    gone = [identity for identity in _identities(removed) if identity not in found]
    if gone:
        raise ConflictError(
            f"{len(gone)} of {removed.num_rows} files this commit replaces are no longer in "
            f"{home.where(home.paths.branch_root)}: another writer removed or rewrote {gone[0][3]}"
        )


def _identities(entries: pa.Table) -> list[tuple[bytes, int, int, str]]:
    columns = [entries.column(name).to_pylist() for name in ("_PARTITION", "_BUCKET", "_LEVEL", "_FILE_NAME")]
    return list(zip(*columns, strict=True))


def _check_buckets(messages: Sequence[CommitMessage], schema: TableSchema) -> None:
    """ConflictError if files were written for another number of buckets than the table's."""
    buckets = TableOptions(schema.options).get(BUCKET)
    for message in messages:
        if not message.new_files:
            continue
        # Compaction chooses the number of buckets of postponed rows.
        is_chosen = buckets == POSTPONE_BUCKET and message.bucket >= 0 and message.total_buckets > 0
        if message.total_buckets != buckets and not is_chosen:
            raise ConflictError(
                f"files were written for {message.total_buckets} buckets, but the table has {buckets} since schema {schema.id}"
            )


def _check_old_files(home: TableHome, messages: Sequence[CommitMessage], schema: TableSchema) -> None:
    horizon = home.clock.now_ms() - _VERIFY_AFTER_MS
    old = [
        (message, file)
        for message in messages
        for file in (*message.new_files, *message.changelog_files)
        if file.creation_ms is not None and file.creation_ms < horizon
    ]
    if not old:
        return
    folders = PartitionFolders(home.paths, schema)
    for message in {id(message): message for message, _ in old}.values():
        for index in (message.new_hash_index, message.new_vectors):
            if index is not None and home.store.head(home.paths.index(index.name)) is None:
                raise ConflictError(
                    f"index file {index.name} was written over 12 hours ago and has been removed since: write it again"
                )
    for message, file in old:
        if home.store.head(f"{folders.bucket_folder(message.partition, message.bucket)}/{file.name}") is None:
            raise ConflictError(
                f"data file {file.name} was written over 12 hours ago and has been removed since: write it again"
            )


def _rows(entries: pa.Table) -> int:
    return 0 if entries.num_rows == 0 else int(pc.sum(entries.column("_ROW_COUNT")).as_py() or 0)
