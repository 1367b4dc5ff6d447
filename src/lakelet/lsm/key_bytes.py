"""Encode keys as order-preserving bytes that are the same in every call: for memory, logs and lookup files.

`key_words` narrows keys to what one merge needs, and its words compare only with words of the same call. These bytes are
context-free: one key has one form, two keys compare as their bytes do, unsigned, the shorter of two that agree first. The
order is that of `key_words`, which is Paimon's.

    column 1 | column 2 | ...

    BOOLEAN                                                  1 byte
    TINYINT, SMALLINT                                        1, 2 bytes, big-endian, the sign bit inverted
    INT, DATE, TIME                                          4 bytes, the same
    BIGINT, TIMESTAMP, DECIMAL(p <= 18)                      8 bytes, the same; a decimal by its unscaled value
    DECIMAL(p > 18)                                          16 bytes, the same
    FLOAT, DOUBLE                                            4, 8 bytes in the order of Float.compare: -0.0 < 0.0, NaN greatest
    CHAR, VARCHAR, BINARY, VARBINARY in the last column      the bytes
    ... in another column                                    the bytes, 00 as 00 FF, and 00 00 behind them
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.types import BINARIES, FLOATS, STRINGS, Atomic, DataType, Kind

_WIDE_DECIMAL = 18
_END = pa.scalar(b"\x00\x00", pa.large_binary())
_NOTHING = pa.scalar(b"", pa.large_binary())


def encode_key_bytes(columns: Sequence[pa.Array], types: Sequence[DataType]) -> pa.Array:
    """The bytes of each row's key, as `large_binary`. InvalidError for a NULL, and for a type that no key has."""
    parts: list[pa.Array | pa.Scalar] = []
    for place, (column, data_type) in enumerate(zip(columns, types, strict=True)):
        if not isinstance(data_type, Atomic):
            raise InvalidError(f"key column {place}: rows are not compared by a column of type {data_type}")
        if column.null_count:
            row = pc.index(pc.is_null(column), True).as_py()
            raise InvalidError(f"key column {place} holds NULL in row {row}; keys are never NULL")
        if data_type.kind in (*STRINGS, *BINARIES):
            text = column.cast(pa.large_binary())
            if place < len(types) - 1:
                parts += [pc.replace_substring(text, b"\x00", b"\x00\xff"), _END]
            else:
                parts.append(text)
        else:
            parts.append(_fixed(column.cast(to_arrow(data_type)), data_type))
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, _NOTHING)


def _fixed(column: pa.Array, data_type: Atomic) -> pa.Array:
    """The bytes of a column whose values all take the same number of them."""
    kind, count = data_type.kind, len(column)
    if kind is Kind.BOOLEAN:
        return _as_binary(column.cast(pa.uint8()).to_numpy(zero_copy_only=False).reshape(-1, 1))
    if kind is Kind.DECIMAL:
        halves = np.frombuffer(column.buffers()[1] or b"", "<i8")[
            column.offset * 2 : (column.offset + count) * 2
        ].reshape(-1, 2)
        low = halves[:, 0]
        if data_type.precision <= _WIDE_DECIMAL:
            return _as_binary(_signed(low))
        return _as_binary(np.hstack([_signed(halves[:, 1]), _big_endian(low)]))
    width = column.type.bit_width // 8
    form = f"{'f' if kind in FLOATS else 'i'}{width}"
    values = np.frombuffer(column.buffers()[1] or b"", f"<{form}")[column.offset : column.offset + count]
    if kind not in FLOATS:
        return _as_binary(_signed(values))
    bits = np.where(np.isnan(values), np.array(np.nan, values.dtype), values).view(f"<i{width}")
    return _as_binary(_big_endian(np.where(bits < 0, ~bits, bits ^ np.iinfo(bits.dtype).min)))


def _signed(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    whole: NDArray[np.int64] = values  # type: ignore[assignment]
    return _big_endian(whole ^ np.iinfo(whole.dtype).min)


def _big_endian(values: NDArray[np.int64]) -> NDArray[np.uint8]:
    width = values.dtype.itemsize
    return np.ascontiguousarray(values.astype(f">i{width}")).view(np.uint8).reshape(-1, width)


def _as_binary(rows: NDArray[np.uint8]) -> pa.Array:
    count, width = rows.shape
    data = pa.py_buffer(np.ascontiguousarray(rows, np.uint8))
    return pa.Array.from_buffers(pa.binary(width), count, [None, data]).cast(pa.large_binary())
