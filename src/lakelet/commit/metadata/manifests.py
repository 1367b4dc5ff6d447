"""Read the live files of a snapshot, and write manifests.

A snapshot names two manifest lists: the inherited one (base) and its own changes (delta). Each list names
manifests, each manifest holds entries that add or remove files. The live files are the additions without a later
removal. All of that happens on Arrow columns; manifests are decoded in threads, and
only the columns asked for are decoded at all.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.metadata.source import metadata
from lakelet.errors import LakeletError, NotFoundError
from lakelet.format.manifest.manifest_columns import EMPTY_ROW, ENTRY_SCHEMA, IDENTITY_COLUMNS
from lakelet.format.manifest.manifest_file import (
    ManifestFormat,
    encode_few_entries,
    encode_manifest,
    encode_manifest_list,
)
from lakelet.format.rows.binary_row import null_flags
from lakelet.format.rows.binary_row_columns import decode_rows, encode_rows
from lakelet.model.data_file import Stats
from lakelet.model.manifest import BlockFilter, EntryKind, IndexManifestEntry, ManifestEntry, ManifestFile
from lakelet.model.snapshot import Snapshot
from lakelet.model.types import DataType
from lakelet.options import (
    MANIFEST_COMPRESSION,
    MANIFEST_FORMAT,
    MANIFEST_TARGET_FILE_SIZE,
    SCAN_MANIFEST_PARALLELISM,
    TableOptions,
)
from lakelet.storage.home import TableHome

_LOG = logging.getLogger(__name__)
Rows = npt.NDArray[np.int64]
EntryFilter = Callable[[pa.Table], pa.Table]

# Manifests of fewer bytes in all are decoded in less time than threads take to start.
_FEW_BYTES = 1 << 20
# Fewer entries are grouped in less time than Arrow takes to begin.
_FEW_ENTRIES = 256
# Fewer entries are not sorted by partition: pruning their blocks would save nothing.
_SORTED_FROM = 256


@dataclass(frozen=True, slots=True)
class ManifestSettings:
    """How manifests of a table are written and read."""

    format: ManifestFormat
    compression: str
    target_bytes: int
    threads: int

    @staticmethod
    def of(options: TableOptions) -> ManifestSettings:
        """The settings a table's options ask for."""
        return ManifestSettings(
            "json" if options.get(MANIFEST_FORMAT) == "json" else "avro",
            options.get(MANIFEST_COMPRESSION),
            options.get(MANIFEST_TARGET_FILE_SIZE),
            options.get(SCAN_MANIFEST_PARALLELISM) or _processors(),
        )


@cache
def _processors() -> int:
    """The number of processors, asked once: the system reads a file for it."""
    return os.cpu_count() or 1


def read_manifest_list(home: TableHome, name: str, snapshot_id: int | None = None) -> list[ManifestFile]:
    """The manifests that a list names, which a snapshot names."""
    try:
        return list(metadata(home).manifest_list(home, name))
    except NotFoundError as error:
        raise _gone(home, home.paths.manifest(name), snapshot_id) from error


def snapshot_manifests(home: TableHome, snapshot: Snapshot) -> list[ManifestFile]:
    """All manifests of a snapshot, oldest first."""
    lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
    return [manifest for name in lists for manifest in read_manifest_list(home, name, snapshot.id)]


def read_manifest(
    home: TableHome,
    manifest: ManifestFile,
    columns: Sequence[str] | None = None,
    keep_blocks: BlockFilter | None = None,
) -> pa.Table:
    """The entries of one manifest."""
    try:
        return metadata(home).manifest(home, manifest.name, columns, keep_blocks)
    except NotFoundError as error:
        raise _gone(home, home.paths.manifest(manifest.name)) from error


def read_index_manifest(home: TableHome, name: str) -> list[IndexManifestEntry]:
    """The index files that an index manifest names, which a snapshot names."""
    try:
        return list(metadata(home).index_manifest(home, name))
    except NotFoundError as error:
        raise _gone(home, home.paths.manifest(name)) from error


