"""A codec for small Avro files, row by row in Python.

Laying the columns of a wide record out for the kernels takes a millisecond, for one row as for ten thousand. A small commit
writes three files of a row or two and reads two, so that this was most of its time. Rows are tuples here, in the order of
the schema, records inside them too:

    few = FewRows({"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}, …]})
    few.decode(few.encode([(1, …)], codec="null"), path="f") == [(1, …)]

The bytes are those of `format.avro.encode`. Only files written with this exact schema are read; other, longer or damaged ones
are left to `format.avro.decode`, which reports what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from lakelet.errors import InternalError, LakeletError
from lakelet.format.avro.container import read_blocks, read_header, write_block, write_header
from lakelet.format.avro.encode import random_sync

MOST_ROWS = 64
# Larger files have more rows than these, and are not worth looking into.
_MOST_BYTES = 1 << 16
_Write = Callable[[bytearray, Any], None]
_Read = Callable[[bytes, int], tuple[Any, int]]
_INT32 = range(-(1 << 31), 1 << 31)
_MORE = 0x80
_OWN_METADATA = {"avro.schema", "avro.codec"}


class _Unreadable(ValueError):
    """Bytes that are no value of the schema; never raised to callers."""


class FewRows:
    """Encodes and decodes rows of one schema, of the kinds that manifests have."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
        self._write = _writer(schema)
        self._read = _reader(schema)

    def encode(self, rows: Sequence[tuple[Any, ...]], *, codec: str, sync: bytes | None = None) -> bytes:
        """A whole container file."""
        marker = random_sync() if sync is None else sync
        header = write_header(self._text, codec=codec, sync=marker, metadata={})
        if not rows:
            return header
        payload = bytearray()
        for row in rows:
            self._write(payload, row)
        return header + write_block(bytes(payload), rows=len(rows), codec=codec, level=None, sync=marker)

    def decode(self, data: bytes, *, path: str) -> list[tuple[Any, ...]] | None:
        """The rows of a file; None where there are many, or this class did not write it."""
        if len(data) > _MOST_BYTES:
            return None
        rows: list[tuple[Any, ...]] = []
        try:
            header = read_header(data, path=path)
            if header.schema_text != self._text or header.metadata.keys() - _OWN_METADATA:
                return None
            for block in read_blocks(data, header, path=path):
                if len(rows) + block.rows > MOST_ROWS:
                    return None
                place = 0
                for _ in range(block.rows):
                    row, place = self._read(block.data, place)
                    rows.append(row)
                if place != len(block.data):
                    return None
        except (LakeletError, ValueError, IndexError):
            return None
        return rows


def _writer(schema: Any) -> _Write:
    """The function that appends a value of a schema to bytes."""
    match schema:
        case "int" | "long" | {"type": "int" | "long"}:
            return _write_number
        case "bytes":
            return _write_bytes
        case "string":
            return lambda out, value: _write_bytes(out, value.encode())
        case ["null", kind]:
            return _optional_writer(_writer(kind))
        case {"type": "array", "items": items}:
            return _array_writer(_writer(items))
        case {"type": "record", "fields": fields}:
            return _record_writer([_writer(field["type"]) for field in fields])
    raise InternalError(f"rows of the Avro type {schema!r} are not written one at a time")


def _write_number(out: bytearray, value: int) -> None:
    rest = (value << 1) ^ (value >> 63)
    while rest >= _MORE:
        out.append(rest & 0x7F | _MORE)
        rest >>= 7
    out.append(rest)


def _write_bytes(out: bytearray, value: bytes) -> None:
    _write_number(out, len(value))
    out += value


def _optional_writer(write: _Write) -> _Write:
    def write_optional(out: bytearray, value: Any) -> None:
        if value is None:
            out.append(0)
        else:
            out.append(2)
            write(out, value)

    return write_optional


def _array_writer(write: _Write) -> _Write:
    def write_array(out: bytearray, values: Any) -> None:
        if len(values):
            _write_number(out, len(values))
            for value in values:
                write(out, value)
        out.append(0)

    return write_array


def _record_writer(writes: Sequence[_Write]) -> _Write:
    def write_record(out: bytearray, values: Any) -> None:
        for write, value in zip(writes, values, strict=True):
            write(out, value)

    return write_record


def _reader(schema: Any) -> _Read:
    """The function that reads a value at a position and returns it with the next position; it raises ValueError or IndexError."""
    match schema:
        case "int" | {"type": "int"}:
            return _read_int
        case "long" | {"type": "long"}:
            return _read_number
        case "bytes":
            return _read_bytes
        case "string":
            return _read_text
        case ["null", kind]:
            return _optional_reader(_reader(kind))
        case {"type": "array", "items": items}:
            return _array_reader(_reader(items))
        case {"type": "record", "fields": fields}:
            return _record_reader([_reader(field["type"]) for field in fields])
    raise InternalError(f"rows of the Avro type {schema!r} are not read one at a time")


def _read_number(data: bytes, place: int) -> tuple[int, int]:
    byte = data[place]
    place += 1
    value = byte & 0x7F
    shift = 7
    while byte >= _MORE:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    if value >> 64:
        raise _Unreadable("a number of more than 64 bits")
    return (value >> 1) ^ -(value & 1), place


def _read_int(data: bytes, place: int) -> tuple[int, int]:
    value, place = _read_number(data, place)
    if value not in _INT32:
        raise _Unreadable("a number of more than 32 bits")
    return value, place


def _read_bytes(data: bytes, place: int) -> tuple[bytes, int]:
    length, place = _read_number(data, place)
    end = place + length
    if length < 0 or end > len(data):
        raise _Unreadable("bytes beyond the end")
    return data[place:end], end


def _read_text(data: bytes, place: int) -> tuple[str, int]:
    value, place = _read_bytes(data, place)
    return value.decode(), place


def _optional_reader(read: _Read) -> _Read:
    def read_optional(data: bytes, place: int) -> tuple[Any, int]:
        branch, place = _read_number(data, place)
        if branch == 0:
            return None, place
        if branch != 1:
            raise _Unreadable("a branch that the union does not have")
        return read(data, place)

    return read_optional


def _array_reader(read: _Read) -> _Read:
    def read_array(data: bytes, place: int) -> tuple[tuple[Any, ...], int]:
        values: list[Any] = []
        while True:
            count, place = _read_number(data, place)
            if count == 0:
                return tuple(values), place
            if count < 0 or count > len(data):
                raise _Unreadable("an array in blocks with sizes, or too long")
            for _ in range(count):
                value, place = read(data, place)
                values.append(value)

    return read_array


def _record_reader(reads: Sequence[_Read]) -> _Read:
    def read_record(data: bytes, place: int) -> tuple[tuple[Any, ...], int]:
        values: list[Any] = []
        for read in reads:
            value, place = read(data, place)
            values.append(value)
        return tuple(values), place

    return read_record
