"""The bloom filter of an SST file: Murmur3 with 32 bits (x86), double hashing.

bits per key   4
hash count     4
total bits     8
bits               bit n is bit n % 8, the lowest first, of byte n / 8

first  = murmur3(key, seed 0)         second = murmur3(key, seed first)
probe i of a key: (first + i * second) mod total bits, for i from 0 up to the hash count; all in unsigned 64-bit numbers
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lakelet.errors import CorruptionError
from lakelet.format.compiled.compiled_loop import compiled_loop

HASH_COUNT = 7
_HEAD = struct.Struct(">IIQ")
_MASK = 0xFFFFFFFF
_C1, _C2, _ADD, _MIX1, _MIX2 = 0xCC9E2D51, 0x1B873593, 0xE6546B64, 0x85EBCA6B, 0xC2B2AE35
_LEAST_BITS = 64
_MOST_HASHES = 64

Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]
Hashes = NDArray[np.uint32]


def murmur3(key: bytes, seed: int) -> int:
    """Murmur3's hash with 32 bits of one key, as an unsigned number."""
    h, whole = seed, len(key) & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(key[at : at + 4], "little") * _C1 & _MASK
        h ^= (k << 15 | k >> 17) * _C2 & _MASK
        h = (h << 13 | h >> 19) * 5 + _ADD & _MASK
    if whole < len(key):
        k = int.from_bytes(key[whole:], "little") * _C1 & _MASK
        h ^= (k << 15 | k >> 17) * _C2 & _MASK
    h ^= len(key)
    h = (h ^ h >> 16) * _MIX1 & _MASK
    h = (h ^ h >> 13) * _MIX2 & _MASK
    return h ^ h >> 16


