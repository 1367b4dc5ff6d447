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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.index.deletion_vectors import encode_bitmap
from lakelet.format.index.file.collected import CollectedValues, Numbers32
from lakelet.format.index.file.dictionary import written_texts
from lakelet.format.index.file.values import WIDTHS, Numbers, index_bytes, index_numbers, is_bytes, is_rounded
from lakelet.format.index.many_bitmaps import encode_bitmaps
from lakelet.model.types import FLOATS, STRINGS, TIMESTAMPS, Atomic, DataType, Kind

NAME = "bitmap"
DEFAULT_BLOCK_BYTES = 16 * 1024
_VERSION = 2
_INT = struct.Struct(">i")
_PAIR = struct.Struct(">ii")
_MOST_BYTES = 2**31 - 1


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
        different, parts = self._collected.ordered()
        nulls = self._collected.null_rows()
        head = [bytes([_VERSION]), _PAIR.pack(self._collected.rows, len(different)), bytes([len(nulls) > 0])]
        of_nulls = b""
        if len(nulls):
            bitmap = encode_bitmap(nulls)
            head.append(_PAIR.pack(-1 - int(nulls[0]) if len(nulls) == 1 else 0, len(bitmap)))
            of_nulls = bitmap if len(nulls) > 1 else b""
        places, bitmaps = _placed(self._collected.numbers(parts), len(different), len(of_nulls))
        values, value_ends = _written(different, self._type)
        entries = _joined(values, value_ends, places.astype(">i4").view(np.uint8))
        ends = value_ends + _PAIR.size * np.arange(1, len(value_ends) + 1)
        blocks = list(_blocks(ends, self._block_bytes))
        head.append(_INT.pack(len(blocks)))
        offset = 0
        body: list[bytes] = []
        for first, last in blocks:
            begin = int(ends[first - 1]) if first else 0
            head += [entries[begin : int(ends[first]) - _PAIR.size], _INT.pack(offset)]
            body += [_INT.pack(last - first), entries[begin : int(ends[last - 1])]]
            offset += len(body[-1]) + _INT.size
        return b"".join([*head, _INT.pack(offset), *body, of_nulls, bitmaps])


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
        """Whether the file may have a value that is none of these."""
        if is_rounded(self.type):
            # A value that is listed stands for others as well.
            return self.count > 0
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


def _placed(numbers: Numbers32, count: int, at: int) -> tuple[Numbers, bytes]:
    """Of each value the offset and the length of its bitmap, or the row that alone has it, and the bitmaps, which begin at `at`.

    `numbers` are those of the rows' values.
    """
    there = np.flatnonzero(numbers >= 0)
    rows = there[np.argsort(numbers[there], kind="stable")]
    counts = np.bincount(numbers[there], minlength=count)
    starts = np.cumsum(counts) - counts
    is_lone = counts == 1
    several = counts[~is_lone]
    bitmaps, ends = encode_bitmaps(rows[np.repeat(~is_lone, counts)], np.cumsum(several) - several)
    if at + len(bitmaps) > _MOST_BYTES:
        raise InvalidError(
            f"the bitmaps of {count} values take {at + len(bitmaps)} bytes, an index at most {_MOST_BYTES}"
        )
    sizes = np.diff(ends, prepend=0)
    places = np.empty((count, 2), np.int64)
    places[is_lone, 0], places[is_lone, 1] = -1 - rows[starts[is_lone]], -1
    places[~is_lone, 0], places[~is_lone, 1] = at + ends - sizes, sizes
    return places, bitmaps.tobytes()


def _joined(values: NDArray[np.uint8], ends: Numbers, places: NDArray[np.uint8]) -> bytes:
    """Values one after the other, each with the eight bytes of its place behind it."""
    starts = ends + _PAIR.size * np.arange(len(ends))
    joined = np.empty(len(values) + places.size, np.uint8)
    is_place = np.zeros(len(joined), np.bool_)
    is_place[(starts[:, None] + np.arange(_PAIR.size)).ravel()] = True
    joined[is_place], joined[~is_place] = places.ravel(), values
    return joined.tobytes()


def _blocks(ends: Numbers, limit: int) -> Iterator[tuple[int, int]]:
    """The first entry of each block of up to `limit` bytes, of one entry at least, and the one behind its last."""
    first = 0
    while first < len(ends):
        begin = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, begin + limit - _INT.size, side="right")))
        yield first, last
        first = last


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


def _written(values: pa.Array, data_type: Atomic) -> tuple[NDArray[np.uint8], Numbers]:
    """The values as they are written one after the other, and where each ends."""
    if is_bytes(data_type):
        data, starts = written_texts(values)
        return np.frombuffer(data, np.uint8), starts[1:]
    width = _width(data_type)
    written = values.to_numpy().astype(f">i{width}").view(np.uint8)
    return written, width * np.arange(1, len(values) + 1)


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
