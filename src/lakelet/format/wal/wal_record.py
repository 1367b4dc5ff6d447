"""Encode and scan the records of a write-ahead log.

All numbers are big-endian; a varint has seven bits in each byte, the least significant first, and the high bit set in all but
the last.

    length   4   bytes from the type up to the CRC32, the CRC32 excluded
    type     1   0 HEADER, 1 PUT, 2 DELETE, 3 GROUP, 4 KEY (`wal_group`)
    key          varint length, bytes (lsm/key_bytes; empty in a table without a primary key)
    row          varint length, bytes (a BinaryRow with its arity in front; a DELETE has the deleted row)
    CRC32    4   over length, type, key and row

A batch is encoded and scanned by compiled loops. Their twins in Python give the same bytes, record by record.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.format.compiled.compiled_loop import CompiledLoop, compiled_loop

HEADER, PUT, DELETE, GROUP, KEY = 0, 1, 2, 3, 4
RECORD_TYPES = (HEADER, PUT, DELETE, GROUP, KEY)
LENGTH_BYTES = 4
CRC_BYTES = 4
# A type, an empty key and an empty row.
LEAST_LENGTH = 3
MAX_LENGTH = 2**32 - 1
FRAME_BYTES = LENGTH_BYTES + CRC_BYTES

Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]
Tables = NDArray[np.uint32]

_LENGTH = struct.Struct(">I")
_HEAD = struct.Struct(">IB")
_BYTES_OF_ONE = [bytes((value,)) for value in range(0x80)]
_POLYNOMIAL = 0xEDB88320
_BYTES = "Array(uint8, 1, 'C', readonly=True)"
_LONGS = "Array(int64, 1, 'C', readonly=True)"


def _crc_tables() -> Tables:
    """The tables that take sixteen bytes of a CRC32 at a time: row k advances a byte over k further ones."""
    tables = np.zeros((16, 256), np.uint32)
    value = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        value = np.where(value & np.uint32(1), value >> np.uint32(1) ^ np.uint32(_POLYNOMIAL), value >> np.uint32(1))
    tables[0] = value
    for row in range(1, 16):
        tables[row] = tables[0][tables[row - 1] & np.uint32(255)] ^ tables[row - 1] >> np.uint32(8)
    return tables


_TABLES = _crc_tables()


def encode_varint(value: int) -> bytes:
    """The bytes of a length."""
    if value < 0x80:
        return _BYTES_OF_ONE[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_record(record_type: int, key: bytes, row: bytes) -> bytes:
    """One record."""
    key_length, row_length = encode_varint(len(key)), encode_varint(len(row))
    length = 1 + len(key_length) + len(key) + len(row_length) + len(row)
    framed = b"".join((_HEAD.pack(length, record_type), key_length, key, row_length, row))
    return framed + _LENGTH.pack(zlib.crc32(framed))


def record_sizes(keys: pa.Array, rows: pa.Array) -> Longs:
    """The bytes that the record of each row takes, for columns of `binary` or `large_binary`."""
    key_lengths, row_lengths = np.diff(_offsets(keys)), np.diff(_offsets(rows))
    sizes: Longs = key_lengths + row_lengths + _varint_sizes(key_lengths) + _varint_sizes(row_lengths) + FRAME_BYTES + 1
    return sizes


def encode_records(record_type: int, keys: pa.Array, rows: pa.Array) -> bytes:
    """The records of many rows, one behind the other, for columns of `binary` or `large_binary` without NULLs."""
    total = int(record_sizes(keys, rows).sum())
    run = _encode_loop.for_bytes(total)
    if run is None:
        pairs = zip(keys.to_pylist(), rows.to_pylist(), strict=True)
        return b"".join(encode_record(record_type, key, row) for key, row in pairs)
    out = np.empty(total, np.uint8)
    run(np.uint8(record_type), _data(keys), _offsets(keys), _data(rows), _offsets(rows), _TABLES, out)
    return out.tobytes()


def scan_records(data: bytes, start: int) -> tuple[Longs, int]:
    """All intact records from `start` on as rows of (type, begin of the key, its end, begin of the row, its end), and the place
    behind the last of them: the end of the data, or the first record that is not intact."""
    found: list[Longs] = []
    state = np.array([start, 0], np.int64)
    buffer = np.frombuffer(data, np.uint8)
    run = _frame_loop.for_bytes(len(data) - start)
    while True:
        part = np.empty((1 << 16, 5), np.int64)
        begin = int(state[0])
        if run is None:
            _scan_python(buffer, part, state)
        else:
            run(buffer, part, state)
            _cut_at_damage(buffer, begin, part, state)
        found.append(part[: state[1]])
        if state[1] < len(part):
            return np.concatenate(found), int(state[0])


def record_at(data: bytes, at: int) -> tuple[int, int, int, int, int, int] | None:
    """The intact record at a place, as in `scan_records`, with its end; None where there is none."""
    if at + LENGTH_BYTES > len(data):
        return None
    (length,) = _LENGTH.unpack_from(data, at)
    end = at + LENGTH_BYTES + length
    if length < LEAST_LENGTH or end + CRC_BYTES > len(data) or data[at + LENGTH_BYTES] not in RECORD_TYPES:
        return None
    if _LENGTH.unpack_from(data, end)[0] != zlib.crc32(memoryview(data)[at:end]):
        return None
    key = _span(data, at + LENGTH_BYTES + 1, end)
    row = None if key is None else _span(data, key[1], end)
    if key is None or row is None or row[1] != end:
        return None
    return data[at + LENGTH_BYTES], *key, *row, end + CRC_BYTES


def _span(data: bytes, at: int, limit: int) -> tuple[int, int] | None:
    """The begin and end of the bytes behind a varint."""
    length = shift = 0
    while at < limit:
        byte = data[at]
        at += 1
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (at, at + length) if at + length <= limit else None
        shift += 7
    return None


def _offsets(column: pa.Array) -> Longs:
    if not len(column):
        return np.zeros(1, np.int64)
    if pa.types.is_large_binary(column.type):
        return np.frombuffer(column.buffers()[1], np.int64, len(column) + 1, column.offset * 8)
    return np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4).astype(np.int64)


def _data(column: pa.Array) -> Bytes:
    buffer = column.buffers()[2]
    return np.zeros(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)


def _varint_sizes(lengths: Longs) -> Longs:
    bounds = np.array([1 << 7 * step for step in range(1, 6)], np.int64)
    return np.searchsorted(bounds, lengths, side="right").astype(np.int64) + 1


def _cut_at_damage(data: Bytes, begin: int, part: Longs, state: Longs) -> None:
    """End a part of framed records before the first whose CRC32 is another."""
    ends = part[: state[1], 4]
    if not len(ends):
        return
    begins = np.concatenate([np.full(1, begin, np.int64), ends[:-1] + CRC_BYTES])
    stored = np.ascontiguousarray(data[ends[:, None] + np.arange(CRC_BYTES)]).view(">u4").reshape(-1)
    wrong = np.flatnonzero(stored != _crc32_of(data, begins, ends))
    if len(wrong):
        state[:] = begins[wrong[0]], wrong[0]


def _crc32_of(data: Bytes, begins: Longs, ends: Longs) -> NDArray[np.uint32]:
    """The CRC32 of each span."""
    found = np.empty(len(begins), np.uint32)
    # Whoever asks has loaded the compiler.
    _crc_loop.load_if_enabled()
    run = _crc_loop.for_bytes(len(data))
    if run is not None:
        run(data, begins, np.ascontiguousarray(ends), _TABLES, found)
        return found
    for place, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
        found[place] = zlib.crc32(data[begin:end].tobytes())
    return found


def _scan_python(data: Bytes, out: Longs, state: Longs) -> None:
    whole, at, count = data.tobytes(), int(state[0]), 0
    while count < len(out):
        record = record_at(whole, at)
        if record is None:
            break
        out[count] = record[:5]
        at, count = record[5], count + 1
    state[:] = at, count


def _crc_of_span(data: Bytes, begin: np.uint64, end: np.uint64, tables: Tables) -> np.uint32:
    """The CRC32 of a span, sixteen bytes at a time."""
    crc, at = np.uint32(0xFFFFFFFF), begin
    while at + np.uint64(16) <= end:
        first = crc ^ (
            np.uint32(data[at])
            | np.uint32(data[at + np.uint64(1)]) << np.uint32(8)
            | np.uint32(data[at + np.uint64(2)]) << np.uint32(16)
            | np.uint32(data[at + np.uint64(3)]) << np.uint32(24)
        )
        crc = np.uint32(
            tables[15, first & np.uint32(255)]
            ^ tables[14, first >> np.uint32(8) & np.uint32(255)]
            ^ tables[13, first >> np.uint32(16) & np.uint32(255)]
            ^ tables[12, first >> np.uint32(24)]
            ^ tables[11, data[at + np.uint64(4)]]
            ^ tables[10, data[at + np.uint64(5)]]
            ^ tables[9, data[at + np.uint64(6)]]
            ^ tables[8, data[at + np.uint64(7)]]
            ^ tables[7, data[at + np.uint64(8)]]
            ^ tables[6, data[at + np.uint64(9)]]
            ^ tables[5, data[at + np.uint64(10)]]
            ^ tables[4, data[at + np.uint64(11)]]
            ^ tables[3, data[at + np.uint64(12)]]
            ^ tables[2, data[at + np.uint64(13)]]
            ^ tables[1, data[at + np.uint64(14)]]
            ^ tables[0, data[at + np.uint64(15)]]
        )
        at += np.uint64(16)
    while at < end:
        crc = np.uint32(tables[0, (crc ^ np.uint32(data[at])) & np.uint32(255)] ^ crc >> np.uint32(8))
        at += np.uint64(1)
    return np.uint32(crc ^ np.uint32(0xFFFFFFFF))


def _put_number(out: Bytes, at: np.uint64, value: np.uint64) -> None:
    for place in range(4):
        out[at + np.uint64(place)] = np.uint8(value >> np.uint64(24 - 8 * place) & np.uint64(255))


def _encode(
    record_type: int, keys: Bytes, key_at: Longs, rows: Bytes, row_at: Longs, tables: Tables, out: Bytes
) -> None:
    # Places are unsigned, so that none can count from the end: with that check copies are ten times slower.
    to = np.uint64(0)
    for i in range(key_at.shape[0] - 1):
        begin = to
        to += np.uint64(4)
        out[to] = record_type
        to += np.uint64(1)
        for part in range(2):
            source, places = (keys, key_at) if part == 0 else (rows, row_at)
            first, length = np.uint64(places[i]), np.uint64(places[i + 1] - places[i])
            left = length
            while left >= np.uint64(128):
                out[to] = np.uint8(left & np.uint64(127) | np.uint64(128))
                left >>= np.uint64(7)
                to += np.uint64(1)
            out[to] = np.uint8(left)
            to += np.uint64(1)
            for j in range(length):
                out[to + j] = source[first + j]
            to += length
        _put_number(out, begin, to - begin - np.uint64(4))
        _put_number(out, to, np.uint64(_crc_of_span(out, begin, to, tables)))
        to += np.uint64(4)


def _crcs(data: Bytes, begins: Longs, ends: Longs, tables: Tables, out: NDArray[np.uint32]) -> None:
    for i in range(begins.shape[0]):
        out[i] = _crc_of_span(data, np.uint64(begins[i]), np.uint64(ends[i]), tables)


_encode_loop = CompiledLoop(
    _encode,
    f"void(uint8, {_BYTES}, {_LONGS}, {_BYTES}, {_LONGS}, uint32[:, ::1], uint8[::1])",
    30.0,
    inner=(_put_number, _crc_of_span),
)
_crc_loop = CompiledLoop(
    _crcs, f"void({_BYTES}, {_LONGS}, {_LONGS}, uint32[:, ::1], uint32[::1])", 1.0, inner=(_crc_of_span,)
)


@compiled_loop(f"void({_BYTES}, int64[:, ::1], int64[::1])", saved_ns_per_byte=30.0)
def _frame_loop(data: Bytes, out: Longs, state: Longs) -> None:
    """The frames of records, whatever their CRC32 is."""
    at, count, size = state[0], 0, data.shape[0]
    while count < out.shape[0] and at + 11 <= size:
        length = np.int64(data[at]) << 24 | np.int64(data[at + 1]) << 16 | np.int64(data[at + 2]) << 8 | data[at + 3]
        end = at + 4 + length
        if length < 3 or end + 4 > size or data[at + 4] > 4:
            break
        out[count, 0] = data[at + 4]
        place, whole = at + 5, True
        for part in range(2):
            span, shift, more = np.int64(0), 0, True
            while more and place < end and shift < 35:
                span |= np.int64(data[place] & 127) << shift
                more = data[place] >= 128
                shift += 7
                place += 1
            if more or place + span > end:
                whole = False
                break
            out[count, 1 + 2 * part] = place
            out[count, 2 + 2 * part] = place + span
            place += span
        if not whole or place != end:
            break
        at, count = end + 4, count + 1
    state[0], state[1] = at, count


def python_records(data: bytes, records: Longs) -> tuple[Sequence[bytes], Sequence[bytes]]:
    """The keys and rows of scanned records as values of their own."""
    keys = [data[begin:end] for begin, end in records[:, 1:3].tolist()]
    return keys, [data[begin:end] for begin, end in records[:, 3:5].tolist()]
