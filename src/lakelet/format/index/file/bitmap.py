"""Bitmaps of the rows of each value of a column, Paimon's `bitmap` file index, version 2.

    version          int8     2
    rows             int32
    values           int32    different ones, NULL not counted
    has NULL         int8
    NULL offset      int32    only with NULL: in the bitmaps, or -1 - row where one row alone is NULL
    NULL length      int32    only with NULL
    blocks           int32, each: its first value, and its offset in the blocks int32
    blocks' length   int32
    blocks           each: entries int32, each: value | offset int32, -1 - row where one row alone has it | length int32, else -1
    bitmaps          Roaring bitmaps of row numbers

Numbers are big-endian; a value is its number in the width of its type, or an int32 length and bytes. Values are in Java's
order: text by its bytes, -0.0 before 0.0, NaN last. Version 1, which is read as well, has no NULL length and no blocks: value
and offset of each value.

A file is left out by its list of values alone; no bitmap is decoded.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lakelet.errors import CorruptionError
from lakelet.format.index.deletion_vectors import encode_bitmap
from lakelet.format.index.file.collected import CollectedValues
from lakelet.format.index.file.values import WIDTHS, Numbers, index_bytes, index_numbers, is_bytes
from lakelet.model.types import FLOATS, STRINGS, TIMESTAMPS, Atomic, DataType, Kind

NAME = "bitmap"
DEFAULT_BLOCK_BYTES = 16 * 1024
_VERSION = 2
_INT = struct.Struct(">i")
_PAIR = struct.Struct(">ii")


def has_bitmap(data_type: DataType) -> bool:
    """Whether the index takes the type."""
    return isinstance(data_type, Atomic) and (data_type.kind in WIDTHS or data_type.kind in (*STRINGS, *TIMESTAMPS))


class BitmapWriter:
    """Collects the values of one column of one file."""

    def __init__(self, data_type: Atomic, block_bytes: int) -> None:
        self._type = data_type
        self._block_bytes = block_bytes
        self._collected = CollectedValues(data_type)

    def update(self, values: pa.Array) -> None:
        """Takes values, NULLs too."""
        self._collected.update(values)

    def finish(self) -> bytes:
        """The bytes of the index."""
        values, rows = self._grouped()
        nulls = self._collected.null_rows()
        body: list[bytes] = []
        at = 0
        head = [bytes([_VERSION]), _PAIR.pack(self._collected.rows, len(rows)), bytes([len(nulls) > 0])]
        if len(nulls):
            bitmap = encode_bitmap(nulls)
            head.append(_PAIR.pack(-1 - int(nulls[0]) if len(nulls) == 1 else 0, len(bitmap)))
            if len(nulls) > 1:
                body.append(bitmap)
                at = len(bitmap)
        entries: list[bytes] = []
        for value, group in zip(values, rows, strict=True):
            if len(group) == 1:
                entries.append(value + _PAIR.pack(-1 - int(group[0]), -1))
                continue
            bitmap = encode_bitmap(group)
            entries.append(value + _PAIR.pack(at, len(bitmap)))
            body.append(bitmap)
            at += len(bitmap)
        blocks = list(_blocks(values, entries, self._block_bytes))
        head.append(_INT.pack(len(blocks)))
        offset = 0
        for first, data in blocks:
            head += [first, _INT.pack(offset)]
            offset += len(data)
        return b"".join([*head, _INT.pack(offset), *(data for _, data in blocks), *body])

    def _grouped(self) -> tuple[list[bytes], list[Numbers]]:
        """The values in Java's order, as they are written, and the rows of each."""
        different, parts = self._collected.ordered()
        groups: list[list[Numbers]] = [[] for _ in range(len(different))]
        for part in parts:
            by_code = np.argsort(part.codes, kind="stable")
            bounds = np.searchsorted(part.codes[by_code], np.arange(len(part.places) + 1))
            for code, target in enumerate(part.places.tolist()):
                groups[target].append(by_code[bounds[code] : bounds[code + 1]] + part.begin)
        return _written(different, self._type), [np.concatenate(group) for group in groups]


