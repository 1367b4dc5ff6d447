"""Values in order, in chunks, each of which is found by its first value: the dictionary of a `range-bitmap` file index.

    head length      int32
    version          int8     1
    chunks           int32
    offsets' length  int32
    heads' length    int32
    offsets          int32 of each chunk's head
    heads            version int8 1 | first value | its number int32 | offset in the values int32 | values after the first
                     int32, and of values of one width: their length int32 | width int32
                     of text: offsets' length int32 | values' length int32
    values           of each chunk those after the first; of text, int32 offsets of them before

Numbers are big-endian; a value is its number in the width of its type, or an int32 length and bytes. A chunk has as many
values after the first as fit the bytes that were set.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from lakelet.errors import CorruptionError
from lakelet.format.index.file.values import (
    WIDTHS,
    Numbers,
    float_bits,
    index_bytes,
    index_numbers,
    is_bytes,
    java_order,
)
from lakelet.model.types import FLOATS, Atomic, Kind

_VERSION = 1
_LENGTH = 4
_INT = struct.Struct(">i")
_HEAD = struct.Struct(">biii")
_TEXT_HEAD = struct.Struct(">iiiii")


def encode_dictionary(different: pa.Array, data_type: Atomic, chunk_bytes: int) -> tuple[bytes, bytes, bytes]:
    """The bytes of a dictionary of values in Java's order, of which there is one at least; and of the first and the last."""
    if is_bytes(data_type):
        return _encode_texts(different, chunk_bytes)
    return _encode_numbers(different.to_numpy(), WIDTHS.get(data_type.kind, 8), chunk_bytes)


def read_dictionary(data: bytes, data_type: Atomic, count: int, *, where: str) -> Dictionary:
    """The dictionary in these bytes, which has `count` values."""
    (length,) = _INT.unpack_from(data)
    version, chunks, offsets, heads = _HEAD.unpack_from(data, _INT.size)
    begin = _INT.size + length + offsets
    if version != _VERSION or chunks < 1 or offsets != chunks * _INT.size or not 0 <= heads <= len(data) - begin:
        raise CorruptionError(f"{where}: expected a dictionary of version 1, found {version} and {chunks} chunks")
    keys = data[begin + heads :]
    places = np.frombuffer(data, ">i4", chunks, begin - offsets).tolist()
    if is_bytes(data_type):
        return _read_texts(data[begin : begin + heads], places, keys, count, where)
    return _read_numbers(data[begin : begin + heads], places, keys, data_type, count, where)


@dataclass(frozen=True, slots=True)
class NumberDictionary:
    """Values of one width, as numbers that compare as Java compares the values."""

    type: Atomic
    ordered: Numbers

    def places(self, values: pa.Array, *, after: bool) -> Numbers:
        """Of each value, the number of the first that is not less, or `after`, that is greater."""
        wanted = java_order(index_numbers(values, self.type), self.type)
        return np.searchsorted(self.ordered, wanted, "right" if after else "left").astype(np.int64)


@dataclass(frozen=True, slots=True)
class TextChunk:
    """The values of a chunk after its first, which are decoded as they are looked at."""

    offsets: list[int]
    keys: bytes

    def __len__(self) -> int:
        return len(self.offsets)

    def __getitem__(self, place: int) -> bytes:
        return _text(self.keys, self.offsets[place])[0]