def hash_keys(keys: Bytes, key_at: Longs) -> Hashes:
    """The two hashes of each key, in two columns."""
    out = np.empty((len(key_at) - 1, 2), np.uint32)
    run = _hash_loop.for_bytes(len(keys))
    if run is None:
        data = keys.tobytes()
        for row, (begin, end) in enumerate(zip(key_at[:-1].tolist(), key_at[1:].tolist(), strict=True)):
            first = murmur3(data[begin:end], 0)
            out[row] = first, murmur3(data[begin:end], first)
    else:
        run(keys, key_at, out)
    return out


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """The bits of a filter; `bits_per_key` is what it was made with."""

    bits_per_key: int
    hash_count: int
    total_bits: int
    bits: bytes

    @staticmethod
    def of(hashes: Hashes, bits_per_key: int) -> BloomFilter:
        """The filter of keys by their hashes."""
        total = max(_LEAST_BITS, -(-len(hashes) * bits_per_key // 8) * 8)
        bits = np.zeros(total // 8, np.uint8)
        run = _set_loop.for_bytes(len(hashes))
        if run is None:
            for probe in range(HASH_COUNT):
                at = (hashes[:, 0].astype(np.uint64) + np.uint64(probe) * hashes[:, 1]) % np.uint64(total)
                np.bitwise_or.at(bits, at >> np.uint64(3), (1 << (at & np.uint64(7)).astype(np.uint8)).astype(np.uint8))
        else:
            run(hashes, HASH_COUNT, total, bits)
        return BloomFilter(bits_per_key, HASH_COUNT, total, bits.tobytes())

    def may_hold(self, key: bytes) -> bool:
        """Whether the key can be among those that the filter was made of."""
        run = _probe_loop.for_bytes(len(key))
        if run is not None:
            found = np.zeros(1, np.uint8)
            run(
                np.frombuffer(self.bits, np.uint8),
                np.frombuffer(key, np.uint8),
                self.hash_count,
                self.total_bits,
                found,
            )
            return bool(found[0])
        first = murmur3(key, 0)
        second = murmur3(key, first)
        total, bits = self.total_bits, self.bits
        for probe in range(self.hash_count):
            at = (first + probe * second) % total
            if not bits[at >> 3] >> (at & 7) & 1:
                return False
        return True

    def may_hold_each(self, hashes: Hashes) -> NDArray[np.bool_]:
        """The same for keys by their hashes."""
        bits = np.frombuffer(self.bits, np.uint8)
        found = np.ones(len(hashes), np.bool_)
        first, second = hashes[:, 0].astype(np.uint64), hashes[:, 1].astype(np.uint64)
        for probe in range(self.hash_count):
            at = (first + np.uint64(probe) * second) % np.uint64(self.total_bits)
            found &= (bits[at >> np.uint64(3)] >> (at & np.uint64(7)).astype(np.uint8) & 1).astype(np.bool_)
        return found

    def encode(self) -> bytes:
        """The block of the filter."""
        return _HEAD.pack(self.bits_per_key, self.hash_count, self.total_bits) + self.bits

    @staticmethod
    def decode(data: bytes, *, path: str) -> BloomFilter | None:
        """The filter of a block; None where a file has none, and every key may be in it."""
        if not data:
            return None
        if len(data) < _HEAD.size:
            raise CorruptionError(f"{path}: expected a bloom filter of at least {_HEAD.size} bytes, found {len(data)}")
        per_key, hashes, total = _HEAD.unpack_from(data)
        bits = data[_HEAD.size :]
        if not 0 < total <= 8 * len(bits) or not 0 < hashes <= _MOST_HASHES:
            raise CorruptionError(f"{path}: a bloom filter of {total} bits and {hashes} hashes in {len(bits)} bytes")
        return BloomFilter(per_key, hashes, total, bits)


@compiled_loop(
    "void(Array(uint8, 1, 'C', readonly=True), Array(int64, 1, 'C', readonly=True), uint32[:, ::1])",
    saved_ns_per_byte=200.0,
)
def _hash_loop(keys: Bytes, key_at: Longs, out: Hashes) -> None:
    for row in range(key_at.shape[0] - 1):
        begin, size = key_at[row], key_at[row + 1] - key_at[row]
        for which in range(2):
            h = np.uint32(0) if which == 0 else out[row, 0]
            for start in range(0, size, 4):
                k = np.uint32(0)
                for place in range(min(4, size - start)):
                    k |= np.uint32(np.uint32(keys[begin + start + place]) << np.uint32(8 * place))
                k = np.uint32(k * np.uint32(0xCC9E2D51))
                k = np.uint32(np.uint32(k << np.uint32(15)) | np.uint32(k >> np.uint32(17)))
                h = np.uint32(h ^ np.uint32(k * np.uint32(0x1B873593)))
                if start + 4 <= size:
                    h = np.uint32(np.uint32(h << np.uint32(13)) | np.uint32(h >> np.uint32(19)))
                    h = np.uint32(np.uint32(h * np.uint32(5)) + np.uint32(0xE6546B64))
            h = np.uint32(h ^ np.uint32(size))
            h = np.uint32(np.uint32(h ^ np.uint32(h >> np.uint32(16))) * np.uint32(0x85EBCA6B))
            h = np.uint32(np.uint32(h ^ np.uint32(h >> np.uint32(13))) * np.uint32(0xC2B2AE35))
            out[row, which] = np.uint32(h ^ np.uint32(h >> np.uint32(16)))


@compiled_loop("void(uint32[:, ::1], int64, int64, uint8[::1])", saved_ns_per_byte=500.0)
def _set_loop(hashes: Hashes, count: int, total: int, bits: Bytes) -> None:
    for row in range(hashes.shape[0]):
        at, step = np.uint64(hashes[row, 0]), np.uint64(hashes[row, 1])
        for _ in range(count):
            bit = np.int64(at % np.uint64(total))
            bits[bit >> 3] |= np.uint8(1 << (bit & 7))
            at = np.uint64(at + step)


@compiled_loop(
    "void(Array(uint8, 1, 'C', readonly=True), Array(uint8, 1, 'C', readonly=True), int64, int64, uint8[::1])",
    saved_ns_per_byte=500.0,
)
def _probe_loop(bits: Bytes, key: Bytes, count: int, total: int, found: Bytes) -> None:
    """Write 1 where a filter holds one key."""
    first, h = np.uint32(0), np.uint32(0)
    for _ in range(2):
        first = h
        for start in range(0, key.shape[0], 4):
            k = np.uint32(0)
            for place in range(min(4, key.shape[0] - start)):
                k |= np.uint32(np.uint32(key[start + place]) << np.uint32(8 * place))
            k = np.uint32(k * np.uint32(0xCC9E2D51))
            k = np.uint32(np.uint32(k << np.uint32(15)) | np.uint32(k >> np.uint32(17)))
            h = np.uint32(h ^ np.uint32(k * np.uint32(0x1B873593)))
            if start + 4 <= key.shape[0]:
                h = np.uint32(np.uint32(h << np.uint32(13)) | np.uint32(h >> np.uint32(19)))
                h = np.uint32(np.uint32(h * np.uint32(5)) + np.uint32(0xE6546B64))
        h = np.uint32(h ^ np.uint32(key.shape[0]))
        h = np.uint32(np.uint32(h ^ np.uint32(h >> np.uint32(16))) * np.uint32(0x85EBCA6B))
        h = np.uint32(np.uint32(h ^ np.uint32(h >> np.uint32(13))) * np.uint32(0xC2B2AE35))
        h = np.uint32(h ^ np.uint32(h >> np.uint32(16)))
    at, step = np.uint64(first), np.uint64(h)
    for _ in range(count):
        bit = np.int64(at % np.uint64(total))
        if bits[bit >> 3] >> np.uint8(bit & 7) & np.uint8(1) == 0:
            return
        at = np.uint64(at + step)
    found[0] = np.uint8(1)
