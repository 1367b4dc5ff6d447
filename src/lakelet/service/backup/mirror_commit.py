"""Commits the live files of another table's snapshot: those that are new are added, those that are gone removed.

The files themselves are there and durable. The commit's own changes are the difference to the snapshot before it, so that expiry
removes what no retained snapshot names, as in every table. No rows are checked: they have been, by the source's commits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.conflict.commit_check import is_committed
from lakelet.commit.metadata.manifest_merge import MergePolicy, merge_manifests
from lakelet.commit.metadata.manifests import ManifestFiles, ManifestSettings, snapshot_manifests
from lakelet.commit.metadata.snapshots import try_snapshot, write_latest_hint
from lakelet.commit.metadata.version_ids import listed_ids
from lakelet.errors import ConflictError, LakeletError
from lakelet.events import Committed, publish
from lakelet.format.manifest.index_manifest import encode_index_manifest
from lakelet.format.manifest.manifest_file import avro_codec
from lakelet.format.metadata.snapshot_json import encode_snapshot
from lakelet.model.manifest import EntryKind, IndexManifestEntry
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import CommitKind, Snapshot
from lakelet.options import TableOptions
from lakelet.storage.home import TableHome


@dataclass(frozen=True, slots=True)
class MirrorCommit:
    """A commit to make: its entries, all its index files, and how it is called. `number` is given for the first snapshot of a
    table that is restored; else it follows the one before."""

    schema: TableSchema
    added: pa.Table
    removed: pa.Table
    indexes: tuple[IndexManifestEntry, ...]
    user: str
    identifier: int
    properties: Mapping[str, str]
    statistics: str | None = None
    watermark: int | None = None
    next_row_id: int | None = None
    number: int | None = None


def commit_mirror(home: TableHome, base: Snapshot | None, wanted: MirrorCommit, *, lists: PreparedLists) -> Snapshot:
    """Create the snapshot on top of `base`; ConflictError where another one was created meanwhile."""
    before = 0 if base is None else base.total_record_count or 0
    delta = _rows(wanted.added) - _rows(wanted.removed)
    snapshot = Snapshot(
        id=wanted.number or (1 if base is None else base.id + 1),
        schema_id=wanted.schema.id,
        base_manifest_list=lists.base[0],
        base_manifest_list_size=lists.base[1],
        delta_manifest_list=lists.delta[0],
        delta_manifest_list_size=lists.delta[1],
        index_manifest=lists.index,
        commit_user=wanted.user,
        commit_identifier=wanted.identifier,
        commit_kind=CommitKind.OVERWRITE if wanted.removed.num_rows else CommitKind.APPEND,
        time_ms=max(home.clock.now_ms(), 0 if base is None else base.time_ms),
        total_record_count=before + delta,
        delta_record_count=delta,
        watermark=wanted.watermark,
        statistics=wanted.statistics,
        properties=dict(wanted.properties),
        next_row_id=wanted.next_row_id or 0,
    )
    path, data = home.paths.snapshot(snapshot.id), encode_snapshot(snapshot)
    home.store.sync(lists.files.written, (path, data))
    made = home.store.put_if_absent(path, data)
    if not made:
        found = try_snapshot(home, snapshot.id)
        made = found is not None and found.delta_manifest_list == snapshot.delta_manifest_list
    verdict = made and _stands(home, snapshot, base, first=wanted.number is not None)
    if not verdict:
        # Where it cannot be determined any more, the snapshot is expired, and its files with it.
        if verdict is False:
            home.store.delete([path] if made else [])
            lists.files.remove()
        raise ConflictError(f"{home.where(path)}: another process committed at the same time; nothing was changed")
    write_latest_hint(home, snapshot.id)
    publish(Committed(home.table_name, home.paths.branch, snapshot.id, snapshot.commit_kind.value, snapshot))
    return snapshot


@dataclass(frozen=True, slots=True)
class PreparedLists:
    """The manifests of a commit, written and not yet durable: lists with their sizes, and the index manifest."""

    files: ManifestFiles
    base: tuple[str, int]
    delta: tuple[str, int]
    index: str | None


def prepare_lists(home: TableHome, base: Snapshot | None, wanted: MirrorCommit) -> PreparedLists:
    """Write the manifests of a commit."""
    options = TableOptions(wanted.schema.options)
    settings = ManifestSettings.of(options)
    files = ManifestFiles(home, settings, wanted.schema.partition_types, wanted.schema.id)
    try:
        entries = pa.concat_tables([_as_removals(wanted.removed), wanted.added])
        delta = files.write_list(files.write_entries(entries))
        previous = () if base is None else tuple(snapshot_manifests(home, base))
        merged = merge_manifests(home, previous, MergePolicy.of(options), files, settings.threads)
        named = files.write_list(merged)
        index = None
        if wanted.indexes:
            index = files.write_index_manifest(encode_index_manifest(wanted.indexes, codec=avro_codec("zstd")))
    except LakeletError:
        files.remove()
        raise
    return PreparedLists(files, named, delta, index)


def _stands(home: TableHome, snapshot: Snapshot, base: Snapshot | None, *, first: bool) -> bool | None:
    """Whether the snapshot that was just created is the newest of its table; None where that cannot be determined."""
    if first:
        # A writer that took the table for an empty one has begun to count from 1.
        return listed_ids(home) == {snapshot.id}
    return is_committed(home, snapshot, base)


def _as_removals(entries: pa.Table) -> pa.Table:
    kinds = pa.array(np.full(entries.num_rows, int(EntryKind.DELETE), np.int32))
    return entries.set_column(entries.schema.get_field_index("_KIND"), entries.schema.field("_KIND"), kinds)


def _rows(entries: pa.Table) -> int:
    return int(pc.sum(entries.column("_ROW_COUNT")).as_py() or 0)
