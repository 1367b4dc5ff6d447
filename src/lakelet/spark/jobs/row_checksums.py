"""Hash rows to 64-bit numbers: equal rows have equal hashes, whatever file or batch they came in.

Arrow columns in, 64-bit hashes out; reads no file. A hash is made by mixing (the finalizer of splitmix64), so that
any change of a value changes about half of its bits:

    whole numbers, times, DATE      the value, sign-extended to 64 bits
    FLOAT, DOUBLE                   the bits as DOUBLE; every NaN is the same one, -0.0 and 0.0 differ
    DECIMAL                         both halves of the unscaled value
    text, bytes                     words of 8 bytes, each mixed with its position, and the length
    ARRAY                           elements mixed with their positions, and their number
    MAP, MULTISET                   pairs of key and value in any order, and their number
    ROW                             fields mixed with their names and types
    NULL                            a number of its own, at every depth

A column is mixed with its name and type, so that a value in another column or of another type has another hash.
A row is mixed once more after its columns are summed, so that swapping values between rows changes the checksum.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.model.types import Array, Atomic, DataType, Field, Map, Multiset, Row

Numbers = NDArray[np.uint64]
_NULL = np.uint64(0x9E6C63D0676A9A99)
_LENGTH = np.uint64(0xD1B54A32D192ED03)
_PLACE = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)
_WORD = 8
# Bytes that are kept of a value's last word, by how many there are.
_KEEP = np.array([(1 << 8 * count) - 1 for count in range(_WORD)] + [(1 << 64) - 1], np.uint64)


def row_numbers(batch: pa.RecordBatch, fields: Sequence[Field]) -> Numbers:
    """The hash of each row of a batch whose columns are these fields."""
    total = np.zeros(batch.num_rows, np.uint64)
    for field, column in zip(fields, batch.columns, strict=True):
        total += _named(column, field)
    return mixed(total)


def mixed(numbers: Numbers) -> Numbers:
    """Mixes the bits of each number (splitmix64's finalizer, a bijection)."""
    numbers = numbers + _PLACE
    numbers = (numbers ^ numbers >> _S30) * _MIX1
    numbers = (numbers ^ numbers >> _S27) * _MIX2
    return numbers ^ numbers >> _S31


def type_text(data_type: DataType) -> str:
    """The type's text without nullability and field ids."""
    match data_type:
        case Atomic():
            return str(replace(data_type, nullable=True))
        case Array(element):
            return f"ARRAY<{type_text(element)}>"
        case Multiset(element):
            return f"MULTISET<{type_text(element)}>"
        case Map(key, value):
            return f"MAP<{type_text(key)},{type_text(value)}>"
        case Row(fields):
            return f"ROW<{','.join(f'{field.name!r}:{type_text(field.type)}' for field in fields)}>"


def _named(array: pa.Array, field: Field) -> Numbers:
    name = f"{field.name!r}:{type_text(field.type)}".encode()
    seed = np.uint64(int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "little"))
    return mixed(_numbers(array, field.type) ^ seed)


def _numbers(array: pa.Array, data_type: DataType) -> Numbers:
    """The hash of each value, NULLs included."""
    match data_type:
        case Row(fields):
            found = np.zeros(len(array), np.uint64)
            for place, field in enumerate(fields):
                found += _named(array.field(place), field)
            found = mixed(found)
        case Array(element):
            offsets, values = _inside(array, array.values)
            own = _numbers(values, element)
            places = np.arange(len(own), dtype=np.uint64) - np.repeat(offsets[:-1], np.diff(offsets)).astype(np.uint64)
            found = _gathered(mixed(own + places * _PLACE), offsets)
        case Map(key, value):
            found = _map_numbers(array, key, value)
        case Multiset(element):
            found = _map_numbers(array, element, None)
        case Atomic():
            found = _atomic_numbers(array)
    if array.null_count:
        found[array.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return found


def _map_numbers(array: pa.MapArray, key: DataType, value: DataType | None) -> Numbers:
    offsets, keys = _inside(array, array.keys)
    _, items = _inside(array, array.items)
    values = _atomic_numbers(items) if value is None else _numbers(items, value)
    if value is None and items.null_count:
        values[items.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return _gathered(mixed(mixed(_numbers(keys, key)) + values), offsets)


def _inside(array: pa.Array, values: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """Where the elements of each list begin and end, and the elements of all."""
    if not len(array):
        return np.zeros(1, np.int64), values.slice(0, 0)
    offsets = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, array.offset * 4).astype(np.int64)
    return offsets - offsets[0], values.slice(offsets[0], offsets[-1] - offsets[0])


def _gathered(numbers: Numbers, offsets: NDArray[np.int64]) -> Numbers:
    """The sum of the element hashes of each list, mixed with its length."""
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(numbers, dtype=np.uint64)])
    return mixed(sums[offsets[1:]] - sums[offsets[:-1]] + np.diff(offsets).astype(np.uint64) * _LENGTH)


def _atomic_numbers(array: pa.Array) -> Numbers:
    """The hash of each value; arbitrary for NULLs."""
    kind = array.type
    if not len(array):
        return np.empty(0, np.uint64)
    if pa.types.is_boolean(kind):
        flags: Numbers = array.fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint64)
        return flags
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _bytes_numbers(array)
    if pa.types.is_decimal128(kind):
        halves = np.frombuffer(array.buffers()[1], np.uint64, 2 * len(array), array.offset * 16)
        return mixed(mixed(halves[1::2]) + halves[::2])
    if pa.types.is_floating(kind):
        bits = np.float32 if kind.bit_width == 32 else np.float64
        values = np.frombuffer(array.buffers()[1], bits, len(array), array.offset * (kind.bit_width // 8))
        with np.errstate(invalid="ignore"):
            doubles = values.astype(np.float64)
        doubles[np.isnan(doubles)] = np.nan
        return doubles.view(np.uint64)
    width = kind.bit_width // 8
    return (
        np.frombuffer(array.buffers()[1], f"<i{width}", len(array), array.offset * width)
        .astype(np.int64)
        .view(np.uint64)
    )


def _bytes_numbers(array: pa.Array) -> Numbers:
    offsets = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, array.offset * 4).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    data = array.buffers()[2]
    stored = np.zeros(last - first + _WORD, np.uint8)
    if data is not None and last > first:
        stored[: last - first] = np.frombuffer(data, np.uint8, last - first, first)
    starts, lengths = offsets[:-1] - first, np.diff(offsets)
    counts = (lengths + (_WORD - 1)) // _WORD
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    place = np.arange(ends[-1]) - np.repeat(ends[:-1], counts)
    # A word is read at every byte offset of the buffer.
    words = np.ndarray((len(stored) - _WORD + 1,), "<u8", stored.data, strides=(1,))
    found = words[np.repeat(starts, counts) + place * _WORD]
    found = found & _KEEP[np.minimum(np.repeat(lengths, counts) - place * _WORD, _WORD)]
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed(found + mixed(place.astype(np.uint64))))])
    return mixed(sums[ends[1:]] - sums[ends[:-1]] + lengths.astype(np.uint64) * _LENGTH)
