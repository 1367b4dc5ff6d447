"""A cache of the live files of a table's newest snapshot, for lookups.

A lookup needs the files of a bucket or two, with low latency. So the files of the newest snapshot that was requested are cached
per table, indexed by partition and bucket. The next snapshot shares most manifests with the one before: only new ones are
decoded. An entry belongs to one snapshot, identified by its id and its delta manifest list (a rollback reuses ids), so that a
lookup never sees another one's files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelet.cache.lru_cache import LruCache
from lakelet.commit.metadata.manifests import drop_removed, read_manifest, snapshot_manifests
from lakelet.format.manifest.manifest_columns import KEY_COLUMNS, READ_COLUMNS, columns_to_entries
from lakelet.model.manifest import ManifestEntry, ManifestFile
from lakelet.model.snapshot import Snapshot
from lakelet.model.split import DeletionVector, Split
from lakelet.scan.splits import SplitPacker
from lakelet.storage.home import TableHome

_MOST_TABLES = 64
Places = npt.NDArray[np.int64]


class LiveFiles:
    """The files of one snapshot by partition and bucket; splits are made lazily."""

    def __init__(
        self,
        snapshot: Snapshot,
        manifests: Mapping[str, pa.Table],
        visible: Callable[[pa.Table], pa.Table],
        packer: SplitPacker,
        vectors: Mapping[str, DeletionVector],
    ) -> None:
        self.manifests = manifests
        self._snapshot_id = snapshot.id
        self._packer = packer
        self._vectors = vectors
        tables = [table for table in manifests.values() if table.num_rows]
        self._entries = visible(drop_removed(pa.concat_tables(tables))) if tables else None
        self._buckets = self._grouped()
        self._totals = {
            partition: frozenset(total for _, totals in buckets.values() for total in totals)
            for partition, buckets in self._buckets.items()
        }
        self._splits: dict[tuple[bytes, int], Split] = {}

    @property
    def partitions(self) -> Sequence[bytes]:
        """The partitions that have files."""
        return list(self._buckets)

    def buckets(self, partition: bytes) -> Sequence[int]:
        """The buckets of a partition that have files."""
        return list(self._buckets.get(partition, ()))

    def totals(self, partition: bytes) -> frozenset[int]:
        """The bucket counts under which the files of a partition were written."""
        return self._totals.get(partition, frozenset())

    def split(self, partition: bytes, bucket: int) -> Split | None:
        """All files of a bucket; None where there are none."""
        found = self._splits.get((partition, bucket))
        if found is None and self._entries is not None and bucket in self._buckets.get(partition, ()):
            rows, _ = self._buckets[partition][bucket]
            entries: list[ManifestEntry] = columns_to_entries(self._entries.take(pa.array(rows)))
            found = self._packer.whole(self._snapshot_id, entries, self._vectors)
            self._splits[(partition, bucket)] = found
        return found

    def splits(self) -> Iterator[Split]:
        """All files, bucket by bucket."""
        for partition in self.partitions:
            for bucket in self.buckets(partition):
                split = self.split(partition, bucket)
                if split is not None:
                    yield split

    def _grouped(self) -> dict[bytes, dict[int, tuple[Places, set[int]]]]:
        """The row numbers of each bucket's entries, and the bucket counts that they record."""
        grouped: dict[bytes, dict[int, tuple[Places, set[int]]]] = {}
        if self._entries is None or not self._entries.num_rows:
            return grouped
        encoded = self._entries.column("_PARTITION").combine_chunks().dictionary_encode()
        codes = encoded.indices.to_numpy()
        buckets = self._entries.column("_BUCKET").to_numpy()
        totals = self._entries.column("_TOTAL_BUCKETS").to_numpy()
        order = np.lexsort((buckets, codes))
        changes = np.flatnonzero(np.diff(codes[order]) | np.diff(buckets[order])) + 1
        for rows in np.split(order, changes):
            partition = encoded.dictionary[int(codes[rows[0]])].as_py()
            grouped.setdefault(partition, {})[int(buckets[rows[0]])] = (rows, set(np.unique(totals[rows]).tolist()))
        return grouped


class LiveFilesCache:
    """The live files of the most recently used tables, one snapshot each."""

    def __init__(self) -> None:
        self._known: LruCache[tuple[tuple[object, ...], LiveFiles]] = LruCache()

    def at(
        self,
        home: TableHome,
        snapshot: Snapshot,
        schema_id: int,
        make: Callable[[Mapping[str, pa.Table]], LiveFiles],
    ) -> LiveFiles:
        """The live files of a snapshot, read in the schema of that id; `make` gets its manifests, decoded, by name."""
        table = (home.store.location, home.paths.branch_root)
        version = (snapshot.id, snapshot.delta_manifest_list, schema_id)
        known = self._known.get(table)
        if known is not None and known[0] == version:
            return known[1]
        manifests = snapshot_manifests(home, snapshot)
        before: Mapping[str, pa.Table] = {} if known is None else known[1].manifests
        found = make(
            {
                manifest.name: before[manifest.name] if manifest.name in before else _read(home, manifest)
                for manifest in manifests
            }
        )
        self._known.put(table, (version, found), limit=_MOST_TABLES)
        return found


def _read(home: TableHome, manifest: ManifestFile) -> pa.Table:
    return read_manifest(home, manifest, [*READ_COLUMNS, *KEY_COLUMNS])


LIVE_FILES = LiveFilesCache()
"""The cache of this process."""
