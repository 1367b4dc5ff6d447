"""The bytes of a key column's value without Arrow: the twin of `lsm/key_bytes` for one key of Python's own values.

Only a value that needs no cast is encoded: a whole number in its range, a boolean, text and bytes without a limit of their own.
Anything else is left to the columns, and so is every error.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lakelet.model.types import MAX_LENGTH, Atomic, DataType, Kind

INTEGER_BYTES = {Kind.TINYINT: 1, Kind.SMALLINT: 2, Kind.INT: 4, Kind.BIGINT: 8}

PlainKey = Callable[[Any], bytes | None]
"""The bytes of a value; None where it needs a cast or is none of the type."""
PlainKeys = Callable[[list[Any]], tuple[bytes, NDArray[np.int64]] | None]
"""The bytes of values one behind the other, and where each begins and the last ends; None where one needs a cast."""


def plain_key(data_type: DataType, *, is_last: bool) -> PlainKey | None:
    """The encoder of a key column, or None for its type. The bytes depend on whether another column follows."""
    if not isinstance(data_type, Atomic):
        return None
    if data_type.kind in INTEGER_BYTES:
        return _whole(INTEGER_BYTES[data_type.kind])
    if data_type.kind is Kind.BOOLEAN:
        return _boolean
    if data_type.precision != MAX_LENGTH:
        return None
    if data_type.kind is Kind.VARCHAR:
        return _last_text if is_last else _text
    if data_type.kind is Kind.VARBINARY:
        return _last_bytes if is_last else _bytes
    return None


def plain_keys(data_type: DataType) -> PlainKeys | None:
    """The encoder of many values of a key of one column, or None for its type."""
    encode = plain_key(data_type, is_last=True)
    if encode is None:
        return None
    if isinstance(data_type, Atomic) and data_type.kind in INTEGER_BYTES:
        return _whole_numbers(INTEGER_BYTES[data_type.kind])
    if isinstance(data_type, Atomic) and data_type.kind is Kind.VARCHAR:
        return _last_texts
    return lambda values: _joined([encode(value) for value in values])


def _whole_numbers(size: int) -> PlainKeys:
    half = 1 << 8 * size - 1

    def encode(values: list[Any]) -> tuple[bytes, NDArray[np.int64]] | None:
        # A boolean is no whole number here, though Python says so.
        if set(map(type, values)) != {int} or min(values) < -half or max(values) >= half:
            return None
        words = np.array(values, np.int64).astype(f">i{size}").view(np.uint8).reshape(-1, size)
        words[:, 0] ^= 128
        return words.tobytes(), np.arange(len(values) + 1, dtype=np.int64) * size

    return encode


def _last_texts(values: list[Any]) -> tuple[bytes, NDArray[np.int64]] | None:
    if set(map(type, values)) != {str}:
        return None
    text = "".join(values)
    if text.isascii():
        return text.encode(), _offsets(list(map(len, values)))
    return _joined([_last_text(value) for value in values])


def _joined(encoded: list[bytes | None]) -> tuple[bytes, NDArray[np.int64]] | None:
    parts = [one for one in encoded if one is not None]
    return (b"".join(parts), _offsets(list(map(len, parts)))) if len(parts) == len(encoded) else None


def _offsets(sizes: list[int]) -> NDArray[np.int64]:
    return np.fromiter(accumulate(sizes, initial=0), np.int64, len(sizes) + 1)


def _whole(size: int) -> PlainKey:
    half = 1 << 8 * size - 1

    def encode(value: Any) -> bytes | None:
        return (value + half).to_bytes(size, "big") if type(value) is int and -half <= value < half else None

    return encode


def _boolean(value: Any) -> bytes | None:
    return (b"\x01" if value else b"\x00") if type(value) is bool else None


def _last_text(value: Any) -> bytes | None:
    if type(value) is not str:
        return None
    try:
        return value.encode()
    except UnicodeEncodeError:
        return None


def _text(value: Any) -> bytes | None:
    encoded = _last_text(value)
    return None if encoded is None else _bytes(encoded)


def _last_bytes(value: Any) -> bytes | None:
    return value if type(value) is bytes else None


def _bytes(value: Any) -> bytes | None:
    return value.replace(b"\x00", b"\x00\xff") + b"\x00\x00" if type(value) is bytes else None
