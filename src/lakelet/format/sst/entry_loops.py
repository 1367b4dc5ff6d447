"""Lay out and read the entries of data blocks: the compiled loops, which are their own interpreted twins.

entry        varint shared, varint unshared, varint value length, key suffix, value (`record_loops`)
block        entries, offset 4 of each restart point, count 4 of them
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lakelet.format.compiled.compiled_loop import compiled_loop

Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]

_BYTES = "Array(uint8, 1, 'C', readonly=True)"
_LONGS = "Array(int64, 1, 'C', readonly=True)"


@compiled_loop(
    f"void({_BYTES}, {_LONGS}, int64[:, ::1], int64, int64, boolean, uint8[::1], int64[::1], int64[::1], int64[:, ::1], "
    "int64[::1])",
    saved_ns_per_byte=700.0,
)
def layout_loop(
    keys: Bytes,
    key_at: Longs,
    sizes: Longs,
    interval: int,
    block_bytes: int,
    last: bool,
    restarts: Bytes,
    shared: Longs,
    entry_at: Longs,
    blocks: Longs,
    state: Longs,
) -> None:
    """Decide where entries go: restart points, shared bytes of keys, the place of each entry, and of each block the end of its
    entries, its end and the row behind its last. A block that is not full is left out unless it is the last. `state` gets
    the number of blocks, and the number of a key that is not greater than the one before it."""
    to, in_block, points, begin = 0, 0, 0, 0
    for row in range(key_at.shape[0] - 1):
        size_of_key = key_at[row + 1] - key_at[row]
        common, before = 0, np.int64(0)
        if row > 0:
            before = key_at[row] - key_at[row - 1]
            while common < before and common < size_of_key:
                if keys[key_at[row - 1] + common] != keys[key_at[row] + common]:
                    break
                common += 1
            greater = common < size_of_key
            if greater and common < before:
                greater = keys[key_at[row - 1] + common] < keys[key_at[row] + common]
            if not greater:
                state[1] = row
                return
        restart = in_block % interval == 0
        restarts[row] = np.uint8(1) if restart else np.uint8(0)
        shared[row] = 0 if restart else common
        points += 1 if restart else 0
        size = sizes[1, row] if restart else sizes[0, row]
        entry_at[row] = to
        for number in (shared[row], size_of_key - shared[row], size):
            left = number
            while left >= 128:
                left >>= 7
                to += 1
            to += 1
        to += size_of_key - shared[row] + size
        in_block += 1
        if to - begin + 4 * points + 4 >= block_bytes or (last and row == key_at.shape[0] - 2):
            block = state[0]
            blocks[block, 0] = to
            to += 4 * points + 4
            blocks[block, 1], blocks[block, 2] = to, row + 1
            state[0] = block + 1
            in_block, points, begin = 0, 0, to


@compiled_loop(
    f"void({_BYTES}, {_LONGS}, {_LONGS}, {_LONGS}, {_BYTES}, int64[:, ::1], uint8[::1], int64[::1])",
    saved_ns_per_byte=100.0,
)
def entry_loop(
    keys: Bytes,
    key_at: Longs,
    shared: Longs,
    entry_at: Longs,
    restarts: Bytes,
    sizes: Longs,
    out: Bytes,
    record_at: Longs,
) -> None:
    """Write the lengths and the key of each entry, and say where its value goes."""
    for row in range(entry_at.shape[0]):
        to = entry_at[row]
        unshared = key_at[row + 1] - key_at[row] - shared[row]
        size = sizes[1, row] if restarts[row] != 0 else sizes[0, row]
        for number in (shared[row], unshared, size):
            left = number
            while left >= 128:
                out[to] = np.uint8(left & 127 | 128)
                left >>= 7
                to += 1
            out[to] = np.uint8(left)
            to += 1
        for place in range(key_at[row] + shared[row], key_at[row + 1]):
            out[to] = keys[place]
            to += 1
        record_at[row] = to


@compiled_loop(f"void({_BYTES}, int64[:, ::1], boolean, int64[:, ::1], int64[::1])", saved_ns_per_byte=100.0)
def parse_loop(data: Bytes, spans: Longs, counted: bool, entries: Longs, state: Longs) -> None:
    """Read the lengths of the entries of blocks: rows of shared, unshared, begin of the key suffix, end of the value and
    whether it is a restart point. If only `counted`, none of it is kept. `state` gets 1 where an entry reaches beyond its
    block, the number of entries, and the bytes of their keys."""
    row, key_bytes = 0, np.int64(0)
    for block in range(spans.shape[0]):
        begin, end, at = spans[block, 0], spans[block, 1], spans[block, 0]
        points = np.int64(-1)
        if end - begin >= 8:
            points = np.int64(data[end - 4]) << 24 | np.int64(data[end - 3]) << 16
            points |= np.int64(data[end - 2]) << 8 | np.int64(data[end - 1])
        point_at, limit, before = end - 4 - 4 * points, end - 4 - 4 * points, np.int64(0)
        if points < 1 or limit <= begin:
            state[0] = 1
            return
        while at < limit:
            restart = np.int64(0)
            if point_at < end - 4:
                point = np.int64(data[point_at]) << 24 | np.int64(data[point_at + 1]) << 16
                point |= np.int64(data[point_at + 2]) << 8 | np.int64(data[point_at + 3])
                if point == at - begin:
                    restart = np.int64(1)
                    point_at += 4
            lengths = (np.int64(0), np.int64(0), np.int64(0))
            for _ in range(3):
                number, shift, more = np.int64(0), 0, True
                while more and at < limit and shift < 35:
                    number |= (np.int64(data[at]) & 127) << shift
                    more = data[at] >= 128
                    shift += 7
                    at += 1
                if more:
                    state[0] = 1
                    return
                lengths = (lengths[1], lengths[2], number)
            shared, unshared, size = lengths
            if shared > before or unshared + size > limit - at or (restart == 1 and shared > 0):
                state[0] = 1
                return
            if not counted:
                entries[row, 0], entries[row, 1], entries[row, 2] = shared, unshared, at
                entries[row, 3], entries[row, 4] = at + unshared + size, restart
            before = shared + unshared
            key_bytes += before
            row += 1
            at += unshared + size
        if point_at != end - 4:
            state[0] = 1
            return
    state[1], state[2] = row, key_bytes


@compiled_loop(f"void({_BYTES}, int64[:, ::1], uint8[::1], int64[::1])", saved_ns_per_byte=100.0)
def key_loop(data: Bytes, entries: Longs, keys: Bytes, key_at: Longs) -> None:
    """Write the whole key of every entry, and where the next one begins; `key_at` begins with 0."""
    for row in range(entries.shape[0]):
        shared, begin, to = entries[row, 0], entries[row, 2], key_at[row]
        before = key_at[row - 1] if row > 0 else np.int64(0)
        for place in range(shared):
            keys[to + place] = keys[before + place]
        for place in range(entries[row, 1]):
            keys[to + shared + place] = data[begin + place]
        key_at[row + 1] = to + shared + entries[row, 1]
