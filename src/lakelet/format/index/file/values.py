"""The values of indexed columns as Paimon's file indexes see them: whole numbers of 64 bits, or bytes.

    TINYINT … BIGINT      the number               TIMESTAMP(0..3)   milliseconds since 1970
    DATE, TIME            days, milliseconds       TIMESTAMP(4..9)   microseconds since 1970, rounded down
    FLOAT, DOUBLE         the bits, one NaN        CHAR … VARBINARY  the bytes
    DECIMAL(..18)         the unscaled number

A floating-point zero has two of them, though its values are equal: what is looked for has to be looked for as both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.model.types import BINARIES, FLOATS, INTEGERS, STRINGS, TIMESTAMPS, Atomic, DataType, Kind

Numbers = NDArray[np.int64]
# Bytes of a value in the indexes that keep values, of the types that all have as many.
WIDTHS = {
    Kind.BOOLEAN: 1,
    Kind.TINYINT: 1,
    Kind.SMALLINT: 2,
    Kind.INT: 4,
    Kind.DATE: 4,
    Kind.TIME: 4,
    Kind.FLOAT: 4,
    Kind.BIGINT: 8,
    Kind.DOUBLE: 8,
}
_MILLIS_PRECISION, _MICROS_PRECISION = 3, 6
_HASHED = (*INTEGERS, *FLOATS, *STRINGS, *BINARIES, *TIMESTAMPS, Kind.DATE, Kind.TIME)


def is_hashed(data_type: DataType) -> bool:
    """Whether a bloom filter takes the type."""
    return isinstance(data_type, Atomic) and data_type.kind in _HASHED


def is_bytes(data_type: Atomic) -> bool:
    """Whether values are indexed as bytes."""
    return data_type.kind in STRINGS or data_type.kind in BINARIES


def is_rounded(data_type: Atomic) -> bool:
    """Whether several values have one number in an index."""
    return data_type.kind in TIMESTAMPS and data_type.precision > _MICROS_PRECISION


def index_numbers(values: pa.Array, data_type: Atomic) -> Numbers:
    """The numbers of a column's values, none of which is NULL."""
    kind = data_type.kind
    if kind is Kind.BOOLEAN:
        values = values.cast(pa.int8())
    if kind in FLOATS:
        return float_bits(values.to_numpy(zero_copy_only=False))
    if kind is Kind.DECIMAL:
        return _unscaled(values)
    if kind in TIMESTAMPS:
        unit = "ms" if data_type.precision <= _MILLIS_PRECISION else "us"
        return _in_unit(values, unit)
    if kind is Kind.TIME:
        values = values.cast(pa.time32("ms"), safe=False)
    if kind in (Kind.TIME, Kind.DATE):
        values = values.cast(pa.int32())
    numbers: Numbers = values.cast(pa.int64()).to_numpy()
    return numbers


def index_bytes(values: pa.Array) -> pa.Array:
    """The bytes of a column's values, none of which is NULL."""
    return values.cast(pa.binary())


def java_order(numbers: Numbers, data_type: Atomic) -> Numbers:
    """Numbers that compare as Java compares the values of these: floating-point numbers by sign and size, NaN above all."""
    if data_type.kind not in FLOATS:
        return numbers
    lowest = np.int64(-(2**31) if data_type.kind is Kind.FLOAT else -(2**63))
    return np.where(numbers >= 0, numbers, lowest - (numbers + 1))


def looked_for(value: pa.Scalar) -> pa.Array:
    """The values that equal one and may be indexed apart from it."""
    if pa.types.is_floating(value.type) and value.as_py() == 0.0:
        return pa.array([0.0, -0.0], value.type)
    return pa.array([value.as_py()], value.type) if not pa.types.is_timestamp(value.type) else _alone(value)


def _alone(value: pa.Scalar) -> pa.Array:
    return pa.array([value.cast(pa.timestamp(value.type.unit)).value], pa.int64()).cast(value.type)


def _unscaled(values: pa.Array) -> Numbers:
    """The lower halves of 128 bits, which hold all of 18 digits."""
    if not len(values):
        return np.empty(0, np.int64)
    halves = np.frombuffer(values.buffers()[1], np.int64, 2 * len(values), 16 * values.offset)
    numbers: Numbers = halves[::2].copy()
    return numbers


def _in_unit(values: pa.Array, unit: str) -> Numbers:
    per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    numbers: Numbers = values.cast(pa.int64()).to_numpy()
    have, want = per[values.type.unit], per[unit]
    return numbers * (want // have) if want >= have else numbers // (have // want)


def float_bits(values: NDArray[Any]) -> Numbers:
    """The bits of floating-point numbers as Java's `floatToIntBits` gives them, of 32 bits with their sign extended."""
    bits = values.view(np.int32 if values.dtype == np.float32 else np.int64).astype(np.int64)
    nans = np.isnan(values)
    if nans.any():
        bits[nans] = 0x7FC00000 if values.dtype == np.float32 else 0x7FF8000000000000
    return bits
