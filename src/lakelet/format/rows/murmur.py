"""Murmur3 with 32 bits over BinaryRow bodies: the hash of keys and buckets.

Bytes to numbers and nothing else; which bytes to hash is decided by `binary_row_columns`. The hash
is the common one with two settings: the seed is 42, and the input, always a whole number of 4-byte
little-endian words, never has a tail.

    h = 42
    for each word:  h = rotl(h ^ rotl(word * C1, 15) * C2, 13) * 5 + 0xE6546B64
    h = h ^ length in bytes
    h = mix(h)      two rounds of xor-shift and multiply, and a last xor-shift

The result is read as a signed 32-bit number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lakelet.errors import InternalError
from lakelet.format.compiled.compiled_loop import compiled_loop

SEED = 42
_MASK = 0xFFFFFFFF
_C1 = 0xCC9E2D51
_C2 = 0x1B873593
_ADD = 0xE6546B64
_MIX1 = 0x85EBCA6B
_MIX2 = 0xC2B2AE35
_WORD = 4
_LONG_WORDS = 256

Words = NDArray[np.uint32]
Indices = NDArray[np.int64]
Hashes = NDArray[np.int32]


def murmur3_32(data: bytes) -> int:
    """The hash of one row's body as a signed number."""
    if len(data) % _WORD:
        raise InternalError(f"a row's body is whole 4-byte words, found {len(data)} bytes")
    h = SEED
    for at in range(0, len(data), _WORD):
        k = int.from_bytes(data[at : at + _WORD], "little") * _C1 & _MASK
        k = (k << 15 | k >> 17) * _C2 & _MASK
        h ^= k
        h = ((h << 13 | h >> 19) & _MASK) * 5 + _ADD & _MASK
    h ^= len(data)
    h = (h ^ h >> 16) * _MIX1 & _MASK
    h = (h ^ h >> 13) * _MIX2 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def hash_columns(words: Sequence[Words]) -> Hashes:
    """The hash of rows of one length, given by the places in them: an array is a word of every row, or the same one of all."""
    h = np.full(1, SEED, np.uint32)
    for word in words:
        k = word * np.uint32(_C1)
        k = (k << np.uint32(15) | k >> np.uint32(17)) * np.uint32(_C2)
        h = h ^ k
        h = (h << np.uint32(13) | h >> np.uint32(19)) * np.uint32(5) + np.uint32(_ADD)
    return _mixed(h ^ np.uint32(len(words) * _WORD)).view(np.int32)


def hash_words(words: Words, starts: Indices, counts: Indices) -> Hashes:
    """The hash of `counts[i]` words from `starts[i]` on, for every i."""
    if len(starts) and (int((starts + counts).max()) > len(words) or int(starts.min()) < 0 or int(counts.min()) < 0):
        raise InternalError("a row to hash reaches beyond its buffer")
    out = np.empty(len(starts), np.int32)
    if len(counts) and int(counts.max()) > _LONG_WORDS:
        # The twin in numpy takes a step for every word of the longest row.
        _hash_loop.load_if_enabled()
    run = _hash_loop.for_bytes(words.nbytes) or _hash_numpy
    run(words, starts, counts, out)
    return out


@compiled_loop("void(uint32[::1], int64[::1], int64[::1], int32[::1])", saved_ns_per_byte=1.0)
def _hash_loop(words: Words, starts: Indices, counts: Indices, out: Hashes) -> None:
    for i in range(starts.shape[0]):
        h = np.uint32(42)
        start = np.uint64(starts[i])
        for at in range(np.uint64(counts[i])):
            k = np.uint32(words[start + at] * np.uint32(0xCC9E2D51))
            k = np.uint32(np.uint32(k << np.uint32(15)) | np.uint32(k >> np.uint32(17)))
            h = np.uint32(h ^ np.uint32(k * np.uint32(0x1B873593)))
            h = np.uint32(np.uint32(h << np.uint32(13)) | np.uint32(h >> np.uint32(19)))
            h = np.uint32(np.uint32(h * np.uint32(5)) + np.uint32(0xE6546B64))
        h = np.uint32(h ^ np.uint32(counts[i] * 4))
        h = np.uint32(np.uint32(h ^ np.uint32(h >> np.uint32(16))) * np.uint32(0x85EBCA6B))
        h = np.uint32(np.uint32(h ^ np.uint32(h >> np.uint32(13))) * np.uint32(0xC2B2AE35))
        h = np.uint32(h ^ np.uint32(h >> np.uint32(16)))
        out[i] = np.int32(h)


def _hash_numpy(words: Words, starts: Indices, counts: Indices, out: Hashes) -> None:
    """The same, all rows at once, one word of each after the other; rows that have ended drop out."""
    h = np.full(len(starts), SEED, np.uint32)
    order = np.argsort(-counts, kind="stable")
    ordered_starts = starts[order]
    ordered_counts = counts[order]
    for at in range(int(counts.max()) if len(counts) else 0):
        alive = int(np.searchsorted(-ordered_counts, -at, side="left"))
        k = words[ordered_starts[:alive] + at] * np.uint32(_C1)
        k = (k << np.uint32(15) | k >> np.uint32(17)) * np.uint32(_C2)
        mixed = h[:alive] ^ k
        h[:alive] = (mixed << np.uint32(13) | mixed >> np.uint32(19)) * np.uint32(5) + np.uint32(_ADD)
    out[order] = _mixed(h ^ (ordered_counts * _WORD).astype(np.uint32)).view(np.int32)


def _mixed(h: Words) -> Words:
    h = (h ^ h >> np.uint32(16)) * np.uint32(_MIX1)
    h = (h ^ h >> np.uint32(13)) * np.uint32(_MIX2)
    return h ^ h >> np.uint32(16)
