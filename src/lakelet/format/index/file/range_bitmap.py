"""The values of a column in order and the number of each row's value in slices of bits, Paimon's `range-bitmap` file index.

    head length        int32
    version            int8     1
    rows               int32
    values             int32    different ones, NULL not counted
    least, greatest    a value each, only where there are values
    dictionary length  int32
    dictionary         all values in order, see dictionary.py
    slices             head length int32 | version int8 1 | slices int8 | bitmap length int32 | places' length int32
                       | places: offset int32 and length int32 of each slice | a Roaring bitmap of the rows that are not
                       NULL | of each bit of numbers the Roaring bitmap of the rows whose value's number has it

Numbers are big-endian. A column without any value has 64 slices in Java, in which Java finds two rows that are NULL alone:
such an index is left to the container, which says that there is no value.

A file is left out by its dictionary alone, for every value in it is that of a row; the slices are there for Java.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakelet.errors import CorruptionError
from lakelet.format.index.deletion_vectors import decode_bitmap, encode_bitmap
from lakelet.format.index.file.collected import CollectedValues, Part
from lakelet.format.index.file.dictionary import Dictionary, encode_dictionary, read_dictionary
from lakelet.format.index.file.values import WIDTHS, Numbers
from lakelet.model.types import FLOATS, STRINGS, TIMESTAMPS, Atomic, DataType, Kind

NAME = "range-bitmap"
DEFAULT_CHUNK_BYTES = 16 * 1024
# Types with few values have each of them for itself.
_UNCHUNKED = (Kind.BOOLEAN, Kind.TINYINT, Kind.SMALLINT)
_MOST_DIGITS = 18
_MOST_TIMESTAMP_DIGITS = 6
_VERSION = 1
_INT = struct.Struct(">i")
_HEAD = struct.Struct(">bii")
_SLICES = struct.Struct(">bbii")


def has_range_bitmap(data_type: DataType) -> bool:
    """Whether the index takes the type."""
    if not isinstance(data_type, Atomic):
        return False
    if data_type.kind is Kind.DECIMAL:
        return data_type.precision <= _MOST_DIGITS
    if data_type.kind in TIMESTAMPS:
        return data_type.precision <= _MOST_TIMESTAMP_DIGITS
    return data_type.kind in WIDTHS or data_type.kind in STRINGS


def default_chunk_bytes(data_type: Atomic) -> int:
    """The bytes of values in a chunk of the dictionary unless they are set."""
    return 0 if data_type.kind in _UNCHUNKED else DEFAULT_CHUNK_BYTES


class RangeBitmapWriter:
    """Collects the values of one column of one file."""

    def __init__(self, data_type: Atomic, chunk_bytes: int) -> None:
        self._type = data_type
        self._chunk_bytes = chunk_bytes
        self._collected = CollectedValues(data_type)

    def update(self, values: pa.Array) -> None:
        """Takes values, NULLs too."""
        self._collected.update(values)

    def finish(self) -> bytes | None:
        """The bytes of the index; None where there is no value."""
        different, parts = self._collected.ordered()
        if not len(different):
            return None
        dictionary, least, greatest = encode_dictionary(different, self._type, self._chunk_bytes)
        head = _HEAD.pack(_VERSION, self._collected.rows, len(different)) + least + greatest
        head += _INT.pack(len(dictionary))
        return _INT.pack(len(head)) + head + dictionary + self._slices(len(different), parts)

    def _slices(self, count: int, parts: Sequence[Part]) -> bytes:
        numbers = self._collected.numbers(parts)
        there = encode_bitmap(np.flatnonzero(numbers >= 0))
        np.maximum(numbers, 0, out=numbers)
        bits = max((count - 1).bit_length(), 1)
        slices = [encode_bitmap(np.flatnonzero(numbers & (1 << bit))) for bit in range(bits)]
        lengths = np.array([len(one) for one in slices], np.int64)
        listed = np.stack([np.cumsum(lengths) - lengths, lengths], axis=1).astype(">i4").tobytes()
        head = _SLICES.pack(_VERSION, bits, len(there), len(listed)) + listed
        return b"".join([_INT.pack(len(head)), head, there, *slices])


@dataclass(frozen=True, slots=True)
class RangeBitmapIndex:
    """An index that was read: the values of a column, by their numbers in order."""

    data: bytes
    type: Atomic
    where: str
    rows: int
    count: int
    values: Dictionary | None
    slices: int

    @staticmethod
    def of(data: bytes | None, data_type: Atomic, *, where: str) -> RangeBitmapIndex:
        """The index in these bytes; without any, of a column that is NULL."""
        if data is None:
            return RangeBitmapIndex(b"", data_type, where, 0, 0, None, 0)
        try:
            (length,) = _INT.unpack_from(data)
            version, rows, count = _HEAD.unpack_from(data, _INT.size)
            if version != _VERSION or rows < 0 or count < 0:
                raise CorruptionError(f"{where}: expected a range-bitmap index of version 1, found {version}")
            at = _INT.size + length
            (dictionary,) = _INT.unpack_from(data, at - _INT.size)
            if not 0 <= dictionary <= len(data) - at:
                raise CorruptionError(f"{where}: a dictionary of {dictionary} bytes does not fit the index")
            values = read_dictionary(data[at : at + dictionary], data_type, count, where=where) if count else None
            return RangeBitmapIndex(data, data_type, where, rows, count, values, at + dictionary)
        except (struct.error, IndexError, ValueError) as error:
            raise CorruptionError(f"{where} is no range-bitmap index: {error}") from error

    def bounds(self, values: pa.Array) -> tuple[Numbers, Numbers]:
        """Of each value, none of which is NULL: the number of the first that is not less, and of the first that is greater."""
        if self.values is None:
            return np.zeros(len(values), np.int64), np.zeros(len(values), np.int64)
        if self.type.kind not in FLOATS:
            return self.values.places(values, after=False), self.values.places(values, after=True)
        # Both zeros are equal in the table.
        plain = values.to_numpy(zero_copy_only=False)
        zero = plain.dtype.type(0)
        least, most = (pa.array(np.where(plain == zero, one, plain), values.type) for one in (-zero, zero))
        return self.values.places(least, after=False), self.values.places(most, after=True)

    def has_null(self) -> bool:
        """Whether a row is NULL."""
        if self.values is None:
            return True
        try:
            (length,) = _INT.unpack_from(self.data, self.slices)
            _, _, size, _ = _SLICES.unpack_from(self.data, self.slices + _INT.size)
            begin = self.slices + _INT.size + length
            return len(decode_bitmap(self.data[begin : begin + size], path=self.where)) < self.rows
        except struct.error as error:
            raise CorruptionError(f"{self.where} is no range-bitmap index: {error}") from error
