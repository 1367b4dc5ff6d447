"""Normalise Arrow arrays for transforms: one chunk, no dictionary, no view, no extension; and expose their bytes to numpy.

Arrays may be slices, and their buffers may begin anywhere, as those from Spark do: numpy gets aligned copies then.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_TYPES = pa.types


def over_plain(array: pa.Array | pa.ChunkedArray, function: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """A function of every single value, given the plain form of an array; a dictionary's values are computed once each."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            # More text than one array holds.
            return pa.concat_arrays([over_plain(chunk, function) for chunk in array.chunks])
    if isinstance(array, pa.ExtensionArray):
        return over_plain(array.storage, function)
    arrow = array.type
    if _TYPES.is_dictionary(arrow):
        return over_plain(array.dictionary, function).take(array.indices)
    if _TYPES.is_run_end_encoded(arrow):
        return over_plain(pc.run_end_decode(array), function)
    if _TYPES.is_string_view(arrow):
        return function(array.cast(pa.large_string()))
    if _TYPES.is_binary_view(arrow):
        return function(array.cast(pa.large_binary()))
    return function(array)


def integers(array: pa.Array) -> NDArray[np.int64]:
    """The integers that represent integers, dates, times and timestamps; arbitrary for NULL."""
    width = array.type.bit_width // 8
    kind = "u" if _TYPES.is_unsigned_integer(array.type) else "i"
    if not len(array):
        return np.empty(0, np.int64)
    found = np.frombuffer(array.buffers()[1], f"<{kind}{width}", len(array), array.offset * width)
    return np.require(found.astype(np.int64, copy=False), requirements=["A", "C"])


def limbs(array: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The upper and the lower half of every decimal128."""
    if not len(array):
        return np.empty(0, np.int64), np.empty(0, np.uint64)
    found = np.frombuffer(array.buffers()[1], "<u8", 2 * len(array), array.offset * 16).reshape(-1, 2)
    return np.ascontiguousarray(found[:, 1]).view(np.int64), np.ascontiguousarray(found[:, 0])


def byte_ranges(array: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """The bytes of a string or binary array: all bytes, and start and length of each value."""
    count = len(array)
    if not count:
        return np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64)
    if _TYPES.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        starts = (np.arange(count, dtype=np.int64) + array.offset) * width
        return _bytes_of(array.buffers()[1]), starts, np.full(count, width, np.int64)
    wide = _TYPES.is_large_string(array.type) or _TYPES.is_large_binary(array.type)
    width = 8 if wide else 4
    _, places, data = array.buffers()
    offsets = np.frombuffer(places, f"<i{width}", count + 1, array.offset * width)
    offsets = np.require(offsets.astype(np.int64, copy=False), requirements=["A", "C"])
    return _bytes_of(data), offsets[:-1].copy(), np.diff(offsets)


def with_nulls_of(array: pa.Array, values: NDArray[np.int64] | NDArray[np.int32], arrow: pa.DataType) -> pa.Array:
    """The numbers as an array of that type, NULL where the given array is."""
    mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    return pa.array(values, arrow, mask=mask)


def _bytes_of(buffer: pa.Buffer | None) -> NDArray[np.uint8]:
    if buffer is None or not buffer.size:
        return np.empty(0, np.uint8)
    return np.frombuffer(buffer, np.uint8)
