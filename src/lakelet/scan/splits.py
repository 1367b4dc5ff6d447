"""Pack files into splits.

Files of one bucket are packed in order until a split reaches its target size; opening a file counts as some bytes, so that many
small files do not end up in one split. What comes out is picklable and independent of the process that planned it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np
import pyarrow as pa

from lakelet.format.manifest.manifest_columns import columns_to_entries
from lakelet.format.partition_folders import PartitionFolders
from lakelet.model.manifest import ManifestEntry
from lakelet.model.split import DeletionVector, Split
from lakelet.options import SOURCE_SPLIT_OPEN_FILE_COST, SOURCE_SPLIT_TARGET_SIZE, TableOptions

# Files that take up less than this share of a split are not worth one of their own.
_SMALL_SHARE = 8


class SplitPacker:
    """Packs splits by the sizes in the table's options."""

    def __init__(self, options: TableOptions, folders: PartitionFolders) -> None:
        self._target_bytes = options.get(SOURCE_SPLIT_TARGET_SIZE)
        self._open_bytes = options.get(SOURCE_SPLIT_OPEN_FILE_COST)
        self._folders = folders

    def pack(self, snapshot_id: int, entries: pa.Table, vectors: Mapping[str, DeletionVector]) -> tuple[Split, ...]:
        """The splits of these live entries, in the order of the entries; all their rows are visible."""
        splits: list[Split] = []
        for _, group in groupby(columns_to_entries(entries), key=lambda entry: (entry.partition, entry.bucket)):
            splits.extend(self.pack_groups(snapshot_id, [[entry] for entry in group], vectors, needs_merge=False))
        return tuple(splits)

    def pack_groups(
        self,
        snapshot_id: int,
        groups: Sequence[Sequence[ManifestEntry]],
        vectors: Mapping[str, DeletionVector],
        *,
        needs_merge: bool,
    ) -> list[Split]:
        """The splits of groups of files of one bucket, in their order; the files of a group stay together."""
        splits: list[Split] = []
        packed: list[ManifestEntry] = []
        weight = 0
        for group in groups:
            cost = self._cost(group)
            if packed and weight + cost > self._target_bytes:
                splits.append(self._split(snapshot_id, packed, vectors, needs_merge))
                packed, weight = [], 0
            packed.extend(group)
            weight += cost
        if packed:
            splits.append(self._split(snapshot_id, packed, vectors, needs_merge))
        return splits

    def is_small(self, groups: Sequence[Sequence[ManifestEntry]]) -> bool:
        """Whether a split of these files alone would be a waste."""
        return sum(self._cost(group) for group in groups) * _SMALL_SHARE <= self._target_bytes

    def whole(self, snapshot_id: int, entries: Sequence[ManifestEntry], vectors: Mapping[str, DeletionVector]) -> Split:
        """One split of all these files of a bucket, whatever its size, for lookups, which read a small part of it."""
        return self._split(snapshot_id, entries, vectors, needs_merge=True)

    def _cost(self, group: Sequence[ManifestEntry]) -> int:
        return sum(max(entry.file.size, self._open_bytes) for entry in group)

    def _split(
        self,
        snapshot_id: int,
        entries: Sequence[ManifestEntry],
        vectors: Mapping[str, DeletionVector],
        needs_merge: bool,
    ) -> Split:
        first = entries[0]
        folder = self._folders.bucket_folder(first.partition, first.bucket)
        return Split(
            snapshot_id,
            first.partition,
            first.bucket,
            first.total_buckets,
            tuple(entry.file for entry in entries),
            tuple(f"{folder}/{entry.file.name}" for entry in entries),
            tuple(vectors.get(entry.file.name) for entry in entries),
            needs_merge,
        )


def in_written_order(entries: pa.Table) -> pa.Table:
    """Files of each bucket together and by sequence number: compaction adds files late that hold early rows."""
    if not entries.num_rows:
        return entries
    partitions = entries.column("_PARTITION").combine_chunks().dictionary_encode().indices.to_numpy()
    buckets, numbers = (entries.column(name).to_numpy() for name in ("_BUCKET", "_MIN_SEQUENCE_NUMBER"))
    return entries.take(pa.array(np.lexsort((numbers, buckets, partitions))))
