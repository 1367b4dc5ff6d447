"""BinaryRow, one row at a time: partitions, keys and statistics inside manifests.

The bytes of a row are its identity (two files are in one partition when their partition bytes are
equal), so this writes exactly what Paimon writes, down to the room it leaves for some NULLs. Whole
columns of rows go through `binary_row_columns`.

    arity       int32, big-endian (absent where a row is hashed)
    body        all little-endian; offsets count from the start of the body
      header    ((arity + 63 + 8) // 64) * 8 bytes: byte 0 the row kind (0), then one NULL bit per field from bit 8 on
      slots     8 bytes per field
      tail      what does not fit a slot, each piece padded with zeros to 8 bytes

    type                            slot                                    tail
    BOOLEAN, TINYINT                1 byte
    SMALLINT                        2 bytes
    INT, FLOAT, DATE (days)         4 bytes
    TIME                            4 bytes, milliseconds of the day
    BIGINT, DOUBLE                  8 bytes
    DECIMAL, precision <= 18        8 bytes, the unscaled value
    DECIMAL, precision > 18         offset << 32 | length                   16 bytes: the unscaled value, big-endian,
                                                                            no more bytes than it needs, then zeros
    TIMESTAMP, precision <= 3       8 bytes, milliseconds since 1970
    TIMESTAMP, precision > 3        offset << 32 | nanoseconds of the milli 8 bytes, milliseconds since 1970
    text, bytes, up to 7 long       the bytes, byte 7 = 0x80 | length
    text, bytes, longer             offset << 32 | length                   the bytes

A NULL sets its bit and leaves the slot zero, except that DECIMAL over 18 digits and TIMESTAMP over 3
keep their (zeroed) room in the tail, with the slot `offset << 32`. ARRAY, MAP, MULTISET and ROW occur
only as NULL here: nothing in metadata holds values of them.

Values are what Arrow's `as_py()` gives: bool, int, float, Decimal, str, bytes, date, time, datetime
(aware, in UTC, for TIMESTAMP WITH LOCAL TIME ZONE). TIMESTAMP with a precision over 6 is an int of nanoseconds
since 1970, for datetime stops at microseconds.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Sequence
from decimal import Decimal, localcontext

from lakelet.errors import CorruptionError, InvalidError
from lakelet.model.types import BINARIES, STRINGS, TIMESTAMPS, Atomic, DataType, Kind

EMPTY_ROW = bytes(12)
COMPACT_DECIMAL = 18
COMPACT_TIMESTAMP = 3
INLINE_BYTES = 7
DECIMAL_ROOM = 16
PREFIX = 4
_MICRO = 6
_SLOT = 8
_INLINE_MARK = 0x80
_WORD_BITS = 64
_KIND_BITS = 8
_EPOCH = dt.datetime(1970, 1, 1)
_LAST_ORDINAL = dt.date.max.toordinal()
_EPOCH_DAY = _EPOCH.date().toordinal()
_NUMBERS = {
    Kind.BOOLEAN: struct.Struct("<?7x"),
    Kind.TINYINT: struct.Struct("<b7x"),
    Kind.SMALLINT: struct.Struct("<h6x"),
    Kind.INT: struct.Struct("<i4x"),
    Kind.BIGINT: struct.Struct("<q"),
    Kind.FLOAT: struct.Struct("<f4x"),
    Kind.DOUBLE: struct.Struct("<d"),
}
_INT = _NUMBERS[Kind.INT]
_LONG = _NUMBERS[Kind.BIGINT]
_ARITY = struct.Struct(">i")


class _Damaged(ValueError):
    """The bytes are not a row; the caller adds the place to the message."""


def header_bytes(arity: int) -> int:
    """The header length of a row of `arity` fields."""
    return (arity + _WORD_BITS - 1 + _KIND_BITS) // _WORD_BITS * _SLOT


def is_tailed_timestamp(data_type: DataType) -> bool:
    """Whether values are TIMESTAMPs that keep milliseconds in the tail."""
    return isinstance(data_type, Atomic) and data_type.kind in TIMESTAMPS and data_type.precision > COMPACT_TIMESTAMP


def is_tailed_decimal(data_type: DataType) -> bool:
    """Whether values are DECIMALs that keep their digits in the tail."""
    return isinstance(data_type, Atomic) and data_type.kind is Kind.DECIMAL and data_type.precision > COMPACT_DECIMAL


def encode_row(values: Sequence[object], types: Sequence[DataType]) -> bytes:
    """The bytes of a row, with the arity in front; an InvalidError if a value does not fit its type."""
    if len(values) != len(types):
        raise InvalidError(f"a row of {len(types)} fields was given {len(values)} values")
    arity = len(types)
    header = bytearray(header_bytes(arity))
    tail_at = len(header) + _SLOT * arity
    slots: list[bytes] = []
    tail = bytearray()
    for index, (value, data_type) in enumerate(zip(values, types, strict=True)):
        if value is None:
            bit = index + _KIND_BITS
            header[bit // 8] |= 1 << bit % 8
        try:
            slot, piece = _encode(value, data_type, tail_at + len(tail))
        except (struct.error, ArithmeticError, TypeError, AttributeError, ValueError) as error:
            raise InvalidError(f"field {index} of a row: {value!r} is no {data_type}") from error
        slots.append(slot)
        tail += piece
    return b"".join((_ARITY.pack(arity), header, *slots, tail))


def null_flags(row: bytes, arity: int) -> tuple[bool, ...]:
    """Which fields of a row of `arity` fields are NULL."""
    return tuple(bool(row[PREFIX + bit // 8] >> bit % 8 & 1) for bit in range(_KIND_BITS, _KIND_BITS + arity))


def _encode(value: object, data_type: DataType, offset: int) -> tuple[bytes, bytes]:
    """The slot of a field and its piece of the tail, which would start at `offset`."""
    if value is None:
        if is_tailed_decimal(data_type):
            return _LONG.pack(offset << 32), bytes(DECIMAL_ROOM)
        if is_tailed_timestamp(data_type):
            return _LONG.pack(offset << 32), bytes(_SLOT)
        return bytes(_SLOT), b""
    if not isinstance(data_type, Atomic):
        raise TypeError("nested values have no place in metadata rows")
    kind = data_type.kind
    if kind in _NUMBERS:
        if isinstance(value, bool) != (kind is Kind.BOOLEAN):
            raise TypeError("truth values and numbers are not the same")
        return _NUMBERS[kind].pack(value), b""
    if kind in STRINGS or kind in BINARIES:
        data = value.encode() if isinstance(value, str) else bytes(memoryview(value))  # type: ignore[arg-type]
        if len(data) <= INLINE_BYTES:
            return data.ljust(INLINE_BYTES, b"\0") + bytes([_INLINE_MARK | len(data)]), b""
        return _LONG.pack(offset << 32 | len(data)), data + bytes(-len(data) % _SLOT)
    if kind is Kind.DECIMAL:
        unscaled = unscaled_decimal(value, data_type)
        if data_type.precision <= COMPACT_DECIMAL:
            return _LONG.pack(unscaled), b""
        data = unscaled.to_bytes((unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1, "big", signed=True)
        return _LONG.pack(offset << 32 | len(data)), data.ljust(DECIMAL_ROOM, b"\0")
    if kind is Kind.DATE:
        return _INT.pack(_days(value)), b""
    if kind is Kind.TIME:
        return _INT.pack(_milliseconds_of_day(value)), b""
    millis, nanos = divmod(nanoseconds(value), 1_000_000)
    if data_type.precision <= COMPACT_TIMESTAMP:
        return _LONG.pack(millis), b""
    return _LONG.pack(offset << 32 | nanos), _LONG.pack(millis)


def unscaled_decimal(value: object, data_type: Atomic) -> int:
    """The digits of a decimal as an integer at the type's scale; an ArithmeticError if it needs more than there are."""
    if not isinstance(value, Decimal | int) or isinstance(value, bool):
        raise TypeError("no decimal")
    with localcontext() as context:
        context.prec = 80
        scaled = Decimal(value).scaleb(data_type.scale)
        unscaled = int(scaled)
        if unscaled != scaled or abs(unscaled) >= 10**data_type.precision:
            raise ArithmeticError("the decimal does not fit")
    return unscaled


