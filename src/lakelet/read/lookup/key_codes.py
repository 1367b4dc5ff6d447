"""Encode keys as order-preserving numbers or fixed-width byte strings, for binary searches in cached blocks.

Other than the words of a merge, which only compare with words of the same call, codes are made once for a block of rows or a list
of key ranges; the codes of any keys that come later, made in the same widths, can be searched for among them.

    one column of whole numbers     the numbers themselves
    anything else                   per column, one after the other, big-endian:
      BOOLEAN                       1 byte
      whole numbers, DATE, TIME     1, 2, 4 or 8 bytes as the type has, the sign bit inverted
      TIMESTAMP, DECIMAL(p <= 18)   8 bytes, the sign bit inverted
      DECIMAL(p > 18)               16 bytes, the sign bit inverted
      FLOAT, DOUBLE                 8 bytes that compare like Double.compare: -0.0 < 0.0, NaN greatest
      text, bytes                   the bytes, zeros up to the longest

Codes never contradict the order of keys but different keys may share one: text is cut after CUT_BYTES, or after the longest that
the coder was made for, and zeros at its end vanish. The columns behind such a text in a code are all ones, for it is greater
than the text with the same code. Where a list of keys has such texts, keys with equal codes are compared themselves; elsewhere
codes tell all keys apart, and the keys need not be kept beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakelet.model.types import BINARIES, FLOATS, STRINGS, Atomic, DataType, Kind

Codes = NDArray[Any]
"""int64 or byte strings (dtype S), which numpy compares and searches alike."""
CUT_BYTES = 256
_SIGN = np.int64(-(2**63))
_WHOLE = {Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ}
_WIDE_DECIMAL = 18
_WIDTHS = {Kind.BOOLEAN: 1, Kind.TINYINT: 1, Kind.SMALLINT: 2, Kind.INT: 4, Kind.DATE: 4, Kind.TIME: 4}


@dataclass(frozen=True, slots=True)
class KeyCoder:
    """The encoder of keys to codes: the types of the key, and the width in bytes of each column in a code.

    Without widths the key is a whole number and its own code. There may be fewer types than the key has columns.
    """

    types: tuple[DataType, ...]
    widths: tuple[int, ...] | None

    @staticmethod
    def of(columns: Sequence[pa.Array], types: Sequence[DataType]) -> KeyCoder:
        """The coder whose codes are wide enough for these keys."""
        if len(types) == 1 and _is_whole(types[0]):
            return KeyCoder(tuple(types), None)
        widths = [
            min(max(_longest(column), 1), CUT_BYTES) if _is_text(data_type) else _fixed_width(data_type)
            for column, data_type in zip(columns, types, strict=True)
        ]
        return KeyCoder(tuple(types), tuple(widths))

    def past(self, columns: Sequence[pa.Array]) -> NDArray[np.bool_] | None:
        """Which keys are greater than their codes say, of as many columns as the coder has; None where none is."""
        found: NDArray[np.bool_] | None = None
        for column, data_type, width in zip(columns, self.types, self.widths or (), strict=False):
            if _is_text(data_type):
                mask = _over(column, width)
                if mask.any():
                    found = mask if found is None else found | mask
        return found

    def encode(self, columns: Sequence[pa.Array]) -> Codes:
        """The codes of keys, which may be others than those that the coder was made for, and have more columns."""
        if self.widths is None:
            return _whole(columns[0])
        if len(self.widths) == 1 and _is_text(self.types[0]):
            # Nothing follows, so that cut text needs no mark. Text of one length is not copied.
            return _padded(columns[0], self.widths[0]).view(f"S{self.widths[0]}")[:, 0]
        rows = np.zeros((len(columns[0]), sum(self.widths)), np.uint8)
        past = np.zeros(len(rows), np.bool_)
        at = 0
        for column, data_type, width in zip(columns, self.types, self.widths, strict=False):
            target = rows[:, at : at + width]
            over: NDArray[np.bool_] | None = None
            if _is_text(data_type):
                over = _put_text(target, column)
            else:
                target[:] = _fixed(column, data_type)
            if past.any():
                target[past] = 0xFF
            if over is not None:
                # Such a text is greater than all others that look the same, whatever follows.
                past |= over
            at += width
        return np.ascontiguousarray(rows).view(f"S{rows.shape[1]}")[:, 0]


def _is_whole(data_type: DataType) -> bool:
    return isinstance(data_type, Atomic) and data_type.kind in _WHOLE


def _is_text(data_type: DataType) -> bool:
    return isinstance(data_type, Atomic) and (data_type.kind in STRINGS or data_type.kind in BINARIES)


def is_bitwise(data_type: DataType) -> bool:
    """Whether keys that are equal have the same bits: of floats any NaN equals any other."""
    return _is_whole(data_type) or _is_text(data_type)


class SingleKey:
    """One key, split into its columns once, for its codes in any widths; the twin of `KeyCoder.encode` for a single row."""

    __slots__ = ("_number", "_parts", "columns", "types")

    def __init__(self, columns: Sequence[pa.Array], types: Sequence[DataType]) -> None:
        self.columns = tuple(columns)
        self.types = tuple(types)
        self._number = int(_whole(columns[0])[0]) if _is_whole(types[0]) else 0
        self._parts = tuple(
            column[0].as_buffer().to_pybytes() if _is_text(data_type) else _fixed(column, data_type).tobytes()
            for column, data_type in zip(columns, types, strict=True)
        )

    def code(self, coder: KeyCoder) -> int | bytes:
        """The code, which numpy compares with those that the coder has made."""
        if coder.widths is None:
            return self._number
        parts: list[bytes] = []
        past = False
        for part, data_type, width in zip(self._parts, coder.types, coder.widths, strict=False):
            parts.append(b"\xff" * width if past else part[:width].ljust(width, b"\0"))
            past = past or (_is_text(data_type) and _looks_smaller(part, width))
        # Zeros at the end vanish in numpy's byte strings.
        return b"".join(parts).rstrip(b"\0")

    def is_past(self, coder: KeyCoder) -> bool:
        """Whether the key is greater than its code says."""
        return any(
            _is_text(data_type) and _looks_smaller(part, width)
            for part, data_type, width in zip(self._parts, coder.types, coder.widths or (), strict=False)
        )


def _looks_smaller(text: bytes, width: int) -> bool:
    """Whether a text is greater than its part of a code: it is cut there, or ends in zeros."""
    return len(text) > width or text.endswith(b"\0")


def _fixed_width(data_type: DataType) -> int:
    assert isinstance(data_type, Atomic)
    if data_type.kind in _WIDTHS:
        return _WIDTHS[data_type.kind]
    return 16 if data_type.kind is Kind.DECIMAL and data_type.precision > _WIDE_DECIMAL else 8


def _whole(column: pa.Array) -> NDArray[np.int64]:
    width = column.type.bit_width
    plain = column.view(pa.int32() if width == 32 else pa.int64()) if width >= 32 else column
    found: NDArray[np.int64] = plain.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return found


def _fixed(column: pa.Array, data_type: DataType) -> NDArray[np.uint8]:
    assert isinstance(data_type, Atomic)
    if data_type.kind is Kind.BOOLEAN:
        flags: NDArray[np.uint8] = column.cast(pa.uint8()).to_numpy(zero_copy_only=False)
        return flags.reshape(-1, 1)
    if data_type.kind is Kind.DECIMAL:
        halves = np.frombuffer(column.buffers()[1], "<i8", 2 * len(column), column.offset * 16).reshape(-1, 2)
        if data_type.precision <= _WIDE_DECIMAL:
            return _big_endian(halves[:, 0] ^ _SIGN)
        return np.hstack([_big_endian(halves[:, 1] ^ _SIGN), _big_endian(halves[:, 0])])
    if data_type.kind in FLOATS:
        numbers = column.cast(pa.float64()).to_numpy(zero_copy_only=False).copy()
        numbers[np.isnan(numbers)] = np.nan
        bits = numbers.view(np.int64)
        return _big_endian(np.where(bits < 0, ~bits, bits ^ _SIGN))
    width = _fixed_width(data_type)
    if width == 8:
        return _big_endian(_whole(column) ^ _SIGN)
    shifted = _whole(column) + (1 << (8 * width - 1))
    return np.ascontiguousarray(shifted.astype(f">u{width}")).view(np.uint8).reshape(-1, width)


def _big_endian(values: NDArray[np.int64]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(values.astype(">i8")).view(np.uint8).reshape(-1, 8)


def _longest(column: pa.Array) -> int:
    return int(pc.max(pc.binary_length(column)).as_py() or 0)


def _parts(column: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    _, offset_buffer, data_buffer = column.buffers()
    offsets = np.frombuffer(offset_buffer, "<i4", len(column) + 1, column.offset * 4)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    return offsets, data


def _padded(column: pa.Array, width: int) -> NDArray[np.uint8]:
    """Text cut or filled up with zeros to one width, a row each; a view, if it has that width already."""
    if not len(column):
        return np.empty((0, width), np.uint8)
    lengths = np.diff(_parts(column)[0])
    if lengths.max() > width:
        column = pc.binary_slice(column.cast(pa.binary()), 0, width)
    if lengths.min() < width:
        # Padding counts bytes whatever the type says, as comparing does.
        column = pc.ascii_rpad(column.view(pa.string()), width, padding="\0")
    offsets, data = _parts(column)
    return data[offsets[0] : offsets[-1]].reshape(-1, width)


def _put_text(target: NDArray[np.uint8], column: pa.Array) -> NDArray[np.bool_]:
    """Writes text, cut or filled up; says which texts are greater than they look: cut ones, and those that end in zeros."""
    width = target.shape[1]
    target[:] = _padded(column, width)
    return _over(column, width)


def _over(column: pa.Array, width: int) -> NDArray[np.bool_]:
    offsets, data = _parts(column)
    lengths = np.diff(offsets)
    if not len(data):
        return np.zeros(len(lengths), np.bool_)
    over: NDArray[np.bool_] = (lengths > width) | ((data[np.maximum(offsets[1:] - 1, 0)] == 0) & (lengths > 0))
    return over
