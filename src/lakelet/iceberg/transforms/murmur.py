"""Murmur3 with 32 bits and seed 0 over bytes of any length: Iceberg's bucket hash.

    h = 0
    for each whole 4-byte little-endian word:  h = rotl(h ^ rotl(word * C1, 15) * C2, 13) * 5 + 0xE6546B64
    the 1 to 3 bytes that are left, as a word:  h = h ^ rotl(word * C1, 15) * C2
    h = mix(h ^ length)

`lakelet.format.rows.murmur` is a different one: it has Paimon's seed, and its input never has a tail.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lakelet.format.compiled.compiled_loop import compiled_loop

_C1, _C2, _ADD = 0xCC9E2D51, 0x1B873593, 0xE6546B64
_MIX1, _MIX2 = 0x85EBCA6B, 0xC2B2AE35
_WORD = 4
_LONG_BYTES = 1024

Bytes = NDArray[np.uint8]
Indices = NDArray[np.int64]
Hashes = NDArray[np.int32]
_Words = NDArray[np.uint32]


def hash_longs(values: NDArray[np.int64]) -> Hashes:
    """The hash of each number's eight little-endian bytes."""
    bits = values.view(np.uint64)
    low = (bits & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    high = (bits >> np.uint64(32)).astype(np.uint32)
    h = _step(np.zeros(len(values), np.uint32), low)
    return _mixed(_step(h, high) ^ np.uint32(8))


def hash_bytes(data: Bytes, starts: Indices, lengths: Indices) -> Hashes:
    """The hash of `lengths[i]` bytes from `starts[i]` on, for every i."""
    out = np.empty(len(starts), np.int32)
    if not len(starts):
        return out
    if int(lengths.max()) > _LONG_BYTES:
        # The numpy version takes a step for every word of the longest value.
        _hash_loop.load_if_enabled()
    run = _hash_loop.for_bytes(int(lengths.sum()) + 8 * len(starts)) or _hash_numpy
    run(data, starts, lengths, out)
    return out


@compiled_loop("void(uint8[::1], int64[::1], int64[::1], int32[::1])", saved_ns_per_byte=1.0)
def _hash_loop(data: Bytes, starts: Indices, lengths: Indices, out: Hashes) -> None:
    for i in range(starts.shape[0]):
        h = np.uint32(0)
        start = np.uint64(starts[i])
        length = np.uint64(lengths[i])
        words = length >> np.uint64(2)
        for word in range(words):
            at = start + (np.uint64(word) << np.uint64(2))
            k = np.uint32(
                np.uint32(data[at])
                | np.uint32(np.uint32(data[at + np.uint64(1)]) << np.uint32(8))
                | np.uint32(np.uint32(data[at + np.uint64(2)]) << np.uint32(16))
                | np.uint32(np.uint32(data[at + np.uint64(3)]) << np.uint32(24))
            )
            k = np.uint32(k * np.uint32(0xCC9E2D51))
            k = np.uint32(np.uint32(k << np.uint32(15)) | np.uint32(k >> np.uint32(17)))
            h = np.uint32(h ^ np.uint32(k * np.uint32(0x1B873593)))
            h = np.uint32(np.uint32(h << np.uint32(13)) | np.uint32(h >> np.uint32(19)))
            h = np.uint32(np.uint32(h * np.uint32(5)) + np.uint32(0xE6546B64))
        left = length - (words << np.uint64(2))
        if left > np.uint64(0):
            k = np.uint32(0)
            for tail in range(left):
                byte = np.uint32(data[start + (words << np.uint64(2)) + np.uint64(tail)])
                k = np.uint32(k | np.uint32(byte << np.uint32(np.uint64(tail) * np.uint64(8))))
            k = np.uint32(k * np.uint32(0xCC9E2D51))
            k = np.uint32(np.uint32(k << np.uint32(15)) | np.uint32(k >> np.uint32(17)))
            h = np.uint32(h ^ np.uint32(k * np.uint32(0x1B873593)))
        h = np.uint32(h ^ np.uint32(length))
        h = np.uint32(np.uint32(h ^ np.uint32(h >> np.uint32(16))) * np.uint32(0x85EBCA6B))
        h = np.uint32(np.uint32(h ^ np.uint32(h >> np.uint32(13))) * np.uint32(0xC2B2AE35))
        h = np.uint32(h ^ np.uint32(h >> np.uint32(16)))
        out[i] = np.int32(h)


def _hash_numpy(data: Bytes, starts: Indices, lengths: Indices, out: Hashes) -> None:
    """The same, all values at once, one word of each after the other; values that have ended drop out."""
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[order], lengths[order]
    words, left = lengths // _WORD, lengths % _WORD
    h = np.zeros(len(starts), np.uint32)
    for at in range(int(words.max())):
        alive = int(np.searchsorted(-words, -at, side="left"))
        place = starts[:alive] + at * _WORD
        h[:alive] = _step(h[:alive], _word(data, place, range(_WORD)))
    for count in range(1, _WORD):
        rows = np.flatnonzero(left == count)
        place = starts[rows] + words[rows] * _WORD
        h[rows] ^= _scrambled(_word(data, place, range(count)))
    out[order] = _mixed(h ^ lengths.astype(np.uint32))


def _word(data: Bytes, place: Indices, count: range) -> _Words:
    found: _Words = np.zeros(len(place), np.uint32)
    for at in count:
        found |= data[place + at].astype(np.uint32) << np.uint32(8 * at)
    return found


def _scrambled(k: _Words) -> _Words:
    k = k * np.uint32(_C1)
    found: _Words = (k << np.uint32(15) | k >> np.uint32(17)) * np.uint32(_C2)
    return found


def _step(h: _Words, k: _Words) -> _Words:
    h = h ^ _scrambled(k)
    found: _Words = (h << np.uint32(13) | h >> np.uint32(19)) * np.uint32(5) + np.uint32(_ADD)
    return found


def _mixed(h: _Words) -> Hashes:
    h = (h ^ h >> np.uint32(16)) * np.uint32(_MIX1)
    h = (h ^ h >> np.uint32(13)) * np.uint32(_MIX2)
    return (h ^ h >> np.uint32(16)).view(np.int32)