def read_entries(
    home: TableHome,
    manifests: Sequence[ManifestFile],
    *,
    columns: Sequence[str] | None = None,
    keep: EntryFilter | None = None,
    keep_blocks: BlockFilter | None = None,
    threads: int = 1,
) -> pa.Table:
    """The entries of several manifests in their order, each passed through `keep`, blocks that fail `keep_blocks` left out."""

    def load(manifest: ManifestFile) -> pa.Table:
        table = read_manifest(home, manifest, columns, keep_blocks)
        return table if keep is None else keep(table)

    is_slow = home.store.is_remote or sum(manifest.size for manifest in manifests) > _FEW_BYTES
    if threads > 1 and len(manifests) > 1 and is_slow:
        with ThreadPoolExecutor(min(threads, len(manifests))) as pool:
            tables = list(pool.map(load, manifests))
    else:
        tables = [load(manifest) for manifest in manifests]
    if not tables:
        fields = [field for field in ENTRY_SCHEMA if columns is None or field.name in columns]
        return pa.schema(fields).empty_table()
    return pa.concat_tables(tables)


def live_entries(
    home: TableHome,
    manifests: Sequence[ManifestFile],
    *,
    columns: Sequence[str] | None = None,
    keep: EntryFilter | None = None,
    keep_blocks: BlockFilter | None = None,
    threads: int = 1,
) -> pa.Table:
    """The files that are live after all of these manifests, in the order in which they were added.

    `keep` must decide by partition or bucket alone, so that it drops a removal together with its addition; `keep_blocks` may
    only drop what `keep` drops.
    """
    wanted = None if columns is None else list(dict.fromkeys([*IDENTITY_COLUMNS, *columns]))
    entries = read_entries(home, manifests, columns=wanted, keep=keep, keep_blocks=keep_blocks, threads=threads)
    return drop_removed(entries)


def drop_removed(entries: pa.Table) -> pa.Table:
    """Only the additions that no later entry removes."""
    kinds = entries.column("_KIND").to_numpy()
    if not kinds.any():
        return entries
    _, last = _identity_ends(entries)
    alive = last[kinds[last] == EntryKind.ADD]
    return entries.take(pa.array(np.sort(alive)))


def cancel(entries: pa.Table, *, whole: bool) -> pa.Table:
    """Entries with additions and their removals cancelled out.

    A removal whose addition is not among them is kept, for the addition is in an older manifest; where the entries
    are the `whole` history there is none, and it is dropped.
    """
    kinds = entries.column("_KIND").to_numpy()
    if not kinds.any():
        return entries
    first, last = _identity_ends(entries)
    removed_first = (kinds[first] == EntryKind.DELETE) & (not whole)
    added_last = kinds[last] == EntryKind.ADD
    kept = np.concatenate([first[removed_first], last[added_last]])
    return entries.take(pa.array(np.unique(kept)))


def _identity_ends(entries: pa.Table) -> tuple[Rows, Rows]:
    """The row of the first and of the last entry of each file identity."""
    keys = ["_PARTITION", "_BUCKET", "_LEVEL", "_FILE_NAME"]
    if entries.num_rows <= _FEW_ENTRIES:
        identities = list(zip(*(entries.column(name).to_pylist() for name in keys), strict=True))
        last = {identity: row for row, identity in enumerate(identities)}
        first = {identity: row for row, identity in reversed(list(enumerate(identities)))}
        order = list(last)
        return np.array([first[one] for one in order], np.int64), np.array([last[one] for one in order], np.int64)
    numbered = entries.select(keys).append_column("_ROW", pa.array(np.arange(entries.num_rows)))
    groups = numbered.group_by(keys, use_threads=False).aggregate([("_ROW", "min"), ("_ROW", "max")])
    return groups.column("_ROW_min").to_numpy(), groups.column("_ROW_max").to_numpy()


