"""Bloom filters of a column's values, Paimon's `bloom-filter` file index.

    functions  int32, big-endian
    bits       number of bits / 8 bytes; bit n is bit n % 8 of byte n // 8

A value has a hash of 64 bits: of numbers Thomas Wang's, of bytes XXH64. Function i of k sets the bit (low + i * high) mod the
number of bits, low and high being the halves of the hash, with all bits flipped where the sum of 32 bits is negative. How many
bits there are depends on `items` and `fpp`, not on the rows: a filter over more rows lets more through.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.errors import CorruptionError
from lakelet.format.data.parquet_bloom import hash_texts
from lakelet.format.index.file.values import Numbers, index_bytes, index_numbers, is_bytes
from lakelet.model.types import Atomic

NAME = "bloom-filter"
DEFAULT_ITEMS = 1_000_000
DEFAULT_FPP = 0.1
MAX_BYTES = 1 << 28
_HEAD = 4
# Hashes that are held before they are put into the filter.
_PENDING = 1 << 16


def bit_count(items: int, fpp: float) -> int:
    """The bits of a filter for that many values and that share of wrong answers."""
    bits = int(-items * math.log(fpp) / (math.log(2) * math.log(2)))
    return bits + (8 - bits % 8)


class BloomWriter:
    """Collects the values of one column of one file."""

    def __init__(self, data_type: Atomic, items: int, fpp: float) -> None:
        self._type = data_type
        self._bits = bit_count(items, fpp)
        self._functions = max(1, math.floor(self._bits / items * math.log(2) + 0.5))
        self._filter: NDArray[np.uint8] | None = None
        self._pending: list[Numbers] = []
        self._held = 0

    def update(self, values: pa.Array) -> None:
        """Takes values; NULLs are left out."""
        values = values.drop_null()
        if not len(values):
            return
        # Texts are hashed byte by byte, numbers faster than duplicates among them are found.
        hashes = value_hashes(values.unique() if is_bytes(self._type) else values, self._type)
        self._pending.append(hashes)
        self._held += len(hashes)
        if self._held >= _PENDING:
            self._settle()

    def finish(self) -> bytes:
        """The bytes of the index."""
        self._settle()
        bits = np.zeros(self._bits // 8, np.uint8) if self._filter is None else self._filter
        return self._functions.to_bytes(_HEAD, "big") + bits.tobytes()

    def _settle(self) -> None:
        if not self._pending:
            return
        hashes, self._pending, self._held = np.concatenate(self._pending), [], 0
        marked = np.zeros(self._bits, np.bool_)
        for function in range(1, self._functions + 1):
            marked[_positions(hashes, function, self._bits)] = True
        packed = np.packbits(marked, bitorder="little")
        self._filter = packed if self._filter is None else self._filter | packed


@dataclass(frozen=True, slots=True)
class BloomFilterIndex:
    """A filter that was read."""

    functions: int
    bits: NDArray[np.uint8]

    @staticmethod
    def of(data: bytes, *, where: str) -> BloomFilterIndex:
        """The filter in the bytes of an index."""
        functions = int.from_bytes(data[:_HEAD], "big", signed=True)
        if len(data) <= _HEAD or functions < 1:
            raise CorruptionError(f"{where}: {functions} functions in {len(data)} bytes are no bloom filter")
        return BloomFilterIndex(functions, np.frombuffer(data, np.uint8, offset=_HEAD))

    def may_hold(self, values: pa.Array, data_type: Atomic) -> bool:
        """Whether any of the values, of which none is NULL, may be among those of the file."""
        hashes = value_hashes(values, data_type)
        found = np.ones(len(hashes), np.bool_)
        for function in range(1, self.functions + 1):
            at = _positions(hashes, function, 8 * len(self.bits))
            found &= (self.bits[at >> 3] >> (at & 7).astype(np.uint8) & 1).astype(np.bool_)
        return bool(found.any())


def value_hashes(values: pa.Array, data_type: Atomic) -> Numbers:
    """The hashes of values, of which none is NULL."""
    if is_bytes(data_type):
        return hash_texts(index_bytes(values)).view(np.int64)
    return number_hashes(index_numbers(values, data_type))


def number_hashes(keys: Numbers) -> Numbers:
    """Thomas Wang's hash of numbers of 64 bits; sums wrap around, shifts to the right keep the sign."""
    keys = ~keys + (keys << 21)
    keys = keys ^ (keys >> 24)
    keys = (keys + (keys << 3)) + (keys << 8)
    keys = keys ^ (keys >> 14)
    keys = (keys + (keys << 2)) + (keys << 4)
    keys = keys ^ (keys >> 28)
    return keys + (keys << 31)


def _positions(hashes: Numbers, function: int, bits: int) -> NDArray[np.int32]:
    low, high = hashes.astype(np.int32), (hashes >> 32).astype(np.int32)
    with np.errstate(over="ignore"):
        combined = low + high * np.int32(function)
    # All bits are flipped by the sign, which is -1 or 0.
    combined ^= combined >> 31
    return combined % np.int32(bits)
