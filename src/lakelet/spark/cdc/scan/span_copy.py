"""Copy runs of bytes into Arrow columns: as they are, as the text that JSON means, or as the bytes that base64 means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.spark.cdc.scan.event_scan import Bytes, Flags, Kernel, Numbers

PLAIN, JSON, BASE64 = range(3)
_BYTES = "Array(uint8, 1, 'C', readonly=True)"


def unescaped(data: Any, at: int, out: Any, to: int) -> tuple[int, int]:
    """Writes what the escape at a place means; the places behind both. Escapes were checked before."""
    c = data[at + 1]
    if c != 117:
        out[to] = 8 if c == 98 else 12 if c == 102 else 10 if c == 110 else 13 if c == 114 else 9 if c == 116 else c
        return at + 2, to + 1
    point = digits(data, at + 2)
    at += 6
    if 0xD800 <= point <= 0xDBFF:
        point = 0x10000 + ((point - 0xD800) << 10) + digits(data, at + 2) - 0xDC00
        at += 6
    if point < 0x80:
        out[to] = point
        return at, to + 1
    if point < 0x800:
        out[to], out[to + 1] = 0xC0 | point >> 6, 0x80 | point & 0x3F
        return at, to + 2
    if point < 0x10000:
        out[to], out[to + 1], out[to + 2] = 0xE0 | point >> 12, 0x80 | point >> 6 & 0x3F, 0x80 | point & 0x3F
        return at, to + 3
    out[to], out[to + 1] = 0xF0 | point >> 18, 0x80 | point >> 12 & 0x3F
    out[to + 2], out[to + 3] = 0x80 | point >> 6 & 0x3F, 0x80 | point & 0x3F
    return at, to + 4


def digits(data: Any, at: int) -> int:
    """Four hexadecimal digits as a number."""
    value = 0
    for place in range(at, at + 4):
        c = data[place]
        value = value * 16 + (c - 48 if c <= 57 else (c | 32) - 87)
    return value


def sextet(c: int) -> int:
    """The six bits of a character of base64."""
    if c >= 97:
        return c - 71
    if c >= 65:
        return c - 65
    if c >= 48:
        return c + 4
    return 62 if c == 43 else 63


def copy_spans(data: Any, begins: Any, ends: Any, mode: int, out: Any, offsets: Any) -> int:
    """Copies each run behind the last; the bytes written."""
    to = 0
    for row in range(len(begins)):
        at, end = begins[row], ends[row]
        if mode == PLAIN:
            # Slices counted from 0 are copied many bytes at once (`event_kernel.same_bytes`).
            given, copy = data[at:end], out[to : to + end - at]
            for place in range(end - at):
                copy[place] = given[place]
            to += end - at
        elif mode == JSON:
            while at < end:
                if data[at] == 92:
                    at, to = unescaped(data, at, out, to)
                else:
                    out[to] = data[at]
                    at += 1
                    to += 1
        else:
            while at < end:
                word = sextet(data[at]) << 18 | sextet(data[at + 1]) << 12
                out[to] = word >> 16 & 0xFF
                to += 1
                if data[at + 2] != 61:
                    word |= sextet(data[at + 2]) << 6
                    out[to] = word >> 8 & 0xFF
                    to += 1
                    if data[at + 3] != 61:
                        out[to] = (word | sextet(data[at + 3])) & 0xFF
                        to += 1
                at += 4
        offsets[row + 1] = to
    return to


_copy = Kernel(
    copy_spans,
    f"int64({_BYTES}, int64[::1], int64[::1], int64, uint8[::1], int32[::1])",
    (digits, unescaped, sextet),
)


def copied(data: Bytes, begins: Numbers, ends: Numbers, valid: Flags, mode: int, kind: pa.DataType) -> pa.Array:
    """The runs of bytes as a BINARY or STRING column, NULL where they are not `valid`."""
    begins, ends = np.where(valid, begins, 0), np.where(valid, ends, 0)
    out = np.empty(int((ends - begins).sum()), np.uint8)
    offsets = np.zeros(len(begins) + 1, np.int32)
    size = _copy(data, begins, ends, mode, out, offsets)
    return pa.Array.from_buffers(
        kind, len(begins), [bits(valid), pa.py_buffer(offsets), pa.py_buffer(out[:size])], int((~valid).sum())
    )


def bits(valid: Flags) -> pa.Buffer | None:
    """Arrow's validity of a column; none where all are valid."""
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


def flat(values: NDArray[Any], valid: Flags, kind: pa.DataType) -> pa.Array:
    """A column of a type of fixed width over its own bytes."""
    held = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(valid), [bits(valid), held], int((~valid).sum()))


def padded(values: Numbers, valid: Flags) -> pa.Array:
    """Whole numbers as texts of twenty digits, which sort like them."""
    out = np.empty((len(values), 20), np.uint8)
    left = np.where(valid, values, 0)
    for place in range(19, -1, -1):
        rest = left // 10
        out[:, place] = left - rest * 10 + 48
        left = rest
    offsets = np.arange(0, 20 * len(values) + 1, 20, dtype=np.int32)
    return pa.Array.from_buffers(
        pa.string(), len(values), [bits(valid), pa.py_buffer(offsets), pa.py_buffer(out)], int((~valid).sum())
    )
