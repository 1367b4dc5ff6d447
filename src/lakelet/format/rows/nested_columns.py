"""Encode columns of nested types as bytes, so that a BinaryRow holds them like VARBINARY: for rows in write-ahead logs.

    ROW               a BinaryRow of its fields, its arity in front (binary_row); nested fields are bytes again
    ARRAY, MAP,       count      4          little-endian, as all numbers here
    MULTISET          ends       4 each     where each element ends, counted from the first one
                      elements              BinaryRows: of the element, or of key and value; a MULTISET's value is an INT

A NULL is the NULL of the column that holds the bytes. Columns are encoded and decoded as a whole, level by level.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakelet.errors import CorruptionError
from lakelet.format.rows.binary_row_columns import decode_rows, encode_rows
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.types import MAX_LENGTH, Array, Atomic, DataType, Kind, Map, Multiset, Row

Longs = NDArray[np.int64]
_BYTES = Atomic(Kind.VARBINARY, MAX_LENGTH)
_COUNT = Atomic(Kind.INT)
_NUMBER = np.dtype("<i4")


def stored_types(types: Sequence[DataType]) -> list[DataType]:
    """The types that columns have in a BinaryRow: nested ones are bytes."""
    return [one if isinstance(one, Atomic) else _BYTES for one in types]


def stored_columns(columns: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[DataType]) -> list[pa.Array]:
    """Columns in the types in which they are stored."""
    return [
        column if isinstance(one, Atomic) else _encoded(_whole(column), one)
        for column, one in zip(columns, types, strict=True)
    ]


def restored_columns(columns: Sequence[pa.Array], types: Sequence[DataType], *, where: str) -> list[pa.Array]:
    """Columns in their own types; CorruptionError for bytes that are none of their values."""
    return [
        column if isinstance(one, Atomic) else _decoded(column, one, where)
        for column, one in zip(columns, types, strict=True)
    ]


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _elements(data_type: DataType) -> list[DataType]:
    """The types of what an element of a collection is made of."""
    match data_type:
        case Array(element):
            return [element]
        case Multiset(element):
            return [element, _COUNT]
        case Map(key, value):
            return [key, value]
    raise AssertionError(f"{data_type} is no collection")


def _encoded(column: pa.Array, data_type: DataType) -> pa.Array:
    if column.type != to_arrow(data_type):
        column = column.cast(to_arrow(data_type))
    if isinstance(data_type, Row):
        types = [field.type for field in data_type.fields]
        rows = encode_rows(stored_columns(column.flatten(), types), stored_types(types))
        return pc.if_else(column.is_valid(), rows, pa.scalar(None, rows.type))
    # Taken anew, it begins at its first element and has none of a NULL.
    column = column.take(pa.array(np.arange(len(column))))
    offsets = np.frombuffer(column.buffers()[1] or b"\0\0\0\0", np.int32, len(column) + 1).astype(np.int64)
    parts = [column.values] if isinstance(data_type, Array) else [column.keys, column.items]
    parts = [part.slice(int(offsets[0]), int(offsets[-1] - offsets[0])) for part in parts]
    types = _elements(data_type)
    rows = encode_rows(stored_columns(parts, types), stored_types(types))
    return _collected(rows, offsets - offsets[0], column)


def _collected(rows: pa.Array, offsets: Longs, column: pa.Array) -> pa.Array:
    """The bytes of collections whose elements are encoded."""
    at, data = _spans(rows)
    counts = np.diff(offsets)
    begins = at[offsets[:-1]]
    sizes = at[offsets[1:]] - begins
    ends = np.cumsum(_NUMBER.itemsize * (1 + counts) + sizes)
    starts = np.concatenate([np.zeros(1, np.int64), ends])
    out = np.zeros(int(starts[-1]), np.uint8)
    _put_numbers(out, starts[:-1], counts)
    owner = np.repeat(np.arange(len(counts)), counts)
    nth = np.arange(len(owner)) - offsets[:-1][owner]
    _put_numbers(out, starts[:-1][owner] + _NUMBER.itemsize * (1 + nth), at[1:][: len(owner)] - begins[owner])
    target = starts[:-1] + _NUMBER.itemsize * (1 + counts)
    out[_places(target, sizes)] = data[int(at[0]) : int(at[-1])]
    validity = column.is_valid()
    made = pa.Array.from_buffers(pa.large_binary(), len(counts), [None, pa.py_buffer(starts), pa.py_buffer(out)])
    return pc.if_else(validity, made, pa.scalar(None, pa.large_binary())).cast(pa.binary())


def _decoded(column: pa.Array, data_type: DataType, where: str) -> pa.Array:
    wanted = to_arrow(data_type)
    if isinstance(data_type, Row):
        types = [field.type for field in data_type.fields]
        stored = decode_rows(column, stored_types(types), where=where)
        children = restored_columns(stored, types, where=where)
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=column.is_null())
    nulls = column.is_null().to_numpy(zero_copy_only=False)
    rows, counts = _parted(column, nulls, where)
    types = _elements(data_type)
    parts = restored_columns(decode_rows(rows, stored_types(types), where=where), types, where=where)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int32)
    places = pa.array(offsets, pa.int32(), mask=np.append(nulls, False))
    if isinstance(data_type, Array):
        return pa.ListArray.from_arrays(places, parts[0], type=wanted)
    if parts[0].null_count:
        raise CorruptionError(f"{where}: a value of type {data_type} has a NULL for a key")
    return pa.MapArray.from_arrays(places, *parts, type=wanted)


def _parted(column: pa.Array, nulls: NDArray[np.bool_], where: str) -> tuple[pa.Array, Longs]:
    """The encoded elements of all collections, one behind the other, and how many each has."""
    at, data = _spans(column)
    # A NULL has no bytes that count.
    sizes = np.where(nulls, 0, np.diff(at))
    begins, present = at[:-1], np.flatnonzero(~nulls)
    counts = np.zeros(len(column), np.int64)
    if (sizes[present] < _NUMBER.itemsize).any():
        raise CorruptionError(f"{where}: a nested value is shorter than its count")
    counts[present] = _numbers(data, begins[present])
    heads = _NUMBER.itemsize * (1 + counts)
    if (counts < 0).any() or (heads[present] > sizes[present]).any():
        raise CorruptionError(f"{where}: a nested value is shorter than its {counts.max()} elements")
    owner = np.repeat(np.arange(len(counts)), counts)
    firsts = np.cumsum(counts) - counts
    nth = np.arange(len(owner)) - firsts[owner]
    ends = _numbers(data, begins[owner] + _NUMBER.itemsize * (1 + nth))
    before = np.where(nth > 0, np.concatenate([np.zeros(min(1, len(ends)), np.int64), ends[:-1]]), 0)
    lengths = ends - before
    room = (sizes - heads)[owner]
    last = nth == counts[owner] - 1
    empty = (counts[present] == 0) & (sizes[present] != _NUMBER.itemsize)
    if (lengths < 0).any() or (ends > room).any() or (ends[last] != room[last]).any() or empty.any():
        raise CorruptionError(f"{where}: the elements of a nested value do not fill it")
    source = _places((begins + heads)[owner] + before, lengths)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data[source]))]
    return pa.Array.from_buffers(pa.large_binary(), len(owner), buffers).cast(pa.binary()), counts


def _spans(rows: pa.Array) -> tuple[Longs, NDArray[np.uint8]]:
    """Where each value begins, with the end of the last, and the bytes of all."""
    rows = rows.cast(pa.large_binary())
    if not len(rows):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    at = np.frombuffer(rows.buffers()[1], np.int64, len(rows) + 1, rows.offset * 8)
    buffer = rows.buffers()[2]
    return at, np.zeros(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)


def _places(begins: Longs, lengths: Longs) -> Longs:
    """The places of all bytes of spans."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    found: Longs = np.arange(total) + np.repeat(begins - (ends - lengths), lengths)
    return found


def _put_numbers(out: NDArray[np.uint8], at: Longs, numbers: Longs) -> None:
    encoded = np.ascontiguousarray(numbers.astype(_NUMBER)).view(np.uint8).reshape(-1, _NUMBER.itemsize)
    out[at[:, None] + np.arange(_NUMBER.itemsize)] = encoded


def _numbers(data: NDArray[np.uint8], at: Longs) -> Longs:
    taken = np.ascontiguousarray(data[at[:, None] + np.arange(_NUMBER.itemsize)])
    return taken.view(_NUMBER).reshape(-1).astype(np.int64)
