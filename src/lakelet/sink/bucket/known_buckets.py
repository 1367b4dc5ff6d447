"""Look up the buckets of existing keys, for the shuffle of rows to the writer of their bucket.

    partition ──► hashes ascending, and the bucket of each      6 bytes a key, read when the partition is first used

The result depends on one snapshot alone: it is the same in every task and every attempt.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from lakelet.sink.bucket.hash_indexes import HashIndexes
from lakelet.sink.bucket.sorted_tiers import ABSENT

Hashes = NDArray[np.int32]
Buckets = NDArray[np.int32]
_BUCKET_BITS = 16
_ROW_BITS = 32


class KnownBuckets:
    """The buckets of the keys that hash indexes name."""

    def __init__(self, indexes: HashIndexes) -> None:
        self._indexes = indexes
        self._partitions: dict[bytes, tuple[Hashes, NDArray[np.int16]]] = {}

    def find(self, partition: bytes, hashes: Hashes) -> Buckets:
        """The bucket of each hash in a partition, ABSENT for unknown ones."""
        known, buckets = self._load(partition)
        if not len(known) or not len(hashes):
            return np.full(len(hashes), ABSENT, np.int32)
        # In order they are looked up several times faster.
        packed = np.sort(hashes.astype(np.int64) << _ROW_BITS | np.arange(len(hashes)))
        ordered, rows = (packed >> _ROW_BITS).astype(np.int32), packed & ((1 << _ROW_BITS) - 1)
        places = np.searchsorted(known, ordered)
        places[places == len(known)] = 0
        found = np.empty(len(hashes), np.int32)
        found[rows] = np.where(known[places] == ordered, buckets[places], np.int16(ABSENT))
        return found

    def _load(self, partition: bytes) -> tuple[Hashes, NDArray[np.int16]]:
        loaded = self._partitions.get(partition)
        if loaded is None:
            loaded = self._partitions[partition] = _merged(self._indexes.load(partition).buckets)
        return loaded


def _merged(buckets: Mapping[int, Hashes]) -> tuple[Hashes, NDArray[np.int16]]:
    """All hashes of a partition. The least bucket wins, should a hash be in two."""
    if not buckets:
        return np.empty(0, np.int32), np.empty(0, np.int16)
    parts = [hashes.astype(np.int64) << _BUCKET_BITS | bucket for bucket, hashes in buckets.items()]
    packed = np.sort(np.concatenate(parts))
    hashes = (packed >> _BUCKET_BITS).astype(np.int32)
    first = np.ones(len(hashes), bool)
    first[1:] = hashes[1:] != hashes[:-1]
    numbers = (packed & ((1 << _BUCKET_BITS) - 1)).astype(np.int16)
    return (hashes, numbers) if first.all() else (hashes[first], numbers[first])
