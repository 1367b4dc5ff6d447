"""truncate[W]: numbers down to a multiple of W, text to its first W code points, bytes to the first W.

A number so close to the minimum of its type that the multiple below it overflows is refused: other engines let it wrap around
to a large one, under which the row is not found again.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import DecimalType, IcebergType, IntegerType

from lakelet.errors import InvalidError
from lakelet.iceberg.transforms.plain_array import integers, limbs, with_nulls_of

_TYPES = pa.types
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


def truncate(array: pa.Array, source: IcebergType, width: int) -> pa.Array:
    """The truncated values."""
    arrow = array.type
    if isinstance(source, DecimalType):
        return _decimals(array.cast(pa.decimal128(source.precision, source.scale)), source, width)
    if _TYPES.is_integer(arrow):
        return _integers(array, source, width)
    if _TYPES.is_string(arrow) or _TYPES.is_large_string(arrow):
        return pc.utf8_slice_codeunits(array, 0, width)
    return pc.binary_slice(array, 0, width)


def _integers(array: pa.Array, source: IcebergType, width: int) -> pa.Array:
    values = integers(array)
    narrow = isinstance(source, IntegerType)
    lowest = np.iinfo(np.int32 if narrow else np.int64).min
    rest = np.mod(values, np.int64(width))
    _check(array, values < lowest + rest, source, width)
    found = values - rest
    return with_nulls_of(array, found.astype(np.int32) if narrow else found, pa.int32() if narrow else pa.int64())


def _decimals(array: pa.Array, source: DecimalType, width: int) -> pa.Array:
    """By long division of four 32-bit digits; W has fewer bits than one of them."""
    high, low = limbs(array)
    divisor = np.uint64(width)
    rest = np.zeros(len(low), np.uint64)
    for half in (high.view(np.uint64), low):
        for digit in (half >> _HALF, half & _LOW):
            rest = (rest << _HALF | digit) % divisor
    # A negative number was read as one that is greater by 2^128.
    surplus = np.uint64(pow(2, 128, width))
    rest = np.where(high < 0, (rest + divisor - surplus) % divisor, rest)
    upper = high - (low < rest)
    found = np.empty((len(low), 2), np.uint64)
    found[:, 0], found[:, 1] = low - rest, upper.view(np.uint64)
    # As few as the type's digits hold: the multiple below may need one more.
    lowest = (1 << 128) - (10**source.precision - 1)
    least = np.array([lowest >> 64], np.uint64).view(np.int64)[0], np.uint64(lowest & (1 << 64) - 1)
    outside = (upper < least[0]) | ((upper == least[0]) & (found[:, 0] < least[1]))
    _check(array, outside, source, width)
    validity = None
    if array.null_count:
        validity = pa.array(array.is_valid().to_numpy(zero_copy_only=False)).buffers()[1]
    arrow = pa.decimal128(source.precision, source.scale)
    return pa.Array.from_buffers(arrow, len(low), [validity, pa.py_buffer(found.tobytes())])


def _check(
    array: pa.Array, outside: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], source: IcebergType, width: int
) -> None:
    if not outside.any():
        return
    if array.null_count:
        outside = outside & array.is_valid().to_numpy(zero_copy_only=False)
    if outside.any():
        value = array[int(np.flatnonzero(outside)[0])].as_py()
        raise InvalidError(f"truncate[{width}] of {value} is less than {source} can hold")
