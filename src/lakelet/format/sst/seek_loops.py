"""Find keys in data blocks without decoding them: the compiled loops, which are their own interpreted twins.

    key ─ block_loop: separators of the index ─ restart_loop: restart points of the block ─ seek_loop: entries up to the key

Whoever calls them has had `entry_loops.parse_loop` check the blocks: nothing here looks whether an entry ends in its block.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lakelet.format.compiled.compiled_loop import compiled_loop

Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]

_BYTES = "Array(uint8, 1, 'C', readonly=True)"
_LONGS = "Array(int64, 1, 'C', readonly=True)"
_SPANS = "Array(int64, 2, 'C', readonly=True)"


@compiled_loop(f"void({_BYTES}, {_LONGS}, {_BYTES}, {_LONGS}, int64[::1])", saved_ns_per_byte=10_000.0)
def block_loop(separators: Bytes, separator_at: Longs, keys: Bytes, key_at: Longs, blocks: Longs) -> None:
    """The number of the block that can hold each key: the first whose separator is not less; behind the last where all are."""
    for number in range(key_at.shape[0] - 1):
        begin, size = key_at[number], key_at[number + 1] - key_at[number]
        low, high = np.int64(0), np.int64(separator_at.shape[0] - 1)
        while low < high:
            middle = (low + high) // 2
            first, length = separator_at[middle], separator_at[middle + 1] - separator_at[middle]
            same = np.int64(0)
            while same < length and same < size and separators[first + same] == keys[begin + same]:
                same += 1
            less = length < size
            if same < length and same < size:
                less = separators[first + same] < keys[begin + same]
            if less:
                low = middle + 1
            else:
                high = middle
        blocks[number] = low


@compiled_loop(f"void({_BYTES}, {_SPANS}, {_BYTES}, {_LONGS}, {_LONGS}, int64[:, ::1])", saved_ns_per_byte=10_000.0)
def restart_loop(data: Bytes, spans: Longs, keys: Bytes, key_at: Longs, blocks: Longs, found: Longs) -> None:
    """The place of the last restart point whose key is not greater, for each key, -1 where there is none, and the end of the
    block's entries."""
    for number in range(key_at.shape[0] - 1):
        found[number, 0] = -1
        if blocks[number] == spans.shape[0]:
            continue
        begin, size = key_at[number], key_at[number + 1] - key_at[number]
        block, end = spans[blocks[number], 0], spans[blocks[number], 1]
        points = np.int64(data[end - 4]) << 24 | np.int64(data[end - 3]) << 16
        points |= np.int64(data[end - 2]) << 8 | np.int64(data[end - 1])
        limit = end - 4 - 4 * points
        found[number, 1] = limit
        low, high = np.int64(0), points
        while low < high:
            middle = (low + high) // 2
            at = limit + 4 * middle
            place = block + (np.int64(data[at]) << 24 | np.int64(data[at + 1]) << 16)
            place += np.int64(data[at + 2]) << 8 | np.int64(data[at + 3])
            entry, length = place, np.int64(0)
            # A restart point shares nothing: the second of its three numbers is the length of its whole key.
            for step in range(3):
                part, shift = np.int64(0), 0
                while data[entry] >= 128:
                    part |= (np.int64(data[entry]) & 127) << shift
                    shift += 7
                    entry += 1
                part |= np.int64(data[entry]) << shift
                entry += 1
                length = part if step == 1 else length
            same = np.int64(0)
            while same < length and same < size and data[entry + same] == keys[begin + same]:
                same += 1
            greater = length > size
            if same < length and same < size:
                greater = data[entry + same] > keys[begin + same]
            if greater:
                high = middle
            else:
                low = middle + 1
                found[number, 0] = place


@compiled_loop(f"void({_BYTES}, {_BYTES}, {_LONGS}, {_SPANS}, int64[::1])", saved_ns_per_byte=10_000.0)
def seek_loop(data: Bytes, keys: Bytes, key_at: Longs, restarts: Longs, counts: Longs) -> None:
    """How many entries from its restart point the entry of each key is the last of; 0 where the key is not there."""
    for number in range(key_at.shape[0] - 1):
        begin, size = key_at[number], key_at[number + 1] - key_at[number]
        entry, limit, count, matched = restarts[number, 0], restarts[number, 1], np.int64(0), np.int64(0)
        counts[number] = 0
        is_open = entry >= 0
        # All entries so far are less than the key; `matched` is how many bytes the last one has in common with it.
        while is_open and entry < limit:
            lengths = (np.int64(0), np.int64(0), np.int64(0))
            for _ in range(3):
                part, shift = np.int64(0), 0
                while data[entry] >= 128:
                    part |= (np.int64(data[entry]) & 127) << shift
                    shift += 7
                    entry += 1
                part |= np.int64(data[entry]) << shift
                entry += 1
                lengths = (lengths[1], lengths[2], part)
            shared, unshared, value = lengths
            count += 1
            # One that shares more than that differs from the key where the last one did, and is less as well. One that shares
            # less differs from the last one where that agreed with the key, and is greater.
            is_open = shared >= matched
            if shared == matched:
                same = np.int64(0)
                while same < unshared and matched + same < size and data[entry + same] == keys[begin + matched + same]:
                    same += 1
                matched += same
                if matched == size:
                    # It begins with the key: it is the key, or greater.
                    counts[number] = count if same == unshared else 0
                    is_open = False
                elif same < unshared:
                    is_open = data[entry + same] < keys[begin + matched]
            entry += unshared + value


@compiled_loop(f"void({_BYTES}, {_LONGS}, {_LONGS}, int64[::1], int64[::1], uint8[::1])", saved_ns_per_byte=1_000.0)
def run_loop(data: Bytes, places: Longs, counts: Longs, begins: Longs, ends: Longs, restarts: Bytes) -> None:
    """Where the values of `counts` entries from each place on begin and end, and which is the first of a run."""
    row = 0
    for number in range(places.shape[0]):
        entry = places[number]
        for step in range(counts[number]):
            lengths = (np.int64(0), np.int64(0), np.int64(0))
            for _ in range(3):
                part, shift = np.int64(0), 0
                while data[entry] >= 128:
                    part |= (np.int64(data[entry]) & 127) << shift
                    shift += 7
                    entry += 1
                part |= np.int64(data[entry]) << shift
                entry += 1
                lengths = (lengths[1], lengths[2], part)
            begins[row] = entry + lengths[1]
            ends[row] = begins[row] + lengths[2]
            restarts[row] = np.uint8(1) if step == 0 else np.uint8(0)
            entry = ends[row]
            row += 1