def nanoseconds(value: object) -> int:
    """Nanoseconds since 1970 of a datetime (aware ones are taken to UTC) or of an int that already is that."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, dt.datetime):
        raise TypeError("no timestamp")
    naive = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
    since = naive - _EPOCH
    micros = (since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds
    # pandas has a datetime that knows nanoseconds.
    return micros * 1000 + int(getattr(value, "nanosecond", 0))


def _days(value: object) -> int:
    if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
        raise TypeError("no date")
    return value.toordinal() - _EPOCH_DAY


def _milliseconds_of_day(value: object) -> int:
    if not isinstance(value, dt.time):
        raise TypeError("no time")
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


def decode_row(data: bytes, types: Sequence[DataType], *, where: str = "") -> tuple[object, ...]:
    """The values of a row that starts with its arity. `where` names the place in errors."""
    place = f"{where}: " if where else ""
    arity = len(types)
    header = header_bytes(arity)
    if len(data) < PREFIX + header + _SLOT * arity:
        raise CorruptionError(f"{place}a row of {arity} fields cannot be {len(data)} bytes long")
    if _ARITY.unpack_from(data)[0] != arity:
        raise CorruptionError(f"{place}expected a row of {arity} fields, found {_ARITY.unpack_from(data)[0]}")
    body = data[PREFIX:]
    values: list[object] = []
    for index, data_type in enumerate(types):
        bit = index + _KIND_BITS
        if body[bit // 8] >> bit % 8 & 1:
            values.append(None)
            continue
        try:
            values.append(_decode(body, header + _SLOT * index, data_type))
        except OverflowError as error:
            raise InvalidError(f"{place}field {index} of a row is a {data_type} beyond what Python can hold") from error
        except (ValueError, struct.error, TypeError) as error:
            raise CorruptionError(f"{place}field {index} of a row is no {data_type}: {error}") from error
    return tuple(values)


def _decode(body: bytes, at: int, data_type: DataType) -> object:
    if not isinstance(data_type, Atomic):
        raise TypeError("nested values have no place in metadata rows")
    kind = data_type.kind
    if kind in _NUMBERS:
        return _NUMBERS[kind].unpack_from(body, at)[0]
    if kind in STRINGS:
        return _bytes(body, at).decode()
    if kind in BINARIES:
        return _bytes(body, at)
    if kind is Kind.DECIMAL:
        return _decode_decimal(body, at, data_type)
    if kind is Kind.DATE:
        return dt.date.fromordinal(_check_ordinal(_INT.unpack_from(body, at)[0] + _EPOCH_DAY))
    if kind is Kind.TIME:
        seconds, millis = divmod(_INT.unpack_from(body, at)[0], 1000)
        return dt.time(seconds // 3600, seconds // 60 % 60, seconds % 60, millis * 1000)
    slot = int(_LONG.unpack_from(body, at)[0])
    if data_type.precision <= COMPACT_TIMESTAMP:
        millis, nanos = slot, 0
    else:
        offset, nanos = slot >> 32, slot & 0xFFFFFFFF
        if not 0 <= offset <= len(body) - _SLOT or nanos >= 1_000_000:
            raise _Damaged("its milliseconds lie outside the row")
        millis = _LONG.unpack_from(body, offset)[0]
    if data_type.precision > _MICRO:
        return millis * 1_000_000 + nanos
    naive = _EPOCH + dt.timedelta(milliseconds=millis, microseconds=nanos // 1000)
    return naive.replace(tzinfo=dt.UTC) if kind is Kind.TIMESTAMP_LTZ else naive


def _check_ordinal(ordinal: int) -> int:
    if not 1 <= ordinal <= _LAST_ORDINAL:
        raise OverflowError("beyond the year 9999 or before the year 1")
    return ordinal


def _decode_decimal(body: bytes, at: int, data_type: Atomic) -> Decimal:
    if data_type.precision <= COMPACT_DECIMAL:
        unscaled = int(_LONG.unpack_from(body, at)[0])
    else:
        data = _tail(body, at)
        if not 1 <= len(data) <= DECIMAL_ROOM:
            raise _Damaged(f"its digits are {len(data)} bytes long")
        unscaled = int.from_bytes(data, "big", signed=True)
    if abs(unscaled) >= 10**data_type.precision:
        raise _Damaged("it has too many digits")
    digits = tuple(int(digit) for digit in str(abs(unscaled)))
    return Decimal((int(unscaled < 0), digits, -data_type.scale))


def _bytes(body: bytes, at: int) -> bytes:
    mark = body[at + INLINE_BYTES]
    if not mark & _INLINE_MARK:
        return _tail(body, at)
    length = mark & ~_INLINE_MARK
    if length > INLINE_BYTES:
        raise _Damaged(f"{length} bytes do not fit a slot")
    return body[at : at + length]


def _tail(body: bytes, at: int) -> bytes:
    slot = int(_LONG.unpack_from(body, at)[0])
    offset, length = slot >> 32, slot & 0xFFFFFFFF
    if offset < 0 or offset + length > len(body):
        raise _Damaged(f"it claims {length} bytes at {offset} of a row of {len(body)}")
    return body[offset : offset + length]
