"""Assign new keys to the dynamic buckets of a partition, by how full each bucket is.

    1. the buckets there are, the lowest first, each until it holds its target
    2. new buckets, the lowest free number first, each until it holds its target
    3. once there may be no more buckets: the one with the fewest keys, of equals the lowest

The rule is applied key by key, so that n keys and then m get the same buckets as n + m at once. Buckets are
divided among assigners: assigner `first` of `step` has the buckets first, first + step, …, and never touches another.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from lakelet.errors import InvalidError

# Bucket numbers of dynamic buckets are 16-bit numbers in Paimon's indexes, and the greatest is not used.
MOST_BUCKETS = 2**15 - 1
UNBOUNDED = -1

Buckets = NDArray[np.int32]


class BucketRoom:
    """The buckets of one assigner in one partition, with how many keys each has."""

    def __init__(
        self, counts: Mapping[int, int], *, target: int, most: int = UNBOUNDED, first: int = 0, step: int = 1
    ) -> None:
        self._counts = {bucket: count for bucket, count in sorted(counts.items()) if bucket % step == first}
        self._target = target
        self._bounded = most != UNBOUNDED
        self._end = min(most, MOST_BUCKETS) if self._bounded else MOST_BUCKETS
        self._next = first
        self._step = step

    def take(self, keys: int) -> Buckets:
        """The buckets of the next new keys, in their order."""
        parts: list[tuple[int, int]] = []
        left = keys
        for bucket, count in self._counts.items():
            taken = min(left, self._target - count)
            if taken > 0:
                parts.append((bucket, taken))
                left -= taken
        while left > 0 and (opened := self._free()) is not None:
            taken = min(left, self._target)
            parts.append((opened, taken))
            left -= taken
        for bucket, taken in parts:
            self._counts[bucket] = self._counts.get(bucket, 0) + taken
        filled = np.repeat(np.array([b for b, _ in parts], np.int32), [taken for _, taken in parts])
        return np.concatenate([filled, self._overfill(left)]) if left else filled

    def _free(self) -> int | None:
        """The next number that is no bucket yet, None where there may be no more."""
        while self._next in self._counts:
            self._next += self._step
        if self._next >= self._end:
            return None
        self._next += self._step
        return self._next - self._step

    def _overfill(self, keys: int) -> Buckets:
        """Assign keys beyond the buckets' targets, each to the emptiest bucket: the `keys` least (count, bucket) pairs."""
        if not self._bounded or not self._counts:
            raise InvalidError(
                f"{keys} keys have no bucket to go to: all {len(self._counts)} that there may be hold "
                f"{self._target} keys; raise 'dynamic-bucket.target-row-num'"
            )
        buckets = np.array(sorted(self._counts), np.int32)
        counts = np.array([self._counts[bucket] for bucket in buckets.tolist()], np.int64)
        ordered = np.sort(counts)
        # The key count that the emptiest buckets reach together, found where raising them to it uses up the keys.
        lifted = ordered * np.arange(1, len(ordered) + 1) - np.cumsum(ordered)
        together = int(np.searchsorted(lifted, keys, side="left")) or 1
        level = int(-(-(int(ordered[:together].sum()) + keys) // together))
        room = np.maximum(level - counts, 0)
        steps = np.arange(int(room.sum())) - np.repeat(np.cumsum(room) - room, room)
        levels = np.repeat(counts, room) + steps
        chosen = np.repeat(buckets, room)[np.argsort(levels, kind="stable")][:keys]
        for bucket, taken in zip(*np.unique(chosen, return_counts=True), strict=True):
            self._counts[int(bucket)] += int(taken)
        return chosen
