"""All rows of an SST file in memory, decoded, with a hash table of their keys: many keys are found by one loop each.

    key ─ hash ─ slots: number of a row + 1, 0 is free, the next slot where it is taken ─ key bytes ─ cells of the row

Numbers take 8 bytes a row and column; of bytes, only where they begin in the blocks and how many they are. Worth it for files
that are asked for many keys again and again, and small enough to be held whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lakelet.format.compiled.compiled_loop import compiled_loop
from lakelet.format.sst.record_columns import Cells, RecordLayout
from lakelet.format.sst.record_loops import Bytes, Longs, Words

Offsets = NDArray[np.uint32]

_BYTES = "Array(uint8, 1, 'C', readonly=True)"
_LONGS = "Array(int64, 1, 'C', readonly=True)"
_OFFSETS = "Array(uint32, 1, 'C', readonly=True)"
_MOST_BYTES = 1 << 32
_HEAP_WIDTHS = (0, 16)


@dataclass(frozen=True, slots=True)
class DecodedPart:
    """Rows of neighbouring blocks: their keys one behind the other, and their cells, whose heap is the blocks."""

    keys: Bytes
    key_at: Longs
    cells: Cells


@dataclass(frozen=True, slots=True)
class SstKeyIndex:
    """The rows of a file. `row_of` are columns: those of numbers are in `numbers`, the others in `begins` and `lengths`."""

    keys: Bytes
    key_at: Offsets
    slots: NDArray[np.uint32]
    numbers: Words
    begins: Offsets
    lengths: Offsets
    valid: Bytes
    heap: Bytes
    is_heap: NDArray[np.bool_]

    @staticmethod
    def of(parts: Iterable[DecodedPart], layout: RecordLayout, rows: int, most_bytes: int) -> SstKeyIndex | None:
        """The rows of all parts; None where they take more bytes."""
        is_heap = np.isin(layout.widths, _HEAP_WIDTHS)
        columns, texts = len(is_heap), int(is_heap.sum())
        slots = 1 << max(4, (rows * 3 // 2).bit_length())
        fixed = slots * 4 + rows * (4 + 8 * (columns - texts) + 8 * texts + columns)
        if fixed > most_bytes:
            return None
        numbers, valid = np.empty((columns - texts, rows), np.uint64), np.empty((columns, rows), np.uint8)
        begins, lengths = np.empty((texts, rows), np.uint32), np.empty((texts, rows), np.uint32)
        key_at = np.zeros(rows + 1, np.uint32)
        keys: list[Bytes] = []
        heaps: list[Bytes] = []
        row = key_bytes = heap_bytes = 0
        for part in parts:
            cells, end = part.cells, row + len(part.key_at) - 1
            if fixed + key_bytes + heap_bytes + len(part.keys) + len(cells.heap) > min(most_bytes, _MOST_BYTES - 1):
                return None
            numbers[:, row:end] = cells.numbers[~is_heap]
            valid[:, row:end] = cells.valid
            lengths[:, row:end] = cells.ends[is_heap] - cells.numbers[is_heap].view(np.int64)
            # A NULL begins at 0 and has no bytes, wherever that is.
            begins[:, row:end] = cells.numbers[is_heap] + np.uint64(heap_bytes)
            key_at[row + 1 : end + 1] = part.key_at[1:] + key_bytes
            keys.append(part.keys)
            heaps.append(cells.heap)
            row, key_bytes, heap_bytes = end, key_bytes + len(part.keys), heap_bytes + len(cells.heap)
        joined = np.concatenate(keys) if keys else np.empty(0, np.uint8)
        table = np.zeros(slots, np.uint32)
        _fill_loop.for_bytes_or_interpreted(len(joined))(joined, key_at, table)
        heap = np.concatenate(heaps) if heaps else np.empty(0, np.uint8)
        return SstKeyIndex(joined, key_at, table, numbers, begins, lengths, valid, heap, is_heap)

    @property
    def nbytes(self) -> int:
        """The memory this takes."""
        arrays = (self.keys, self.key_at, self.slots, self.numbers, self.begins, self.lengths, self.valid, self.heap)
        return sum(one.nbytes for one in arrays) + 1024

    def find(self, keys: Bytes, key_at: Longs) -> Longs:
        """The row of each key, -1 where it is not there."""
        rows = np.empty(len(key_at) - 1, np.int64)
        _find_loop.for_bytes_or_interpreted(len(rows))(keys, key_at, self.keys, self.key_at, self.slots, rows)
        return rows

    def column(self, number: int, rows: Longs) -> Words:
        """The numbers of rows in a column of numbers, those in front included."""
        found: Words = self.numbers[number - int(self.is_heap[:number].sum())][rows]
        return found

    def cells(self, columns: Sequence[int], rows: Longs) -> Cells:
        """The cells of rows in some columns."""
        found = Cells.empty(len(columns), len(rows), self.heap)
        for place, number in enumerate(columns):
            texts = int(self.is_heap[:number].sum())
            found.valid[place] = self.valid[number][rows]
            if self.is_heap[number]:
                begins = self.begins[texts][rows].astype(np.int64)
                found.numbers[place] = begins
                found.ends[place] = begins + self.lengths[texts][rows]
            else:
                found.numbers[place] = self.numbers[number - texts][rows]
        return found


@compiled_loop(f"void({_BYTES}, {_OFFSETS}, uint32[::1])", saved_ns_per_byte=100.0)
def _fill_loop(keys: Bytes, key_at: Offsets, slots: Offsets) -> None:
    """Put the number of each row, counted from 1, into the slot of its key."""
    mask = np.uint64(slots.shape[0] - 1)
    for row in range(key_at.shape[0] - 1):
        h = np.uint64(0x9E3779B97F4A7C15)
        for at in range(np.int64(key_at[row]), np.int64(key_at[row + 1])):
            h = np.uint64(np.uint64(h ^ np.uint64(keys[at])) * np.uint64(0x100000001B3))
        h = np.uint64(h ^ np.uint64(h >> np.uint64(32)))
        slot = np.int64(h & mask)
        while slots[slot] != 0:
            slot = np.int64(np.uint64(slot + 1) & mask)
        slots[slot] = np.uint32(row + 1)


@compiled_loop(f"void({_BYTES}, {_LONGS}, {_BYTES}, {_OFFSETS}, {_OFFSETS}, int64[::1])", saved_ns_per_byte=10_000.0)
def _find_loop(keys: Bytes, key_at: Longs, stored: Bytes, stored_at: Offsets, slots: Offsets, rows: Longs) -> None:
    """Write the row of each key, -1 where there is none."""
    mask = np.uint64(slots.shape[0] - 1)
    for number in range(key_at.shape[0] - 1):
        begin, end = key_at[number], key_at[number + 1]
        h = np.uint64(0x9E3779B97F4A7C15)
        for at in range(begin, end):
            h = np.uint64(np.uint64(h ^ np.uint64(keys[at])) * np.uint64(0x100000001B3))
        h = np.uint64(h ^ np.uint64(h >> np.uint64(32)))
        slot = np.int64(h & mask)
        rows[number] = -1
        while slots[slot] != 0 and rows[number] < 0:
            row = np.int64(slots[slot]) - 1
            first, size = np.int64(stored_at[row]), np.int64(stored_at[row + 1]) - np.int64(stored_at[row])
            if size == end - begin:
                same = np.int64(0)
                while same < size and stored[first + same] == keys[begin + same]:
                    same += 1
                if same == size:
                    rows[number] = row
            slot = np.int64(np.uint64(slot + 1) & mask)
