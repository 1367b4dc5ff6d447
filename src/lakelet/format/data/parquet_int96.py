"""INT96 timestamps of Parquet files, read exactly.

Below `parquet_file`. An INT96 is the nanoseconds of a day and the Julian number of the day:

    nanoseconds: int64 little-endian | day: int32 little-endian         day 2440588 is 1970-01-01

Java and Arrow write times before 1970 with nanoseconds below zero, counted back from a later day. Arrow's reader takes
them for unsigned when it reads in milliseconds or microseconds (1969-12-31 23:59:59 becomes the year 2554), and overflows
silently in nanoseconds. So the file is read under a footer in which INT96 columns are FIXED_LEN_BYTE_ARRAY(12), which have
the same bytes, and the timestamps are computed here. A footer is Thrift's compact protocol:

    struct = field* | 0        field = (step << 4 | type) [id:varint if step is 0] value
    list   = (count << 4 | type) [count:varint if 15] value*            bytes = length:varint | byte{length}
    numbers are zigzag varints, an i8 is a byte, a double eight bytes; a boolean field is its type (1 true, 2 false)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakelet.errors import InvalidError

INT96_BYTES = 12
EPOCH_DAY = 2_440_588
_DAY_US = 86_400_000_000
_MAX_DAYS = 2**63 // _DAY_US - 1
_INT96, _FIXED = 3, 7
_TAIL = 8

# Thrift's type numbers.
_TRUE, _FALSE, _I8, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_Struct = dict[int, tuple[int, Any]]


def metadata_with_raw_int96(source: pa.NativeFile) -> pq.FileMetaData:
    """The file's metadata with INT96 columns as binary ones; of a file that is known to be Parquet."""
    size = source.size()
    length = int.from_bytes(source.read_at(_TAIL, size - _TAIL)[:4], "little")
    footer, _ = _read_struct(source.read_at(length, size - _TAIL - length), 0)
    for element in footer[2][1][1]:
        if element.get(1) == (_I32, _INT96):
            element[1] = (_I32, _FIXED)
            element[2] = (_I32, INT96_BYTES)
    for group in footer[4][1][1]:
        for chunk in group[1][1][1]:
            column = chunk[3][1]
            if column.get(1) == (_I32, _INT96):
                column[1] = (_I32, _FIXED)
                # The order of INT96 statistics is undefined.
                column.pop(12, None)
    patched = _write_struct(footer)
    return pq.read_metadata(pa.BufferReader(b"PAR1" + patched + len(patched).to_bytes(4, "little") + b"PAR1"))


def footer_with_int96(tail: bytes) -> bytes:
    """The end of a file, footer and all, in which binary columns of twelve bytes without a meaning have become INT96."""
    length = int.from_bytes(tail[-_TAIL:-4], "little")
    start = len(tail) - _TAIL - length
    footer, _ = _read_struct(tail[start:-_TAIL], 0)
    raw = []
    for element in footer[2][1][1]:
        if 1 not in element:
            continue
        raw.append(element[1] == (_I32, _FIXED) and element[2] == (_I32, INT96_BYTES) and not {6, 10} & element.keys())
        if raw[-1]:
            element[1] = (_I32, _INT96)
            del element[2]
    for group in footer[4][1][1]:
        for is_raw, chunk in zip(raw, group[1][1][1], strict=True):
            if is_raw:
                chunk[3][1][1] = (_I32, _INT96)
    patched = _write_struct(footer)
    return tail[:start] + patched + len(patched).to_bytes(4, "little") + tail[-4:]


def decode_int96(array: pa.FixedSizeBinaryArray, target: pa.DataType) -> pa.Array:
    """Timestamps of the target's unit; InvalidError for a value that it cannot hold."""
    data = np.frombuffer(array.buffers()[1] or b"", np.uint8)
    cells = data[array.offset * INT96_BYTES : (array.offset + len(array)) * INT96_BYTES]
    pairs = cells.view(np.dtype([("nanos", "<i8"), ("day", "<i4")]))
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    days = np.where(valid, pairs["day"].astype(np.int64) - EPOCH_DAY, 0)
    nanos = np.where(valid, pairs["nanos"], 0)
    if (np.abs(days) > _MAX_DAYS).any():
        raise InvalidError("a timestamp is too far away for microseconds")
    micros = days * _DAY_US + nanos // 1000
    if target.unit == "ms":
        values = micros // 1000
    elif target.unit == "us":
        values = micros
    else:
        values = micros * 1000 + nanos % 1000
        # A product that wrapped around does not divide back.
        if (values // 1000 != micros).any():
            raise InvalidError("a timestamp is outside 1677-09-21 to 2262-04-11, which nanoseconds cannot express")
    return pa.array(values, pa.int64(), mask=~valid).view(target)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _read_struct(data: bytes, at: int) -> tuple[_Struct, int]:
    fields: _Struct = {}
    number = 0
    while (head := data[at]) != 0:
        at += 1
        if head >> 4:
            number += head >> 4
        else:
            number, at = _read_varint(data, at)
            number = (number >> 1) ^ -(number & 1)
        kind = head & 15
        value: Any = None
        if kind not in (_TRUE, _FALSE):
            value, at = _read_value(data, at, kind)
        fields[number] = (kind, value)
    return fields, at + 1


def _read_value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (_I16, _I32, _I64):
        value, at = _read_varint(data, at)
        return (value >> 1) ^ -(value & 1), at
    if kind == _BINARY:
        length, at = _read_varint(data, at)
        return data[at : at + length], at + length
    if kind == _STRUCT:
        return _read_struct(data, at)
    if kind in (_LIST, _SET):
        head = data[at]
        count, at = (head >> 4, at + 1) if head >> 4 < 15 else _read_varint(data, at + 1)
        items = []
        for _ in range(count):
            item, at = _read_value(data, at, head & 15)
            items.append(item)
        return (head & 15, items), at
    if kind in (_TRUE, _FALSE, _I8):
        return data[at : at + 1], at + 1
    if kind == _DOUBLE:
        return data[at : at + 8], at + 8
    raise InvalidError(f"Parquet footer: Thrift type {kind} at byte {at} is not known")


def _write_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _write_struct(fields: _Struct) -> bytes:
    parts, last = [], 0
    for number, (kind, value) in sorted(fields.items()):
        step = number - last
        if 0 < step < 16:
            parts.append(bytes([step << 4 | kind]))
        else:
            parts.append(bytes([kind]) + _write_varint(number << 1))
        last = number
        if kind not in (_TRUE, _FALSE):
            parts.append(_write_value(value, kind))
    return b"".join([*parts, b"\0"])


def _write_value(value: Any, kind: int) -> bytes:
    if kind in (_I16, _I32, _I64):
        return _write_varint((value << 1) ^ (value >> 63))
    if kind == _BINARY:
        return _write_varint(len(value)) + bytes(value)
    if kind == _STRUCT:
        return _write_struct(value)
    if kind in (_LIST, _SET):
        item, items = value
        head = bytes([len(items) << 4 | item]) if len(items) < 15 else bytes([0xF0 | item]) + _write_varint(len(items))
        return head + b"".join(_write_value(each, item) for each in items)
    return bytes(value)
