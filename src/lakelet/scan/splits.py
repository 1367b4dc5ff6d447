"""Packing files into splits.

Files of one bucket are packed in order until a split reaches its target size; opening a file counts as some bytes, so that many
small files do not end up in one split. What comes out is picklable and independent of the process that planned it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

import pyarrow as pa

from lakelet.format.manifest_columns import columns_to_entries
from lakelet.format.partition_folders import PartitionFolders
from lakelet.model.manifest import ManifestEntry
from lakelet.model.split import DeletionVector, Split
from lakelet.options import SOURCE_SPLIT_OPEN_FILE_COST, SOURCE_SPLIT_TARGET_SIZE, TableOptions


class SplitPacker:
    """Makes splits as the table's options ask for."""

    def __init__(self, options: TableOptions, folders: PartitionFolders) -> None:
        self._target_bytes = options.get(SOURCE_SPLIT_TARGET_SIZE)
        self._open_bytes = options.get(SOURCE_SPLIT_OPEN_FILE_COST)
        self._folders = folders

    def pack(self, snapshot_id: int, entries: pa.Table, vectors: Mapping[str, DeletionVector]) -> tuple[Split, ...]:
        """The splits of these live entries, in the order of the entries."""
        splits: list[Split] = []
        for (partition, bucket), group in groupby(
            columns_to_entries(entries), key=lambda entry: (entry.partition, entry.bucket)
        ):
            folder = self._folders.bucket_folder(partition, bucket)
            packed: list[ManifestEntry] = []
            weight = 0
            for entry in group:
                cost = max(entry.file.size, self._open_bytes)
                if packed and weight + cost > self._target_bytes:
                    splits.append(_split(snapshot_id, folder, packed, vectors))
                    packed, weight = [], 0
                packed.append(entry)
                weight += cost
            splits.append(_split(snapshot_id, folder, packed, vectors))
        return tuple(splits)


def _split(snapshot_id: int, folder: str, entries: list[ManifestEntry], vectors: Mapping[str, DeletionVector]) -> Split:
    first = entries[0]
    return Split(
        snapshot_id,
        first.partition,
        first.bucket,
        first.total_buckets,
        tuple(entry.file for entry in entries),
        tuple(f"{folder}/{entry.file.name}" for entry in entries),
        tuple(vectors.get(entry.file.name) for entry in entries),
    )
