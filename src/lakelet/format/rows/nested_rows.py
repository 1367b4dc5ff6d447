"""BinaryRow bodies with nested rows and arrays, for file metadata that is sent between processes.

`binary_row` knows the flat rows of manifests; here a field may also be a row or an array. A body without the arity, as
drawn there, whose tail then also has

    row         its body                                            slot: offset << 32 | length
    array       int32 count, little-endian                          slot: offset << 32 | length
                one NULL bit per element, in words of 4 bytes
                8 bytes per element, like the slots of a row
                what does not fit, offsets from the array's start

each piece filled up with zeros to 8 bytes. All numbers in bodies are little-endian. What is read is checked against the bounds
of its row: bytes that cannot be one are a `CorruptionError`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.rows.binary_row import INLINE_BYTES, header_bytes

T = TypeVar("T")

_SLOT = 8
_KIND_BITS = 8
_INLINE_MARK = 0x80
_WORD_BITS = 32
_LONG = struct.Struct("<q")
_INT = struct.Struct("<i4x")
_BYTE = struct.Struct("<b7x")
_COUNT = struct.Struct("<i")


@dataclass(frozen=True, slots=True)
class Cell:
    """An encoded field: the bytes of its slot, or `data` for the tail; NULL has neither."""

    slot: bytes | None = None
    data: bytes | None = None


NULL = Cell()


def long_cell(value: int | None) -> Cell:
    """A BIGINT, or a TIMESTAMP(3) as milliseconds."""
    return NULL if value is None else Cell(_packed(_LONG, value))


def int_cell(value: int) -> Cell:
    """An INT."""
    return Cell(_packed(_INT, value))


def byte_cell(value: int | None) -> Cell:
    """A TINYINT."""
    return NULL if value is None else Cell(_packed(_BYTE, value))


def bytes_cell(value: bytes | None) -> Cell:
    """Bytes, in the slot where they fit."""
    if value is None:
        return NULL
    if len(value) <= INLINE_BYTES:
        return Cell(value.ljust(INLINE_BYTES, b"\0") + bytes([_INLINE_MARK | len(value)]))
    return Cell(data=value)


def text_cell(value: str | None) -> Cell:
    """Text, like its UTF-8 bytes."""
    return NULL if value is None else bytes_cell(value.encode())


def nested_cell(body: bytes | None) -> Cell:
    """A row or an array that is encoded already."""
    return NULL if body is None else Cell(data=body)


def encode_body(cells: Sequence[Cell]) -> bytes:
    """The body of a row of these fields."""
    return _assembled(bytearray(header_bytes(len(cells))), _KIND_BITS, cells)


def encode_array(cells: Sequence[Cell]) -> bytes:
    """An array of these elements, all of 8 bytes."""
    head = bytearray(_COUNT.size + _array_nulls(len(cells)))
    _COUNT.pack_into(head, 0, len(cells))
    return _assembled(head, _COUNT.size * 8, cells)


def _assembled(head: bytearray, first_bit: int, cells: Sequence[Cell]) -> bytes:
    slots: list[bytes] = []
    tail: list[bytes] = []
    fixed = _padded(len(head) + _SLOT * len(cells))
    offset = fixed
    for index, cell in enumerate(cells):
        if cell.data is not None:
            slots.append(_LONG.pack(offset << 32 | len(cell.data)))
            tail.append(cell.data.ljust(_padded(len(cell.data)), b"\0"))
            offset += len(tail[-1])
            continue
        if cell.slot is None:
            bit = first_bit + index
            head[bit // 8] |= 1 << bit % 8
        slots.append(cell.slot or bytes(_SLOT))
    return b"".join((head, *slots)).ljust(fixed, b"\0") + b"".join(tail)


def _packed(form: struct.Struct, value: int) -> bytes:
    try:
        return form.pack(value)
    except struct.error as error:
        raise InvalidError(f"{value!r} does not fit a field of {form.size} bytes: {error}") from error


def _array_nulls(count: int) -> int:
    return (count + _WORD_BITS - 1) // _WORD_BITS * 4


def _padded(length: int) -> int:
    return length + -length % _SLOT


class Fields:
    """The fields of a body, or the elements of an array; `where` names the place in errors."""

    def __init__(self, data: bytes, start: int, count: int, first_bit: int, where: str) -> None:
        self.where = where
        self._data = data
        self._start = start
        self._count = count
        self._first_bit = first_bit
        if len(data) < start + _SLOT * count:
            raise CorruptionError(f"{where}: {count} fields cannot be {len(data)} bytes long")

    @staticmethod
    def of_body(data: bytes, arity: int, *, where: str) -> Fields:
        """The fields of a row."""
        return Fields(data, header_bytes(arity), arity, _KIND_BITS, where)

    @staticmethod
    def of_array(data: bytes, *, where: str) -> Fields:
        """The elements of an array."""
        if len(data) < _COUNT.size:
            raise CorruptionError(f"{where}: an array cannot be {len(data)} bytes long")
        count = int(_COUNT.unpack_from(data)[0])
        if not 0 <= count <= len(data) // _SLOT:
            raise CorruptionError(f"{where}: an array of {len(data)} bytes cannot have {count} elements")
        return Fields(data, _COUNT.size + _array_nulls(count), count, _COUNT.size * 8, where)

    def __len__(self) -> int:
        return self._count

    def is_null(self, index: int) -> bool:
        """Whether the field is NULL."""
        bit = self._first_bit + index
        return bool(self._data[bit // 8] >> bit % 8 & 1)

    def long_at(self, index: int) -> int:
        """A BIGINT or TIMESTAMP(3)."""
        return int(_LONG.unpack_from(self._data, self._start + _SLOT * index)[0])

    def int_at(self, index: int) -> int:
        """An INT."""
        return int(_INT.unpack_from(self._data, self._start + _SLOT * index)[0])

    def byte_at(self, index: int) -> int:
        """A TINYINT."""
        return int(_BYTE.unpack_from(self._data, self._start + _SLOT * index)[0])

    def bytes_at(self, index: int) -> bytes:
        """Bytes, from the slot or the tail."""
        at = self._start + _SLOT * index
        mark = self._data[at + INLINE_BYTES]
        if not mark & _INLINE_MARK:
            return self.nested_at(index)
        length = mark & ~_INLINE_MARK
        if length > INLINE_BYTES:
            raise CorruptionError(f"{self.where}: field {index} claims {length} bytes in a slot of {_SLOT}")
        return self._data[at : at + length]

    def text_at(self, index: int) -> str:
        """Text."""
        try:
            return self.bytes_at(index).decode()
        except UnicodeDecodeError as error:
            raise CorruptionError(f"{self.where}: field {index} is no text: {error}") from error

    def nested_at(self, index: int) -> bytes:
        """The bytes of a row or an array."""
        slot = self.long_at(index)
        offset, length = slot >> 32, slot & 0xFFFFFFFF
        if offset < 0 or offset + length > len(self._data):
            raise CorruptionError(
                f"{self.where}: field {index} claims {length} bytes at {offset} of a row of {len(self._data)}"
            )
        return self._data[offset : offset + length]

    def optional(self, read: Callable[[int], T], index: int) -> T | None:
        """What `read` gives, None where the field is NULL."""
        return None if self.is_null(index) else read(index)
