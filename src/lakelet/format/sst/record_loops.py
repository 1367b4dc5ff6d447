"""Encode and decode records: the compiled loops, which are their own interpreted twins.

A record is a row of columns, as `docs/spec/sst.md` draws it:

    columns in front          values of entries have three: schema id, sequence number, row kind
    null bitmap               a bit for each further column, the first column's in the lowest bit of the first byte; 1 is NULL
    columns                   those that are not NULL

    number, delta encoding    varint of the zigzag difference to the column in the record before; to 0 at a restart point,
                              and where that is NULL
    number, else              as many bytes as the type has, big-endian
    16 bytes                  as they are
    bytes                     varint length, bytes

Numbers are unsigned 64-bit words here, so that differences wrap around and every value comes back. Of bytes, `numbers` and
`ends` say where they begin and end. A NULL has the number 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lakelet.format.compiled.compiled_loop import compiled_loop

Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]
Words = NDArray[np.uint64]

_BYTES = "Array(uint8, 1, 'C', readonly=True)"
_LONGS = "Array(int64, 1, 'C', readonly=True)"
_CELLS = "uint64[:, ::1], int64[:, ::1], uint8[:, ::1]"


@compiled_loop(f"void({_CELLS}, {_LONGS}, {_BYTES}, int64, int64[:, ::1])", saved_ns_per_byte=10_000.0)
def size_loop(
    numbers: Words, ends: Longs, valid: Bytes, widths: Longs, deltas: Bytes, front: int, sizes: Longs
) -> None:
    """The bytes of each record: in row 0 of `sizes` behind another one, in row 1 at a restart point."""
    columns, rows = numbers.shape
    for row in range(rows):
        for restart in range(2):
            sizes[restart, row] = (columns - front + 7) // 8
    for column in range(columns):
        width = widths[column]
        for row in range(rows):
            if valid[column, row] == 0:
                continue
            for restart in range(2):
                word, size = np.uint64(0), np.int64(width)
                if width == 0:
                    size = ends[column, row] - np.int64(numbers[column, row])
                    word = np.uint64(size)
                elif deltas[column] != 0:
                    before = numbers[column, row - 1] if restart == 0 and row > 0 else np.uint64(0)
                    change = np.uint64(numbers[column, row] - before)
                    word = np.uint64(change << np.uint64(1)) ^ np.uint64(np.uint64(0) - (change >> np.uint64(63)))
                    size = np.int64(0)
                if width == 0 or deltas[column] != 0:
                    size += 1
                    while word >= np.uint64(128):
                        word = word >> np.uint64(7)
                        size += 1
                sizes[restart, row] += size


@compiled_loop(
    f"void({_CELLS}, {_BYTES}, {_LONGS}, {_BYTES}, int64, {_BYTES}, {_LONGS}, uint8[::1])", saved_ns_per_byte=300.0
)
def write_loop(
    numbers: Words,
    ends: Longs,
    valid: Bytes,
    heap: Bytes,
    widths: Longs,
    deltas: Bytes,
    front: int,
    restarts: Bytes,
    record_at: Longs,
    out: Bytes,
) -> None:
    """Write each record to its place in `out`."""
    columns, rows = numbers.shape
    for row in range(rows):
        to = record_at[row]
        for column in range(columns):
            if column == front:
                bitmap = (columns - front + 7) // 8
                for place in range(bitmap):
                    out[to + place] = np.uint8(0)
                for other in range(front, columns):
                    if valid[other, row] == 0:
                        bit = other - front
                        out[to + bit // 8] |= np.uint8(1 << bit % 8)
                to += bitmap
            if valid[column, row] == 0:
                continue
            value, width, length = numbers[column, row], widths[column], np.int64(0)
            word = value
            if width % 16 == 0:
                length = ends[column, row] - np.int64(value)
                word = np.uint64(length)
            elif deltas[column] != 0:
                before = np.uint64(0) if restarts[row] != 0 or row == 0 else numbers[column, row - 1]
                change = np.uint64(value - before)
                word = np.uint64(change << np.uint64(1)) ^ np.uint64(np.uint64(0) - (change >> np.uint64(63)))
            if width == 0 or deltas[column] != 0:
                while word >= np.uint64(128):
                    out[to] = np.uint8(word & np.uint64(127) | np.uint64(128))
                    word = word >> np.uint64(7)
                    to += 1
                out[to] = np.uint8(word)
                to += 1
            elif width < 16:
                for place in range(width):
                    out[to + place] = np.uint8(word >> np.uint64(8 * (width - 1 - place)) & np.uint64(255))
                to += width
            begin = np.int64(value) if length > 0 else np.int64(0)
            for place in range(length):
                out[to + place] = heap[begin + place]
            to += length


@compiled_loop(
    f"void({_BYTES}, {_LONGS}, {_LONGS}, {_BYTES}, {_LONGS}, {_BYTES}, int64, {_CELLS}, int64[::1])",
    saved_ns_per_byte=300.0,
)
def read_loop(
    data: Bytes,
    begins: Longs,
    limits: Longs,
    restarts: Bytes,
    widths: Longs,
    deltas: Bytes,
    front: int,
    numbers: Words,
    ends: Longs,
    valid: Bytes,
    state: Longs,
) -> None:
    """Read the records of spans, one or more of each, into cells that are all 0. `state` gets 1 where a record reaches beyond
    its span, and their number."""
    columns, row = numbers.shape[0], 0
    for span in range(begins.shape[0]):
        at, limit = begins[span], limits[span]
        while at < limit:
            if row == numbers.shape[1]:
                state[0] = 1
                return
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
                    continue
                valid[column, row] = np.uint8(1)
                width, word, shift, more = widths[column], np.uint64(0), np.uint64(0), True
                if width == 0 or deltas[column] != 0:
                    while more and at < limit and shift < np.uint64(70):
                        word |= np.uint64((np.uint64(data[at]) & np.uint64(127)) << shift)
                        more = data[at] >= 128
                        shift += np.uint64(7)
                        at += 1
                else:
                    more = False
                length = np.int64(word) if width == 0 else np.int64(0) if deltas[column] != 0 else np.int64(width)
                if more or length < 0 or length > limit - at:
                    state[0] = 1
                    return
                if width % 16 == 0:
                    numbers[column, row] = np.uint64(at)
                    ends[column, row] = at + length
                    at += length
                elif deltas[column] != 0:
                    before = np.uint64(0) if restarts[span] != 0 or row == 0 else numbers[column, row - 1]
                    change = np.uint64(word >> np.uint64(1)) ^ np.uint64(np.uint64(0) - (word & np.uint64(1)))
                    numbers[column, row] = np.uint64(before + change)
                else:
                    for _ in range(length):
                        word = np.uint64(word << np.uint64(8)) | np.uint64(data[at])
                        at += 1
                    numbers[column, row] = word
            row += 1
    state[1] = row


@compiled_loop(f"void({_BYTES}, {_LONGS}, {_LONGS}, {_LONGS}, uint8[::1])", saved_ns_per_byte=50.0)
def gather_loop(data: Bytes, begins: Longs, ends: Longs, out_at: Longs, out: Bytes) -> None:
    """Copy pieces of the data to their places."""
    for row in range(begins.shape[0]):
        shift = out_at[row] - begins[row]
        for place in range(begins[row], ends[row]):
            out[place + shift] = data[place]


@compiled_loop(f"void({_BYTES}, int64[::1], {_LONGS}, int64[::1], int64[::1])", saved_ns_per_byte=100.0)
def count_loop(data: Bytes, begins: Longs, limits: Longs, counts: Longs, state: Longs) -> None:
    """Read the varint that each span begins with, and move its begin behind it; an empty span counts 0."""
    for span in range(begins.shape[0]):
        at, number, shift, more = begins[span], np.int64(0), 0, begins[span] < limits[span]
        while more:
            if at >= limits[span] or shift > 35:
                state[0] = 1
                return
            byte = np.int64(data[at])
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            more = byte >= 128
        begins[span] = at
        counts[span] = number
