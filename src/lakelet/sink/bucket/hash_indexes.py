"""Read the hash indexes of a table's partitions in one snapshot, and write those of the next.

An index lists the keys of one dynamic bucket by their hashes. A bucket with rows but without an index was written by another
program: its index is rebuilt from the keys in its files, for an unindexed key would be assigned a second
bucket. (Paimon treats such a bucket as empty.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lakelet.commit.index_changes import read_index_entries
from lakelet.commit.metadata.manifests import get_named
from lakelet.errors import InternalError
from lakelet.format.index.hash_index import HASH_INDEX, ascending, decode_hash_index, encode_hash_index
from lakelet.model.bucket_mode import Place
from lakelet.model.commit_message import CommitMessage
from lakelet.model.data_file import IndexFile
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome

Hashes = NDArray[np.int32]
BucketHashes = Callable[[bytes, int], Hashes]
_THREADS = 8


@dataclass(frozen=True, slots=True)
class PartitionHashes:
    """The key hashes of one partition by bucket. `names` are the index files that they were read from."""

    buckets: Mapping[int, Hashes]
    names: tuple[str, ...]


class HashIndexes:
    """Reads indexes of a snapshot and writes new ones.

    `live` are the places that have files in the snapshot; `keys_of` gives the hashes of all keys of a place and is called
    where an index is missing.
    """

    def __init__(
        self,
        home: TableHome,
        snapshot: Snapshot | None,
        *,
        live: Collection[Place] = (),
        keys_of: BucketHashes | None = None,
    ) -> None:
        self._home = home
        self._snapshot = snapshot
        self._keys_of = keys_of
        self._entries: dict[bytes, dict[int, IndexFile]] = {}
        for entry in read_index_entries(home, snapshot) if snapshot is not None else ():
            if entry.file.index_type == HASH_INDEX:
                self._entries.setdefault(entry.partition, {})[entry.bucket] = entry.file
        self._missing: dict[bytes, list[int]] = {}
        for partition, bucket in live:
            if bucket not in self._entries.get(partition, {}):
                self._missing.setdefault(partition, []).append(bucket)
        self._restored: dict[Place, Hashes] = {}
        self._prefix = f"index-{home.ids.uuid()}"
        self._written: list[str] = []

    def load(self, partition: bytes) -> PartitionHashes:
        """The hashes in each bucket of a partition."""
        files = self._entries.get(partition, {})
        with ThreadPoolExecutor(_THREADS) as pool:
            buckets = dict(zip(files, pool.map(self._read, files.values()), strict=True))
        for bucket in self._missing.get(partition, ()):
            buckets[bucket] = self._restore(partition, bucket)
        return PartitionHashes(buckets, self.names(partition))

    def buckets(self, partition: bytes) -> list[int]:
        """The buckets of a partition that have keys."""
        return sorted({*self._entries.get(partition, {}), *self._missing.get(partition, ())})

    def load_bucket(self, partition: bytes, bucket: int) -> Hashes:
        """The hashes in one bucket."""
        file = self._entries.get(partition, {}).get(bucket)
        if file is not None:
            return self._read(file)
        missing = bucket in self._missing.get(partition, ())
        return self._restore(partition, bucket) if missing else np.empty(0, np.int32)

    def counts(self) -> dict[Place, int]:
        """The approximate number of indexed keys per bucket; nothing is read for it."""
        return {
            (partition, bucket): file.row_count
            for partition, files in self._entries.items()
            for bucket, file in files.items()
        }

    def names(self, partition: bytes) -> tuple[str, ...]:
        """The index files of a partition in the snapshot."""
        return tuple(sorted(file.name for file in self._entries.get(partition, {}).values()))

    def complete(
        self, messages: Sequence[CommitMessage], hashes: Mapping[Place, Hashes], *, fresh: bool = False
    ) -> tuple[CommitMessage, ...]:
        """The messages with the new index of each bucket that got new keys, and with the indexes that the assignment read.

        `hashes` are of keys that went to each place, known ones among them or not. A `fresh` index replaces whatever the
        partition had, for it is overwritten.
        """
        completed = []
        for message in messages:
            place = (message.partition, message.bucket)
            added = hashes.get(place, np.empty(0, np.int32))
            index = self._write_fresh(added) if fresh else self._write_grown(place, added)
            names = None if fresh else self.names(message.partition)
            completed.append(replace(message, new_hash_index=index, hash_indexes=names))
        return tuple(completed)

    def abort(self) -> None:
        """Removes the indexes written."""
        written, self._written = self._written, []
        self._home.store.delete(written)

    def _write_fresh(self, hashes: Hashes) -> IndexFile | None:
        return self._write(hashes) if len(hashes) else None

    def _write_grown(self, place: Place, added: Hashes) -> IndexFile | None:
        partition, bucket = place
        file = self._entries.get(partition, {}).get(bucket)
        if file is None:
            if bucket in self._missing.get(partition, ()):
                added = np.concatenate([self._restore(partition, bucket), added])
            return self._write_fresh(added)
        if not len(added):
            return None
        known = self._read(file)
        grown = ascending(np.concatenate([known, added]))
        return self._write(grown) if len(grown) > len(ascending(known)) else None

    def _write(self, hashes: Hashes) -> IndexFile:
        data = encode_hash_index(hashes)
        name = f"{self._prefix}-{len(self._written)}"
        path = self._home.paths.index(name)
        self._written.append(path)
        self._home.put_new(path, data)
        return IndexFile(HASH_INDEX, name, len(data), len(data) // 4)

    def _restore(self, partition: bytes, bucket: int) -> Hashes:
        place = (partition, bucket)
        if place not in self._restored:
            if self._keys_of is None:
                raise InternalError(f"bucket {bucket} has rows but no hash index, and nothing to make one from")
            self._restored[place] = ascending(np.asarray(self._keys_of(partition, bucket), np.int32))
        return self._restored[place]

    def _read(self, file: IndexFile) -> Hashes:
        path = self._home.paths.index(file.name)
        return decode_hash_index(get_named(self._home, path), path=self._home.where(path), expected=file.row_count)
