"""A map from integers to integers that grows by batches: a few sorted arrays, merged when they reach similar sizes.

Looking up a sorted batch walks each array once and mostly forwards, which caches like; there is one array per doubling of
the size. Eight bytes a key or twelve, no Python object among them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

ABSENT = -1


class SortedTiers:
    """Keys of one integer type, each once, with a number from 0 on for each."""

    def __init__(self) -> None:
        self._tiers: list[tuple[NDArray[Any], NDArray[Any]]] = []

    def find(self, keys: NDArray[Any]) -> NDArray[np.int64]:
        """The numbers of keys, which are ascending; ABSENT for those not there."""
        found = np.full(len(keys), ABSENT, np.int64)
        for tier, numbers in self._tiers:
            places = np.searchsorted(tier, keys)
            places[places == len(tier)] = 0
            hit = tier[places] == keys
            found[hit] = numbers[places[hit]]
        return found

    def add(self, keys: NDArray[Any], numbers: NDArray[Any]) -> None:
        """Takes keys that are not there yet, ascending."""
        if not len(keys):
            return
        while self._tiers and len(self._tiers[-1][0]) < 2 * len(keys):
            tier, values = self._tiers.pop()
            merged = np.concatenate([tier, keys])
            order = np.argsort(merged, kind="stable")
            keys, numbers = merged[order], np.concatenate([values, numbers])[order]
        self._tiers.append((keys, numbers))
