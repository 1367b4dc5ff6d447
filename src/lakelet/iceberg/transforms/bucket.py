"""bucket[N]: a hash of the value, without its sign, modulo N.

int, long, date, time, timestamps    eight little-endian bytes; timestamps in microseconds, also where they have nanoseconds
decimal                              the unscaled number, big-endian, in as few bytes as hold it
string                               UTF-8
uuid, fixed, binary                  the bytes
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyiceberg.types import DecimalType, IcebergType

from lakelet.iceberg.transforms.murmur import Bytes, Hashes, Indices, hash_bytes, hash_longs
from lakelet.iceberg.transforms.plain_array import byte_ranges, integers, limbs, with_nulls_of
from lakelet.iceberg.transforms.times import microseconds

_POSITIVE = 0x7FFFFFFF
_DECIMAL_BYTES = 16
_TYPES = pa.types


def bucket(array: pa.Array, source: IcebergType, count: int) -> pa.Array:
    """The bucket of every value."""
    positive = _hashes(array, source) & np.int32(_POSITIVE)
    return with_nulls_of(array, (positive.astype(np.int64) % count).astype(np.int32), pa.int32())


def _hashes(array: pa.Array, source: IcebergType) -> Hashes:
    arrow = array.type
    if isinstance(source, DecimalType):
        return hash_bytes(*_fewest_bytes(array.cast(pa.decimal128(source.precision, source.scale))))
    if _TYPES.is_timestamp(arrow) or _TYPES.is_time(arrow):
        return hash_longs(microseconds(array))
    if _TYPES.is_integer(arrow) or _TYPES.is_date(arrow):
        return hash_longs(integers(array.cast(pa.date32()) if _TYPES.is_date64(arrow) else array))
    return hash_bytes(*byte_ranges(array))


def _fewest_bytes(array: pa.Array) -> tuple[Bytes, Indices, Indices]:
    """The bytes of decimals, big-endian, and where the significant ones begin."""
    high, low = limbs(array)
    count = len(high)
    data = np.empty((count, 2), ">u8")
    data[:, 0], data[:, 1] = high.view(np.uint64), low
    # As many bytes as the number without its sign has bits, and one bit for the sign.
    sign = (high >> np.int64(63)).view(np.uint64)
    upper, lower = high.view(np.uint64) ^ sign, low ^ sign
    lengths = 1 + np.where(upper > 0, 8 + _full_bytes(upper), _full_bytes(lower))
    starts = np.arange(1, count + 1, dtype=np.int64) * _DECIMAL_BYTES - lengths
    return data.view(np.uint8).reshape(-1), starts, lengths


def _full_bytes(values: NDArray[np.uint64]) -> Indices:
    found = np.zeros(len(values), np.int64)
    for byte in range(8):
        found += values >= np.uint64(1 << (8 * byte + 7))
    return found