@dataclass(frozen=True, slots=True)
class BitmapIndex:
    """The values of a column that an index lists, as far as it was looked into."""

    data: bytes
    type: Atomic
    where: str
    has_null: bool
    count: int
    # Where the entries of version 1 begin; the first values and places of the blocks of version 2.
    entries: int
    blocks: tuple[tuple[object, int], ...]

    @staticmethod
    def of(data: bytes, data_type: Atomic, *, where: str) -> BitmapIndex:
        """The index in these bytes."""
        try:
            version = data[0]
            if version not in (1, _VERSION):
                raise CorruptionError(f"{where}: expected a bitmap index of version 1 or 2, found {version}")
            _, count = _PAIR.unpack_from(data, 1)
            has_null = bool(data[9])
            at = 10 + (0 if not has_null else 4 if version == 1 else 8)
            if version == 1:
                return BitmapIndex(data, data_type, where, has_null, count, at, ())
            (number,) = _INT.unpack_from(data, at)
            at += 4
            firsts: list[tuple[object, int]] = []
            for _ in range(number):
                value, at = _read_value(data, at, data_type)
                firsts.append((value, _INT.unpack_from(data, at)[0]))
                at += 4
            return BitmapIndex(
                data, data_type, where, has_null, count, -1, tuple((value, at + 4 + place) for value, place in firsts)
            )
        except (struct.error, IndexError) as error:
            raise CorruptionError(f"{where} is no bitmap index: {error}") from error

    def may_hold(self, values: pa.Array) -> bool:
        """Whether any of the values, of which none is NULL, is among those of the file."""
        return any(self._lists(value) for value in _keys(values, self.type))

    def may_hold_others(self, values: pa.Array) -> bool:
        """Whether the file has a value that is none of these."""
        return self.count > sum(map(self._lists, set(_keys(values, self.type))))

    def _lists(self, wanted: object) -> bool:
        try:
            if self.entries >= 0:
                return wanted in self._run(self.entries, self.count, 4)
            order = _orderable(self.type)
            place = bisect_right(self.blocks, order(wanted), key=lambda block: order(block[0])) - 1
            if place < 0:
                return False
            begin = self.blocks[place][1]
            return wanted in self._run(begin + 4, _INT.unpack_from(self.data, begin)[0], 8)
        except (struct.error, IndexError) as error:
            raise CorruptionError(f"{self.where} is no bitmap index: {error}") from error

    def _run(self, at: int, count: int, beside: int) -> Iterator[object]:
        for _ in range(count):
            value, at = _read_value(self.data, at, self.type)
            at += beside
            yield value


def _blocks(values: Sequence[bytes], entries: Sequence[bytes], limit: int) -> Iterator[tuple[bytes, bytes]]:
    """Blocks of up to `limit` bytes, of one entry at least, each with its first value."""
    begin = 0
    while begin < len(entries):
        end, size = begin, 4
        while end < len(entries) and (end == begin or size + len(entries[end]) <= limit):
            size += len(entries[end])
            end += 1
        yield values[begin], _INT.pack(end - begin) + b"".join(entries[begin:end])
        begin = end


def _keys(values: pa.Array, data_type: Atomic) -> list[object]:
    found: list[object] = (
        index_bytes(values).to_pylist() if is_bytes(data_type) else index_numbers(values, data_type).tolist()
    )
    return found


def _orderable(data_type: Atomic) -> Callable[[Any], Any]:
    """What makes a value compare as in Java: bits of floating-point numbers by sign and size, the one NaN above all."""
    if data_type.kind not in FLOATS:
        return lambda value: value
    lowest = -(2**31) if data_type.kind is Kind.FLOAT else -(2**63)
    return lambda bits: bits if bits >= 0 else lowest - bits - 1


def _width(data_type: Atomic) -> int:
    return WIDTHS.get(data_type.kind, 8)


def _written(values: pa.Array, data_type: Atomic) -> list[bytes]:
    if is_bytes(data_type):
        return [_INT.pack(len(value)) + value for value in values.to_pylist()]
    width = _width(data_type)
    return [value.to_bytes(width, "big", signed=True) for value in values.to_pylist()]


def _read_value(data: bytes, at: int, data_type: Atomic) -> tuple[object, int]:
    if is_bytes(data_type):
        (length,) = _INT.unpack_from(data, at)
        end = at + 4 + length
        if length < 0 or end > len(data):
            raise IndexError(f"a value of {length} bytes at {at} ends behind it")
        return data[at + 4 : end], end
    end = at + _width(data_type)
    if end > len(data):
        raise IndexError(f"a value at {at} ends behind it")
    return int.from_bytes(data[at:end], "big", signed=True), end