@dataclass(frozen=True, slots=True)
class TextDictionary:
    """Values of text: the first of each chunk, its number, and where the others lie."""

    firsts: list[bytes]
    numbers: list[int]
    # Offset, length of offsets, length of values.
    bodies: list[tuple[int, int, int]]
    keys: bytes
    where: str

    def places(self, values: pa.Array, *, after: bool) -> Numbers:
        """Of each value, the number of the first that is not less, or `after`, that is greater."""
        try:
            return np.array([self._place(one, after) for one in index_bytes(values).to_pylist()], np.int64)
        except (struct.error, IndexError, ValueError) as error:
            raise CorruptionError(f"{self.where} is no range-bitmap index: {error}") from error

    def _place(self, wanted: bytes, after: bool) -> int:
        chunk = bisect_right(self.firsts, wanted) - 1
        if chunk < 0:
            return 0
        if self.firsts[chunk] == wanted:
            return self.numbers[chunk] + after
        begin, offsets, length = self.bodies[chunk]
        middle = begin + offsets
        if not 0 <= begin <= middle <= middle + length <= len(self.keys):
            raise IndexError(f"a chunk at {begin} ends behind the values")
        found = TextChunk(
            np.frombuffer(self.keys, ">i4", offsets // _INT.size, begin).tolist(), self.keys[middle : middle + length]
        )
        return self.numbers[chunk] + 1 + (bisect_right if after else bisect_left)(found, wanted)


Dictionary = NumberDictionary | TextDictionary


def _encode_numbers(numbers: Numbers, width: int, chunk_bytes: int) -> tuple[bytes, bytes, bytes]:
    step = 1 + chunk_bytes // width
    written = numbers.astype(f">i{width}")
    firsts = np.arange(0, len(numbers), step)
    rest = np.minimum(step - 1, len(numbers) - firsts - 1)
    heads = np.zeros(len(firsts), _number_head(width))
    heads["version"], heads["key"], heads["number"] = _VERSION, written[firsts], firsts
    heads["offset"], heads["size"] = (np.cumsum(rest) - rest) * width, rest
    heads["length"], heads["width"] = rest * width, width
    keys = np.delete(written, firsts).tobytes()
    offsets = np.arange(len(firsts)) * heads.dtype.itemsize
    data = _joined(offsets, heads.tobytes(), keys)
    return data, written[:1].tobytes(), written[-1:].tobytes()


def _encode_texts(values: pa.Array, chunk_bytes: int) -> tuple[bytes, bytes, bytes]:
    data, starts = written_texts(values)
    heads, bodies, offsets = [], [], []
    at = body = first = 0
    while first < len(values):
        # Lengths are a part of the values, so that the offsets of those that fit do as well.
        end = max(first + 1, int(np.searchsorted(starts, starts[first + 1] + chunk_bytes, "right")) - 1)
        begin = starts[first + 1]
        places = (starts[first + 1 : end] - begin).astype(">i4").tobytes()
        keys = data[begin : starts[end]]
        key = data[starts[first] : begin]
        head = bytes([_VERSION]) + key + _TEXT_HEAD.pack(first, body, end - first - 1, len(places), len(keys))
        heads.append(head)
        bodies += [places, keys]
        offsets.append(at)
        at += len(head)
        body += len(places) + len(keys)
        first = end
    encoded = _joined(np.array(offsets), b"".join(heads), b"".join(bodies))
    return encoded, data[: starts[1]], data[starts[-2] :]


def _joined(offsets: Numbers, heads: bytes, keys: bytes) -> bytes:
    places = offsets.astype(">i4").tobytes()
    head = _HEAD.pack(_VERSION, len(offsets), len(places), len(heads))
    return b"".join([_INT.pack(len(head)), head, places, heads, keys])


def written_texts(values: pa.Array) -> tuple[bytes, Numbers]:
    """The values as they are written one after the other, and where each begins and the last ends."""
    _, places, content = values.cast(pa.large_binary()).buffers()
    ends = np.frombuffer(places, np.int64, len(values) + 1, 8 * values.offset)
    lengths = np.diff(ends)
    starts = ends - ends[0] + _LENGTH * np.arange(len(ends))
    written = np.empty(int(starts[-1]), np.uint8)
    numbers = (starts[:-1, None] + np.arange(_LENGTH)).ravel()
    is_text = np.ones(len(written), np.bool_)
    is_text[numbers] = False
    written[numbers] = lengths.astype(">i4").view(np.uint8)
    if ends[-1] > ends[0]:
        written[is_text] = np.frombuffer(content, np.uint8, int(ends[-1] - ends[0]), int(ends[0]))
    return written.tobytes(), starts


def _number_head(width: int) -> np.dtype[np.void]:
    names = ("number", "offset", "size", "length", "width")
    return np.dtype([("version", "i1"), ("key", f">i{width}"), *((name, ">i4") for name in names)])


def _read_numbers(
    data: bytes, places: list[int], keys: bytes, data_type: Atomic, count: int, where: str
) -> NumberDictionary:
    width = WIDTHS.get(data_type.kind, 8)
    heads = np.frombuffer(data, _number_head(width), len(places))
    sizes = heads["size"].astype(np.int64)
    firsts = np.cumsum(sizes + 1) - sizes - 1
    regular = (
        (heads["version"] == _VERSION).all()
        and (np.array(places) == np.arange(len(heads)) * heads.dtype.itemsize).all()
        and (sizes >= 0).all()
        and (heads["number"] == firsts).all()
        and (heads["offset"] == (np.cumsum(sizes) - sizes) * width).all()
        and sizes.sum() + len(heads) == count
    )
    if not regular:
        raise CorruptionError(f"{where}: the chunks of a dictionary do not hold {count} values one after another")
    numbers = np.empty(count, f">i{width}")
    is_first = np.zeros(count, np.bool_)
    is_first[firsts] = True
    numbers[is_first] = heads["key"]
    numbers[~is_first] = np.frombuffer(keys, f">i{width}", count - len(heads))
    ordered = java_order(_numbers(numbers, data_type), data_type)
    if (ordered[1:] <= ordered[:-1]).any():
        raise CorruptionError(f"{where}: the values of a dictionary are out of order")
    return NumberDictionary(data_type, ordered)


def _numbers(written: np.ndarray[tuple[int], np.dtype[np.signedinteger]], data_type: Atomic) -> Numbers:
    if data_type.kind not in FLOATS:
        return written.astype(np.int64)
    single = data_type.kind is Kind.FLOAT
    return float_bits(written.astype(np.int32 if single else np.int64).view(np.float32 if single else np.float64))


def _read_texts(data: bytes, places: list[int], keys: bytes, count: int, where: str) -> TextDictionary:
    firsts, numbers, bodies = [], [], []
    total = 0
    for place in places:
        first, at = _text(data, place + 1)
        number, offset, size, offsets, length = _TEXT_HEAD.unpack_from(data, at)
        if data[place] != _VERSION or number != total or size < 0 or offsets != size * _INT.size or length < 0:
            raise CorruptionError(f"{where}: a chunk of a dictionary has {size} values at {number}, expected {total}")
        firsts.append(first)
        numbers.append(number)
        bodies.append((offset, offsets, length))
        total += size + 1
    if total != count or any(one >= other for one, other in pairwise(firsts)):
        raise CorruptionError(f"{where}: a dictionary has {total} values, expected {count} in order")
    return TextDictionary(firsts, numbers, bodies, keys, where)


def _text(data: bytes, at: int) -> tuple[bytes, int]:
    if at < 0:
        raise IndexError(f"a value cannot begin at {at}")
    (length,) = _INT.unpack_from(data, at)
    end = at + _INT.size + length
    if length < 0 or end > len(data):
        raise IndexError(f"a value of {length} bytes at {at} ends behind it")
    return data[at + _INT.size : end], end
