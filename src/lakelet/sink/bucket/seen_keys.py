"""Number the distinct keys of a write, in the order of their first arrival.

Keys are BinaryRow bytes. They are looked up by a fingerprint of 64 bits and then compared byte by byte, so that two keys
with one fingerprint stay two keys: the later one lives in a dictionary of its own. Memory is that of the keys that came in
and some twenty bytes each, whatever the table holds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakelet.sink.bucket.sorted_tiers import ABSENT, SortedTiers

Fingerprints = NDArray[np.uint64]
Numbers = NDArray[np.int64]
_WORD = 4
_MAX_BYTES = 2**31 - 1
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)


class SeenKeys:
    """The keys of one write."""

    def __init__(self, fingerprint: Callable[[pa.Array], Fingerprints] | None = None) -> None:
        self._fingerprint = fingerprint or fingerprints
        self._tiers = SortedTiers()
        self._keys: list[pa.Array] = []
        self._clashing: dict[bytes, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def number(self, keys: pa.Array) -> Numbers:
        """The number of each key; new ones get the next numbers, in arrival order."""
        encoded = keys.dictionary_encode()
        distinct = encoded.dictionary
        prints = self._fingerprint(distinct)
        numbers = self._find(distinct, prints)
        new = np.flatnonzero(numbers == ABSENT)
        if len(new):
            numbers[new] = self._count + np.arange(len(new))
            self._add(distinct.take(pa.array(new)), prints[new], numbers[new])
        per_key: Numbers = numbers[encoded.indices.to_numpy()]
        return per_key

    def find(self, keys: pa.Array) -> Numbers:
        """The number of each key, ABSENT for those never seen."""
        return self._find(keys, self._fingerprint(keys))

    def _find(self, keys: pa.Array, prints: Fingerprints) -> Numbers:
        order = np.argsort(prints)
        numbers = np.empty(len(keys), np.int64)
        numbers[order] = self._tiers.find(prints[order])
        hits = np.flatnonzero(numbers != ABSENT)
        if len(hits):
            stored = self._stored(numbers[hits])
            other = pc.not_equal(stored, keys.take(pa.array(hits))).to_numpy(zero_copy_only=False)
            for place in hits[other].tolist():
                numbers[place] = self._clashing.get(keys[place].as_py(), ABSENT)
        return numbers

    def _add(self, keys: pa.Array, prints: Fingerprints, numbers: Numbers) -> None:
        order = np.argsort(prints, kind="stable")
        ordered = prints[order]
        # Keys whose fingerprint is taken, by one among them or by an earlier one, cannot be found by it.
        taken = self._tiers.find(ordered) != ABSENT
        taken[1:] |= ordered[1:] == ordered[:-1]
        for place in order[taken].tolist():
            self._clashing[keys[place].as_py()] = int(numbers[place])
        own = order[~taken]
        self._tiers.add(prints[own], numbers[own])
        self._keys.append(keys)
        self._count += len(keys)
        self._tidy()

    def _tidy(self) -> None:
        """Keep the pieces few: the last two are merged while they are of similar size and one array can hold them."""
        while len(self._keys) > 1 and len(self._keys[-2]) < 2 * len(self._keys[-1]):
            if self._keys[-2].nbytes + self._keys[-1].nbytes > _MAX_BYTES:
                return
            last = self._keys.pop()
            self._keys[-1] = pa.concat_arrays([self._keys[-1], last])

    def _stored(self, numbers: Numbers) -> pa.ChunkedArray:
        return pa.chunked_array(self._keys).take(pa.array(numbers))


def fingerprints(keys: pa.Array) -> Fingerprints:
    """Sixty-four bits of each key, in which every word and its place count; keys are whole words, as BinaryRows are."""
    if not len(keys):
        return np.empty(0, np.uint64)
    _, offsets_buffer, data = keys.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32, len(keys) + 1, keys.offset * 4).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    words = np.frombuffer(data, np.dtype("<u4"), (last - first) // _WORD, first).astype(np.uint64)
    starts = (offsets[:-1] - first) // _WORD
    lengths = np.diff(offsets) // _WORD
    if (lengths == lengths[0]).all():
        return _mixed_rows(words.reshape(len(keys), int(lengths[0])))
    places = (np.arange(len(words)) - np.repeat(starts, lengths)).astype(np.uint64)
    mixed = _mixed(words + (places + np.uint64(1)) * _ODD)
    return _mixed(np.add.reduceat(mixed, starts) + lengths.astype(np.uint64))


def _mixed_rows(words: Fingerprints) -> Fingerprints:
    """The same for keys of one length, a column of words at a time."""
    total = np.full(len(words), words.shape[1], np.uint64)
    with np.errstate(over="ignore"):
        for place in range(words.shape[1]):
            total += _mixed(words[:, place] + np.uint64(place + 1) * _ODD)
    return _mixed(total)


def _mixed(values: Fingerprints) -> Fingerprints:
    with np.errstate(over="ignore"):
        values = (values ^ (values >> np.uint64(30))) * _MIX
    return values ^ (values >> np.uint64(27))
