"""Find keys in an arena of blocks (`sst_arena`): filter, index, restart points, entries and values in one compiled call.

    text_loop     one key, one column of bytes: where they begin and end; nothing else is decoded
    row_loop      one key, all columns
    rows_loop     many keys, all columns

`heap` is the bloom filter's bits, the separators of the index one behind the other, and blocks without compression. `state` says
where all that is:

    0 blocks · 1 hashes of the filter, 0 where there is none · 2 its bits · 3 columns · 4 columns before the null bitmap
    5 schema id · 6 place in `state` of the widths of columns · 7 of which are differences · 8 of where separators begin and end
    in the heap · 9 of where blocks begin, -1 where one is not there, and of where they end · 10 bytes that all separators begin
    with · 11 place of the eight bytes behind them in each separator, as numbers

Blocks are those that `entry_loops.parse_loop` has checked: entries end within them. Values are checked here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lakelet.format.compiled.compiled_loop import CompiledLoop

Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]
# Machine numbers where it is compiled, numpy's or Python's where it is interpreted.
Number = Any

BLOCKS, HASHES, FILTER_BITS, COLUMNS, FRONT, SCHEMA, WIDTHS, DELTAS, SEPARATORS, SPANS, COMMON, WORDS, HEAD = range(13)
"""The places of `state`, and how many they are."""
FOUND, ABSENT, MISSING, RETRACT, NULL, DAMAGED = 1, 0, -1, -2, -3, -4
"""What a loop found: `MISSING` is a block that is not in the arena."""


def _hash(key: Any, begin: Number, size: Number, seed: Number) -> Number:
    """Murmur3 with 32 bits of a key."""
    h = seed
    for start in range(0, size, 4):
        k = np.uint32(0)
        for place in range(min(4, size - start)):
            k |= np.uint32(np.uint32(key[begin + start + place]) << np.uint32(8 * place))
        k = np.uint32(k * np.uint32(0xCC9E2D51))
        k = np.uint32(np.uint32(k << np.uint32(15)) | np.uint32(k >> np.uint32(17)))
        h = np.uint32(h ^ np.uint32(k * np.uint32(0x1B873593)))
        if start + 4 <= size:
            h = np.uint32(np.uint32(h << np.uint32(13)) | np.uint32(h >> np.uint32(19)))
            h = np.uint32(np.uint32(h * np.uint32(5)) + np.uint32(0xE6546B64))
    h = np.uint32(h ^ np.uint32(size))
    h = np.uint32(np.uint32(h ^ np.uint32(h >> np.uint32(16))) * np.uint32(0x85EBCA6B))
    h = np.uint32(np.uint32(h ^ np.uint32(h >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    return np.uint32(h ^ np.uint32(h >> np.uint32(16)))


def _admits(heap: Bytes, state: Longs, key: Any, begin: Number, size: Number) -> Number:
    """Whether the bloom filter lets a key through."""
    count, total = state[1], np.uint64(state[2])
    if count == 0:
        return True
    first = _hash(key, begin, size, np.uint32(0))
    at, step = np.uint64(first), np.uint64(_hash(key, begin, size, first))
    for _ in range(count):
        bit = np.int64(at % total)
        if heap[bit >> 3] >> np.uint8(bit & 7) & np.uint8(1) == 0:
            return False
        at = np.uint64(at + step)
    return True


def _block_of(heap: Bytes, state: Longs, key: Any, begin: Number, size: Number) -> Number:
    """The number of the block that can hold a key: the first whose separator is not less."""
    separators, common, words = state[8], state[10], state[11]
    first = state[separators]
    shorter = min(common, size)
    for place in range(shorter):
        if heap[first + place] != key[begin + place]:
            return np.int64(0) if key[begin + place] < heap[first + place] else state[0]
    if size < common:
        return np.int64(0)
    word = np.uint64(0)
    for place in range(8):
        byte = np.uint64(key[begin + common + place]) if common + place < size else np.uint64(0)
        word = np.uint64(word << np.uint64(8)) | byte
    # Numbers are signed, so that the highest bit is turned.
    number = np.int64(word ^ np.uint64(1 << 63))
    low, high = np.int64(0), state[0]
    while low < high:
        middle = (low + high) // 2
        other = state[words + middle]
        less = other < number
        if other == number:
            first = state[separators + middle]
            length = state[separators + middle + 1] - first
            same, shorter = common, min(length, size)
            while same < shorter and heap[first + same] == key[begin + same]:
                same += 1
            less = length < size if same == shorter else heap[first + same] < key[begin + same]
        if less:
            low = middle + 1
        else:
            high = middle
    return low


def _lengths(heap: Bytes, entry: Number) -> tuple[Number, Number, Number, Number]:
    """The three numbers that an entry begins with: shared and other bytes of its key, bytes of its value; where they end."""
    shared, unshared, value = np.int64(0), np.int64(0), np.int64(0)
    for _ in range(3):
        part, shift = np.int64(0), 0
        while heap[entry] >= 128:
            part |= (np.int64(heap[entry]) & 127) << shift
            shift += 7
            entry += 1
        part |= np.int64(heap[entry]) << shift
        entry += 1
        shared, unshared, value = unshared, value, part
    return shared, unshared, value, entry


def _restart_of(
    heap: Bytes, block: Number, end: Number, key: Any, begin: Number, size: Number
) -> tuple[Number, Number]:
    """The place of the last restart point of a block whose key is not greater, -1 where there is none; the end of entries."""
    points = np.int64(heap[end - 4]) << 24 | np.int64(heap[end - 3]) << 16
    points |= np.int64(heap[end - 2]) << 8 | np.int64(heap[end - 1])
    limit = end - 4 - 4 * points
    low, high, found = np.int64(0), points, np.int64(-1)
    while low < high:
        middle = (low + high) // 2
        at = limit + 4 * middle
        place = block + (np.int64(heap[at]) << 24 | np.int64(heap[at + 1]) << 16)
        place += np.int64(heap[at + 2]) << 8 | np.int64(heap[at + 3])
        # A restart point shares nothing: the second number is the length of its whole key.
        _, length, _, entry = _lengths(heap, place)
        same, shorter = np.int64(0), min(length, size)
        while same < shorter and heap[entry + same] == key[begin + same]:
            same += 1
        greater = length > size if same == shorter else heap[entry + same] > key[begin + same]
        if greater:
            high = middle
        else:
            low = middle + 1
            found = place
    return found, limit


def _entry_of(
    heap: Bytes, entry: Number, limit: Number, key: Any, begin: Number, size: Number
) -> tuple[Number, Number, Number]:
    """How many entries from its restart point the entry of a key is the last of, 0 where there is none; where its value begins
    and ends."""
    count, matched = np.int64(0), np.int64(0)
    # All entries so far are less than the key; `matched` is how many bytes the last one has in common with it.
    while entry < limit:
        shared, unshared, value, entry = _lengths(heap, entry)
        count += 1
        # One that shares less than that differs from the last one where that agreed with the key, and is greater. One that
        # shares more differs from the key where the last one did, and is less as well.
        if shared < matched:
            break
        if shared == matched:
            same = np.int64(0)
            while same < unshared and matched + same < size and heap[entry + same] == key[begin + matched + same]:
                same += 1
            matched += same
            if matched == size:
                # It begins with the key: it is the key, or greater.
                if same < unshared:
                    break
                return count, entry + unshared, entry + unshared + value
            if same < unshared and heap[entry + same] > key[begin + matched]:
                break
        entry += unshared + value
    return np.int64(0), np.int64(0), np.int64(0)


def _find(
    heap: Bytes, state: Longs, key: Any, begin: Number, size: Number
) -> tuple[Number, Number, Number, Number, Number]:
    """A code; the restart point of a key's entry, or the block that is not there; how many entries from there it is the last
    of; where its value begins and ends."""
    none = np.int64(0)
    if not _admits(heap, state, key, begin, size):
        return ABSENT, none, none, none, none
    number = _block_of(heap, state, key, begin, size)
    if number == state[0]:
        return ABSENT, none, none, none, none
    span = state[9] + 2 * number
    block, end = state[span], state[span + 1]
    if block < 0:
        return MISSING, number, none, none, none
    entry, limit = _restart_of(heap, block, end, key, begin, size)
    if entry < 0:
        return ABSENT, none, none, none, none
    count, value, end = _entry_of(heap, entry, limit, key, begin, size)
    return (ABSENT if count == 0 else FOUND), entry, count, value, end


def _varint(heap: Bytes, at: Number, limit: Number) -> tuple[Number, Number, Any]:
    """A number of up to ten bytes, where it ends, and whether it does not end before `limit`."""
    more: Any = True
    word, shift = np.uint64(0), np.uint64(0)
    while more and at < limit and shift < np.uint64(70):
        word |= np.uint64((np.uint64(heap[at]) & np.uint64(127)) << shift)
        more = heap[at] >= 128
        shift += np.uint64(7)
        at += 1
    return word, at, more


def _read_value(
    heap: Bytes, state: Longs, at: Number, limit: Number, is_first: Number, out: Longs, row: Number, rows: Number
) -> Number:
    """Read a value into a row of `out`, which has the cells of the value before it; whether it ends where it should."""
    columns, front, widths, deltas = state[3], state[4], state[6], state[7]
    bitmap_at = at
    for column in range(columns):
        if column == front:
            bitmap_at = at
            at += (columns - front + 7) // 8
            if at > limit:
                return False
        cell, bit = column * rows + row, column - front
        end, valid = columns * rows + cell, 2 * columns * rows + cell
        before = np.uint64(0) if is_first else np.uint64(out[cell])
        out[cell] = out[end] = out[valid] = 0
        if bit >= 0 and heap[bitmap_at + bit // 8] >> np.uint8(bit % 8) & np.uint8(1):
            continue
        out[valid] = 1
        width, is_delta = state[widths + column], state[deltas + column] != 0
        word, more = np.uint64(0), False
        if width == 0 or is_delta:
            word, at, more = _varint(heap, at, limit)
        length = np.int64(word) if width == 0 else np.int64(0) if is_delta else width
        if more or length < 0 or length > limit - at:
            return False
        if width % 16 == 0:
            out[cell] = at
            out[end] = at + length
            at += length
        elif is_delta:
            change = np.uint64(word >> np.uint64(1)) ^ np.uint64(np.uint64(0) - (word & np.uint64(1)))
            out[cell] = np.int64(np.uint64(before + change))
        else:
            for _ in range(length):
                word = np.uint64(word << np.uint64(8)) | np.uint64(heap[at])
                at += 1
            out[cell] = np.int64(word)
    return at == limit


def _read_row(
    heap: Bytes,
    state: Longs,
    key: Any,
    begin: Number,
    size: Number,
    deltas: Number,
    out: Longs,
    row: Number,
    rows: Number,
) -> tuple[Number, Number]:
    """Find a key and read its value into a row of `out`; numbers that are differences are only right where `deltas` is 1."""
    code, entry, count, value, end = _find(heap, state, key, begin, size)
    if code != FOUND:
        return code, entry
    if deltas == 0:
        is_read = _read_value(heap, state, value, end, True, out, row, rows)
        # All rows of a file have one schema id, so that behind a restart point the difference is 0.
        expected = state[5] if count == 1 or state[state[7]] == 0 else np.int64(0)
        return (FOUND, np.int64(0)) if is_read and out[row] == expected else (DAMAGED, np.int64(0))
    # Numbers are differences to the value before, from the restart point on.
    for step in range(count):
        _, unshared, length, entry = _lengths(heap, entry)
        value = entry + unshared
        entry = value + length
        if not _read_value(heap, state, value, entry, step == 0, out, row, rows):
            return DAMAGED, np.int64(0)
    return (FOUND, np.int64(0)) if out[row] == state[5] else (DAMAGED, np.int64(0))


def _row(heap: Bytes, state: Longs, key: Any, deltas: Number, out: Longs) -> tuple[Number, Number]:
    """The cells of a key's value: of each column a number, or the begin of bytes; the ends of bytes; whether it is valid."""
    return _read_row(heap, state, key, 0, len(key), deltas, out, 0, 1)