class ManifestFiles:
    """Write the manifests and manifest lists of one commit attempt, and record their paths for cleaning up.

    They are `written` deferred: the commit syncs them before it creates the snapshot that names them.
    """

    def __init__(
        self, home: TableHome, settings: ManifestSettings, partition_types: Sequence[DataType], schema_id: int
    ) -> None:
        self._home = home
        self._settings = settings
        self._partition_types = tuple(partition_types)
        self._schema_id = schema_id
        self._prefix = home.ids.uuid()
        self._manifests = 0
        self._lists = 0
        self.written: list[str] = []

    def write_entries(self, entries: pa.Table) -> list[ManifestFile]:
        """Write one or more manifests of these entries, split so that each is near the target size."""
        if entries.num_rows == 0:
            return []
        if self._partition_types and entries.num_rows >= _SORTED_FROM:
            entries = sorted_by_partition(entries, self._partition_types)
        data = self._encode(entries)
        pieces = min(entries.num_rows, max(1, round(len(data) / self._settings.target_bytes)))
        if pieces == 1:
            return [self._put(entries, data)]
        step = -(-entries.num_rows // pieces)
        parts = [entries.slice(start, step) for start in range(0, entries.num_rows, step)]
        return [self._put(part, self._encode(part)) for part in parts]

    def write_few(self, entries: Sequence[ManifestEntry]) -> list[ManifestFile] | None:
        """Write one manifest of entries that are not in columns; None, and nothing written, where `write_entries` has to."""
        partitions = {entry.partition for entry in entries}
        if len(partitions) != 1:
            return None
        settings = self._settings
        data = encode_few_entries(entries, manifest_format=settings.format, compression=settings.compression)
        if data is None or round(len(data) / settings.target_bytes) > 1:
            return None
        buckets, levels = [entry.bucket for entry in entries], [entry.file.level for entry in entries]
        deleted = sum(int(entry.kind) for entry in entries)
        manifest = ManifestFile(
            self._next_name(),
            len(data),
            len(entries) - deleted,
            deleted,
            _stats_of_one(partitions.pop(), len(entries), len(self._partition_types)),
            self._schema_id,
            min(buckets),
            max(buckets),
            min(levels),
            max(levels),
        )
        self._write(manifest.name, data)
        return [manifest]

    def write_list(self, manifests: Sequence[ManifestFile]) -> tuple[str, int]:
        """Write a manifest list; its name and size."""
        name = f"manifest-list-{self._prefix}-{self._lists}"
        self._lists += 1
        data = encode_manifest_list(
            manifests, manifest_format=self._settings.format, compression=self._settings.compression
        )
        self._write(name, data)
        return name, len(data)

    def write_index_manifest(self, data: bytes) -> str:
        """Write an index manifest; its name."""
        name = f"index-manifest-{self._prefix}-0"
        self._write(name, data)
        return name

    def remove(self) -> None:
        """Delete what was written, which nothing refers to; a file whose deletion fails is left for orphan removal."""
        if not self.written:
            return
        try:
            self._home.store.delete(self.written)
        except LakeletError as error:
            _LOG.warning("%d manifests of a lost commit attempt stay behind: %s", len(self.written), error)

    def _encode(self, entries: pa.Table) -> bytes:
        return encode_manifest(
            entries,
            manifest_format=self._settings.format,
            compression=self._settings.compression,
            describe=self._describe if self._partition_types and entries.num_rows >= _SORTED_FROM else None,
        )

    def _describe(self, entries: pa.Table, counts: Sequence[int]) -> list[Stats]:
        return partition_stats_of_groups(entries.column("_PARTITION"), counts, self._partition_types)

    def _put(self, entries: pa.Table, data: bytes) -> ManifestFile:
        name = self._next_name()
        self._write(name, data)
        kinds, buckets, levels = (_numbers(entries.column(name)) for name in ("_KIND", "_BUCKET", "_LEVEL"))
        deleted = int(kinds.sum())
        return ManifestFile(
            name,
            len(data),
            entries.num_rows - deleted,
            deleted,
            partition_stats(entries.column("_PARTITION"), self._partition_types),
            self._schema_id,
            int(buckets.min()),
            int(buckets.max()),
            int(levels.min()),
            int(levels.max()),
        )

    def _next_name(self) -> str:
        number, self._manifests = self._manifests, self._manifests + 1
        return f"manifest-{self._prefix}-{number}"

    def _write(self, name: str, data: bytes) -> None:
        path = self._home.paths.manifest(name)
        self.written.append(path)
        self._home.store.put(path, data, deferred=True)


def _numbers(column: pa.ChunkedArray) -> npt.NDArray[np.int32]:
    """A column without NULLs; `ChunkedArray.to_numpy` would load pandas."""
    parts = [np.asarray(chunk.to_numpy()) for chunk in column.chunks]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def sorted_by_partition(entries: pa.Table, types: Sequence[DataType]) -> pa.Table:
    """The entries in the order of their partitions; those of one partition keep theirs, on which removals rely."""
    encoded = entries.column("_PARTITION").combine_chunks().dictionary_encode()
    places = _ranks(decode_rows(encoded.dictionary, types))[encoded.indices.to_numpy()]
    if (np.diff(places) >= 0).all():
        return entries
    return entries.take(pa.array(np.argsort(places, kind="stable")))


def _stats_of_one(partition: bytes, entries: int, columns: int) -> Stats:
    """The statistics of entries that are all in one partition: each column has one value."""
    if not columns:
        return Stats(EMPTY_ROW, EMPTY_ROW, ())
    return Stats(partition, partition, tuple(entries * is_null for is_null in null_flags(partition, columns)))


def partition_stats(partitions: pa.ChunkedArray, types: Sequence[DataType]) -> Stats:
    """Minimum, maximum and NULL count of each partition column over the entries of a manifest."""
    return partition_stats_of_groups(partitions, [len(partitions)], types)[0]


def partition_stats_of_groups(
    partitions: pa.ChunkedArray, counts: Sequence[int], types: Sequence[DataType]
) -> list[Stats]:
    """The same for each of several consecutive, non-empty groups, whose entry numbers are `counts`."""
    if not types:
        return [Stats(EMPTY_ROW, EMPTY_ROW, ()) for _ in counts]
    encoded = partitions.combine_chunks().dictionary_encode()
    codes = encoded.indices.to_numpy()
    starts = np.cumsum([0, *counts[:-1]])
    lows, highs, nulls = [], [], []
    for column in decode_rows(encoded.dictionary, types):
        ranks = _ranks([column])
        at_rank = np.empty(len(ranks), np.int64)
        at_rank[ranks] = np.arange(len(ranks))
        missing = column.is_null().to_numpy(zero_copy_only=False)
        # NULLs have the greatest ranks, so that a minimum is NULL only where all are; for the maximum they rank lowest.
        least = np.minimum.reduceat(ranks[codes], starts)
        greatest = np.maximum.reduceat(np.where(missing, -1, ranks)[codes], starts)
        lows.append(column.take(pa.array(at_rank[least])))
        highs.append(column.take(pa.array(np.where(greatest < 0, at_rank[least], at_rank[greatest]))))
        nulls.append(np.add.reduceat(missing[codes].astype(np.int64), starts).tolist())
    rows = zip(encode_rows(lows, types).to_pylist(), encode_rows(highs, types).to_pylist(), *nulls, strict=True)
    return [Stats(low, high, tuple(counted)) for low, high, *counted in rows]


def _ranks(columns: Sequence[pa.Array]) -> Rows:
    """The rank of each row in the order of all, NULLs last."""
    names = [str(index) for index in range(len(columns))]
    keys = [(name, "ascending") for name in names]
    order = pc.sort_indices(pa.table(list(columns), names), sort_keys=keys).to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def get_named(home: TableHome, path: str, snapshot_id: int | None = None) -> bytes:
    """Read a file that a snapshot names. Where it is missing: SnapshotExpiredError if nothing names it now, else
    MissingFileError.
    """
    try:
        return home.store.get(path)
    except NotFoundError as error:
        raise _gone(home, path, snapshot_id) from error


def _gone(home: TableHome, path: str, snapshot_id: int | None = None) -> LakeletError:
    from lakelet.commit.metadata.expired_file import missing_file  # noqa: PLC0415 - it reads manifests itself, and is rarely needed.

    return missing_file(home, path, snapshot_id)
