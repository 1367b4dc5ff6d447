"""Read whole data blocks into columns: the compiled loops of scans, which are their own interpreted twins.

    index      separator, offset, size, first key     ──►  where each block is, and where its separator and its first key are
    entries    lengths, key suffix, value             ──►  the cells of the columns that are asked for

A scan decodes no keys. Of columns that nobody asks for it keeps only what the next row is a difference to.
"""

from __future__ import annotations

import numpy as np

from lakelet.format.compiled.compiled_loop import compiled_loop
from lakelet.format.sst.record_loops import Bytes, Longs, Words

_BYTES = "Array(uint8, 1, 'C', readonly=True)"
_LONGS = "Array(int64, 1, 'C', readonly=True)"
_CELLS = "uint64[:, ::1], int64[:, ::1], uint8[:, ::1]"
INDEX_COLUMNS = 6
"""Of each block: offset, size, begin and end of its separator, begin and end of its first key."""


@compiled_loop(f"void({_BYTES}, int64[:, ::1], int64[::1])", saved_ns_per_byte=100.0)
def index_loop(data: Bytes, blocks: Longs, state: Longs) -> None:
    """Read the entries of an index; `blocks` has room for all. `state` gets 1 where one reaches beyond the end, and the number of
    entries."""
    at, count = np.int64(0), 0
    end = np.int64(data.shape[0])
    while at < end:
        length, shift, more = np.int64(0), 0, True
        while more and at < end and shift < 35:
            length |= (np.int64(data[at]) & 127) << shift
            more = data[at] >= 128
            shift += 7
            at += 1
        if more or length > end - at - 16 or count == blocks.shape[0]:
            state[0] = 1
            return
        blocks[count, 2], blocks[count, 3] = at, at + length
        at += length
        offset, size, first = np.int64(0), np.int64(0), np.int64(0)
        for place in range(8):
            offset = offset << 8 | np.int64(data[at + place])
        for place in range(4):
            size = size << 8 | np.int64(data[at + 8 + place])
            first = first << 8 | np.int64(data[at + 12 + place])
        at += 16
        if first > end - at or offset < 0:
            state[0] = 1
            return
        blocks[count, 0], blocks[count, 1] = offset, size
        blocks[count, 4], blocks[count, 5] = at, at + first
        at += first
        count += 1
    state[1] = count


@compiled_loop(
    f"void({_BYTES}, int64[:, ::1], {_LONGS}, {_BYTES}, {_LONGS}, int64, {_CELLS}, int64[::1])",
    saved_ns_per_byte=300.0,
)
def pick_loop(
    data: Bytes,
    entries: Longs,
    widths: Longs,
    deltas: Bytes,
    slots: Longs,
    front: int,
    numbers: Words,
    ends: Longs,
    valid: Bytes,
    state: Longs,
) -> None:
    """Read columns of entries, as `parse_loop` lists them, into cells that are all 0. `slots` says of each column which row of
    the cells it has, -1 for none. `state` gets 1 where a value is not as long as its entry says."""
    columns = widths.shape[0]
    before = np.zeros(columns, np.uint64)
    for row in range(entries.shape[0]):
        at, limit = entries[row, 2] + entries[row, 1], entries[row, 3]
        if entries[row, 4] != 0:
            before[:] = np.uint64(0)
        bitmap_at = at
        for column in range(columns):
            if column == front:
                bitmap_at = at
                at += (columns - front + 7) // 8
                if at > limit:
                    state[0] = 1
                    return
            bit = column - front
            if bit >= 0 and data[bitmap_at + bit // 8] >> np.uint8(bit % 8) & np.uint8(1):
                before[column] = np.uint64(0)
                continue
            slot, width, length = slots[column], widths[column], np.int64(widths[column])
            if slot < 0 and deltas[column] != 0:
                # Nobody asks for it: a varint is skipped.
                while at < limit and data[at] >= 128:
                    at += 1
                at += 1
                continue
            word, shift, more = np.uint64(0), np.uint64(7), False
            if width == 0 or deltas[column] != 0:
                # Most lengths and differences take one byte.
                more = at >= limit or data[at] >= 128
                if at < limit:
                    word = np.uint64(data[at]) & np.uint64(127)
                    at += 1
                while more and at < limit and shift < np.uint64(70):
                    word |= np.uint64((np.uint64(data[at]) & np.uint64(127)) << shift)
                    more = data[at] >= 128
                    shift += np.uint64(7)
                    at += 1
                length = np.int64(word) if width == 0 else np.int64(0)
            if more or length < 0 or length > limit - at:
                state[0] = 1
                return
            if deltas[column] != 0:
                change = np.uint64(word >> np.uint64(1)) ^ np.uint64(np.uint64(0) - (word & np.uint64(1)))
                word = np.uint64(before[column] + change)
                before[column] = word
            elif width % 16 == 0:
                word = np.uint64(at)
            elif slot >= 0:
                for place in range(length):
                    word = np.uint64(word << np.uint64(8)) | np.uint64(data[at + place])
            at += length
            if slot >= 0:
                numbers[slot, row], ends[slot, row], valid[slot, row] = word, at, np.uint8(1)
        if at != limit:
            state[0] = 1
            return