def _rows(heap: Bytes, state: Longs, keys: Bytes, key_at: Longs, deltas: Number, out: Longs, found: Longs) -> None:
    """The same for many keys, column by column; what was found of each, -1 - its block where that is not there."""
    rows = key_at.shape[0] - 1
    for row in range(rows):
        code, block = _read_row(heap, state, keys, key_at[row], key_at[row + 1] - key_at[row], deltas, out, row, rows)
        if code == DAMAGED:
            found[row] = -(1 << 62)
        else:
            found[row] = -1 - block if code == MISSING else code


def _text(heap: Bytes, state: Longs, key: Any, column: Number) -> tuple[Number, Number]:
    """Where the bytes of a key in one column begin and end; a code, which is not above 0, and the block that is not there."""
    code, entry, count, at, limit = _find(heap, state, key, 0, len(key))
    if code != FOUND:
        return code, entry
    columns, front, widths, deltas = state[3], state[4], state[6], state[7]
    bitmap_at = at
    for place in range(columns):
        if place == front:
            bitmap_at = at
            at += (columns - front + 7) // 8
            if at > limit:
                break
        bit = place - front
        if bit >= 0 and heap[bitmap_at + bit // 8] >> np.uint8(bit % 8) & np.uint8(1):
            if place == column:
                return NULL, np.int64(0)
            continue
        width, is_delta = state[widths + place], state[deltas + place] != 0
        word, more = np.uint64(0), False
        if width == 0 or is_delta:
            word, at, more = _varint(heap, at, limit)
        length = np.int64(word) if width == 0 else np.int64(0) if is_delta else width
        if more or length < 0 or length > limit - at:
            break
        if place == 0:
            for _ in range(length):
                word = np.uint64(word << np.uint64(8)) | np.uint64(heap[at])
                at += 1
            if is_delta:
                word = np.uint64(word >> np.uint64(1)) ^ np.uint64(np.uint64(0) - (word & np.uint64(1)))
            # All rows of a file have one schema id, so that behind a restart point the difference is 0.
            if np.int64(word) != (state[5] if count == 1 or not is_delta else np.int64(0)):
                break
            continue
        if place == 2 and heap[at] & 1:
            return RETRACT, np.int64(0)
        if place == column:
            return at, at + length
        at += length
    return DAMAGED, np.int64(0)


_HEAP = "Array(uint8, 1, 'C', readonly=True)"
_STATE = "Array(int64, 1, 'C', readonly=True)"
_KEY = "Bytes(uint8, 1, 'C')"
_PAIR = "UniTuple(int64, 2)"
_INNER = (_hash, _admits, _block_of, _lengths, _restart_of, _entry_of, _find, _varint, _read_value, _read_row)
# A get that has no compiled loop decodes a block.
_SAVED_NS = 20_000.0

text_loop = CompiledLoop(_text, f"{_PAIR}({_HEAP}, {_STATE}, {_KEY}, int64)", _SAVED_NS, inner=_INNER, is_direct=True)
row_loop = CompiledLoop(
    _row, f"{_PAIR}({_HEAP}, {_STATE}, {_KEY}, int64, int64[::1])", _SAVED_NS, inner=_INNER, is_direct=True
)
rows_loop = CompiledLoop(
    _rows,
    f"void({_HEAP}, {_STATE}, {_HEAP}, {_STATE}, int64, int64[::1], int64[::1])",
    _SAVED_NS,
    inner=_INNER,
    is_direct=True,
)
