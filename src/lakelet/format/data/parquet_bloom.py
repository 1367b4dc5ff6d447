"""Read the bloom filters of Parquet files: whether a value can be in a column of a row group.

Arrow writes them and gives their offsets, but does not evaluate them. A filter is a header in Thrift's compact protocol and,
right behind it, a whole number of blocks of eight 32-bit words, little-endian:

    header      1: i32 bytes of the blocks | 2: algorithm {1: split blocks} | 3: hash {1: XXH64} | 4: compression {1: none}
    blocks      32 bytes each

A value is hashed in its PLAIN encoding, without the length in front: an INT32 is 4 bytes, an INT64 is 8, text its
UTF-8 bytes. The upper half of the hash picks the block, (upper * blocks) >> 32; the lower half one bit in each
word, (lower * SALT[word]) >> 27. A value can be in the column only if all eight bits are set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.errors import CorruptionError

Hashes = NDArray[np.uint64]
HEADER_ROOM = 64
"""Bytes within which every header ends."""
_WORDS = 8
_BLOCK_BYTES = 32
_SALT = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_STRIPE = 32
# Thrift's type numbers.
_TRUE, _FALSE, _I16, _I32, _I64, _STRUCT = 1, 2, 4, 5, 6, 12


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """The blocks of one filter, a row of eight words each."""

    blocks: NDArray[np.uint32]

    @property
    def nbytes(self) -> int:
        """The size of the blocks."""
        return self.blocks.nbytes

    def may_hold(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Whether the column can hold a value of each hash; a False is certain."""
        upper = hashes >> np.uint64(32)
        block = (upper * np.uint64(len(self.blocks))) >> np.uint64(32)
        lower = hashes.astype(np.uint32)
        bits = np.uint32(1) << ((lower[:, None] * _SALT) >> np.uint32(27))
        found: NDArray[np.bool_] = ((self.blocks[block.astype(np.int64)] & bits) == bits).all(axis=1)
        return found


def header_of(data: bytes, *, where: str) -> tuple[int, int] | None:
    """The length of the header at the start of `data`, and that of the blocks that follow it.

    None if the filter is of a kind that came after this was written, which then tells nothing.
    """
    try:
        fields, end = _read_struct(data, 0)
        size = fields[1]
        known = [fields[number].keys() == {1} for number in (2, 3, 4)]
    except (IndexError, KeyError, AttributeError) as error:
        raise CorruptionError(f"{where}: not the header of a bloom filter") from error
    if not all(known):
        return None
    if not isinstance(size, int) or size < _BLOCK_BYTES or size % _BLOCK_BYTES:
        raise CorruptionError(f"{where}: a bloom filter cannot have {size} bytes")
    return end, size


def filter_of(blocks: bytes, *, where: str) -> BloomFilter:
    """The filter whose blocks these are."""
    if not blocks or len(blocks) % _BLOCK_BYTES:
        raise CorruptionError(f"{where}: a bloom filter cannot have {len(blocks)} bytes")
    return BloomFilter(np.frombuffer(blocks, "<u4").reshape(-1, _WORDS))


def hash_fixed(values: NDArray[Any]) -> Hashes:
    """XXH64 of numbers of 4 or 8 bytes, in their little-endian form."""
    width = values.dtype.itemsize
    return _hash_equal(np.ascontiguousarray(values).view(np.uint8).reshape(-1, width))


def hash_texts(values: pa.Array) -> Hashes:
    """XXH64 of every string or byte string; none is NULL."""
    count = len(values)
    if not count:
        return np.empty(0, np.uint64)
    _, offset_buffer, data_buffer = values.buffers()
    offsets = np.frombuffer(offset_buffer, "<i4", count + 1, values.offset * 4).astype(np.int64)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    lengths = np.diff(offsets)
    found = np.empty(count, np.uint64)
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        found[rows] = _hash_equal(data[offsets[rows][:, None] + np.arange(length)])
    return found


def _hash_equal(rows: NDArray[np.uint8]) -> Hashes:
    """XXH64 with the seed 0 of byte strings of one length, a row each."""
    count, length = rows.shape
    at = 0
    if length >= _STRIPE:
        lanes = [np.full(count, start, np.uint64) for start in (_sum(_P1, _P2), _P2, np.uint64(0), _negative(_P1))]
        while at + _STRIPE <= length:
            for number in range(4):
                lanes[number] = _round(lanes[number], _words(rows, at + 8 * number, "<u8"))
            at += _STRIPE
        mixed = _rotated(lanes[0], 1) + _rotated(lanes[1], 7) + _rotated(lanes[2], 12) + _rotated(lanes[3], 18)
        for lane in lanes:
            mixed = (mixed ^ _round(np.zeros(count, np.uint64), lane)) * _P1 + _P4
    else:
        mixed = np.full(count, _P5, np.uint64)
    mixed = mixed + np.uint64(length)
    while at + 8 <= length:
        mixed = mixed ^ _round(np.zeros(count, np.uint64), _words(rows, at, "<u8"))
        mixed = _rotated(mixed, 27) * _P1 + _P4
        at += 8
    if at + 4 <= length:
        mixed = _rotated(mixed ^ _words(rows, at, "<u4") * _P1, 23) * _P2 + _P3
        at += 4
    for place in range(at, length):
        mixed = _rotated(mixed ^ rows[:, place].astype(np.uint64) * _P5, 11) * _P1
    mixed = (mixed ^ mixed >> np.uint64(33)) * _P2
    mixed = (mixed ^ mixed >> np.uint64(29)) * _P3
    return mixed ^ mixed >> np.uint64(32)


def _round(lane: Hashes, words: Hashes) -> Hashes:
    return _rotated(lane + words * _P2, 31) * _P1


def _rotated(values: Hashes, bits: int) -> Hashes:
    return values << np.uint64(bits) | values >> np.uint64(64 - bits)


def _words(rows: NDArray[np.uint8], at: int, dtype: str) -> Hashes:
    width = np.dtype(dtype).itemsize
    return np.ascontiguousarray(rows[:, at : at + width]).view(dtype)[:, 0].astype(np.uint64)


def _sum(one: np.uint64, other: np.uint64) -> np.uint64:
    return np.uint64((int(one) + int(other)) % 2**64)


def _negative(value: np.uint64) -> np.uint64:
    return np.uint64(-int(value) % 2**64)


def _read_struct(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    """The fields of a Thrift struct by number (those of numbers and structs; others have no place in a header)."""
    fields: dict[int, Any] = {}
    number = 0
    while data[at]:
        step, kind = data[at] >> 4, data[at] & 0xF
        at += 1
        if step:
            number += step
        else:
            encoded, at = _read_varint(data, at)
            number = encoded >> 1 ^ -(encoded & 1)
        if kind == _STRUCT:
            fields[number], at = _read_struct(data, at)
        elif kind in (_I16, _I32, _I64):
            encoded, at = _read_varint(data, at)
            fields[number] = encoded >> 1 ^ -(encoded & 1)
        elif kind in (_TRUE, _FALSE):
            fields[number] = kind == _TRUE
        else:
            raise KeyError(kind)
    return fields, at + 1


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 0x80:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
    return value | data[at] << shift, at + 1
