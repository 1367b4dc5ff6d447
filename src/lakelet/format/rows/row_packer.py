"""Pack rows of Python values into BinaryRows by one `struct` a row, nested ones included: for rows that come one by one.

    ROW      a BinaryRow of its fields, its arity in front
    ARRAY    count, ends of the elements, each element a BinaryRow of one field; numbers of 4 bytes, little-endian

The bytes are those of `binary_row`, `binary_row_columns` and `nested_columns`. Only values that need no cast are packed: whole
numbers in their range, booleans, floats that are numbers, texts and bytes without a limit of their own, dates, moments in UTC,
lists, and mappings that name all fields of a row. Anything else is a `NotPlainError`, and is left to the columns, as is every
error. A row takes a sixth of the time that `encode_row` takes, which looks at the type of each value anew.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from lakelet.format.rows.binary_row import INLINE_BYTES, header_bytes
from lakelet.model.types import MAX_LENGTH, Array, Atomic, DataType, Field, Kind, Row

_MICROSECONDS = 6
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = _EPOCH.toordinal()
_SLOT = 8
_INLINE = [(0x80 | size) << 56 for size in range(INLINE_BYTES + 1)]
_ZEROS = [bytes(size) for size in range(_SLOT)]
_MILLISECONDS = struct.Struct("<q")


class NotPlainError(Exception):
    """A value that needs a cast, or is none of its type."""


# How a value becomes a slot. Plain numbers, for members of an Enum take several times as long to look up, once a value.
_NUMBER, _TEXT, _BYTES, _NESTED, _MOMENT, _DATE = range(6)

Nested = Callable[[Any], bytes]


@dataclass(frozen=True, slots=True)
class _Column:
    """How values of a type are packed: the one type that they have in Python, and the format of their slot, where NULL is 0."""

    shape: int
    python_type: type
    slot: str = "Q"
    nested: Nested | None = None


class RowPacker:
    """Packs rows of some fields; `of` gives None where one of them is of another type."""

    def __init__(self, fields: Sequence[Field], columns: Sequence[_Column]) -> None:
        places = range(len(columns))
        self._columns: list[tuple[str, int, int, Any, Nested | None]] = [
            (field.name, 1 << place, one.shape, one.python_type, one.nested)
            for place, field, one in zip(places, fields, columns, strict=True)
        ]
        self._required = sum(1 << place for place in places if not fields[place].type.nullable)
        self._arity = struct.pack(">i", len(columns))
        self._header = header_bytes(len(columns))
        self._slots = struct.Struct("<" + "".join(one.slot for one in columns))
        self._fixed = self._header + _SLOT * len(columns)

    @staticmethod
    def of(fields: Sequence[Field]) -> RowPacker | None:
        """For rows with these fields."""
        columns = [_column_of(field.type) for field in fields]
        return None if None in columns else RowPacker(fields, [one for one in columns if one is not None])

    def pack(self, row: Mapping[str, Any]) -> bytes:
        """The bytes of a row, its arity in front; NotPlainError where it has another number of fields or a value needs a cast."""
        if len(row) != len(self._columns):
            raise NotPlainError
        nulls, at = 0, self._fixed
        slots: list[Any] = []
        tail: list[bytes] = []
        try:
            for name, bit, shape, python_type, nested in self._columns:
                value = row[name]
                if value is None:
                    nulls |= bit
                    if shape != _MOMENT:
                        slots.append(0)
                        continue
                    slots.append(at << 32)
                    tail.append(bytes(_SLOT))
                    at += _SLOT
                elif type(value) is not python_type:
                    raise NotPlainError
                elif shape == _NUMBER:
                    # A NaN may have other bits in Python.
                    if value != value:  # noqa: PLR0124
                        raise NotPlainError
                    slots.append(value)
                elif shape == _MOMENT:
                    millis, micros = _moment(value)
                    slots.append(at << 32 | micros * 1000)
                    tail.append(_MILLISECONDS.pack(millis))
                    at += _SLOT
                elif shape == _DATE:
                    slots.append(value.toordinal() - _EPOCH_DAY)
                else:
                    data = value.encode() if shape == _TEXT else value if nested is None else nested(value)
                    size = len(data)
                    if size <= INLINE_BYTES:
                        slots.append(int.from_bytes(data, "little") | _INLINE[size])
                        continue
                    slots.append(at << 32 | size)
                    tail.append(data)
                    at += size
                    if size % _SLOT:
                        padding = _ZEROS[-size % _SLOT]
                        tail.append(padding)
                        at += len(padding)
            if nulls & self._required:
                raise NotPlainError
            header = (nulls << 8).to_bytes(self._header, "little")
            return b"".join((self._arity, header, self._slots.pack(*slots), *tail))
        except (KeyError, UnicodeEncodeError, struct.error):
            raise NotPlainError from None


def _moment(value: datetime) -> tuple[int, int]:
    """The milliseconds since 1970 of a moment, and the microseconds beyond them."""
    if value.tzinfo is not UTC:
        raise NotPlainError
    since = value - _EPOCH
    return divmod((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds, 1000)


def _column_of(data_type: DataType) -> _Column | None:
    """How values of a type are packed, None for a type whose values are left to the columns."""
    match data_type:
        case Atomic(kind=kind) if kind in _NUMBERS:
            return _NUMBERS[kind]
        case Atomic(kind=Kind.VARCHAR, precision=length) if length == MAX_LENGTH:
            return _Column(_TEXT, str)
        case Atomic(kind=Kind.VARBINARY, precision=length) if length == MAX_LENGTH:
            return _Column(_BYTES, bytes)
        case Atomic(kind=Kind.DATE):
            return _Column(_DATE, date, "i4x")
        case Atomic(kind=Kind.TIMESTAMP_LTZ, precision=precision) if precision == _MICROSECONDS:
            return _Column(_MOMENT, datetime)
        case Row(fields) if fields:
            inner = RowPacker.of(fields)
            return None if inner is None else _Column(_NESTED, dict, nested=inner.pack)
        case Array(element):
            one = RowPacker.of([Field(0, "", element)])
            return None if one is None else _Column(_NESTED, list, nested=_array_packer(one))
    return None


def _array_packer(one: RowPacker) -> Nested:
    def packed(value: list[Any]) -> bytes:
        elements = [one.pack({"": element}) for element in value]
        ends, end = [], 0
        for element in elements:
            end += len(element)
            ends.append(end)
        return struct.pack(f"<{1 + len(ends)}i", len(ends), *ends) + b"".join(elements)

    return packed


_NUMBERS = {
    Kind.TINYINT: _Column(_NUMBER, int, "b7x"),
    Kind.SMALLINT: _Column(_NUMBER, int, "h6x"),
    Kind.INT: _Column(_NUMBER, int, "i4x"),
    Kind.BIGINT: _Column(_NUMBER, int, "q"),
    Kind.DOUBLE: _Column(_NUMBER, float, "d"),
    Kind.BOOLEAN: _Column(_NUMBER, bool, "?7x"),
}
