"""Encode and decode hash indexes: the key hashes of a dynamic bucket.

    int32 big-endian, int32 big-endian, …        one hash of a trimmed primary key each, nothing before, between or after

A file belongs to one bucket of one partition; the index manifest says to which, and how many hashes there are. Lakelet writes
them ascending, so that a reader merges instead of sorting; other writers do not, and no reader may rely on it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lakelet.errors import CorruptionError

HASH_INDEX = "HASH"
_STORED = np.dtype(">i4")

Hashes = NDArray[np.int32]


def encode_hash_index(hashes: Hashes) -> bytes:
    """The file of these hashes, ascending and each once."""
    return ascending(hashes).astype(_STORED).tobytes()


def ascending(hashes: Hashes) -> Hashes:
    """The hashes in order, each once. (numpy's own `unique` is several times slower on numbers that hardly repeat.)"""
    if (hashes[1:] > hashes[:-1]).all():
        return hashes
    ordered = np.sort(hashes)
    once = np.ones(len(ordered), bool)
    once[1:] = ordered[1:] != ordered[:-1]
    return ordered if once.all() else ordered[once]


def decode_hash_index(data: bytes, *, path: str, expected: int | None = None) -> Hashes:
    """The hashes of a file in their order; `expected` is how many the index manifest promises."""
    if len(data) % _STORED.itemsize:
        raise CorruptionError(f"{path}: a hash index holds whole 4-byte numbers, found {len(data)} bytes")
    hashes = np.frombuffer(data, _STORED).astype(np.int32)
    if expected is not None and len(hashes) != expected:
        raise CorruptionError(f"{path}: expected {expected} hashes, found {len(hashes)}")
    return hashes
