"""How a column's values are spelt in change events, and the table type that they mean.

Every value of an event is handled as the exact text that JSON has for it (a string without its quotes), so that integers beyond
2^53 and decimals keep all their digits. A codec says what the text is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from lakelet.model.types import BINARIES, FLOATS, INTEGERS, MAX_LENGTH, STRINGS, Atomic, DataType, Kind, string

_MILLI = 3


class Codec(Enum):
    """The spelling of a value."""

    TEXT = auto()
    INTEGER = auto()
    FLOATING = auto()
    BOOLEAN = auto()
    DECIMAL_TEXT = auto()
    # Base64 of a big-endian two's complement number without its scale, which the schema tells.
    DECIMAL_BYTES = auto()
    # {"scale": 3, "value": "AQ=="}
    VARIABLE_DECIMAL = auto()
    DAYS = auto()
    DATE_TEXT = auto()
    EPOCH_MILLIS = auto()
    EPOCH_MICROS = auto()
    EPOCH_NANOS = auto()
    # 2024-01-01 00:00:00.123456, in no zone.
    LOCAL_TEXT = auto()
    # 2024-01-01T00:00:00.123456Z
    ZONED_TEXT = auto()
    TIME_MILLIS = auto()
    TIME_MICROS = auto()
    TIME_NANOS = auto()
    TIME_TEXT = auto()
    BASE64 = auto()
    # Bytes as the characters U+0000 to U+00FF, as Canal has them.
    LATIN1 = auto()


@dataclass(frozen=True, slots=True)
class WireField:
    """A column of events: its name, the table type that it means, its spelling. `scale` is that of DECIMAL_BYTES.

    Without a type (events that carry none) the table's type decides how the text is read; a new column is STRING."""

    name: str
    codec: Codec = Codec.TEXT
    type: Atomic | None = None
    scale: int = 0
    optional: bool = True


def byte_string() -> Atomic:
    """BYTES, which is VARBINARY of the greatest length."""
    return Atomic(Kind.VARBINARY, MAX_LENGTH)


def as_text(field: WireField) -> WireField:
    """The same column as STRING (type mapping `to-string`)."""
    return WireField(field.name, field.codec, string(), field.scale, field.optional)


def implied_codec(target: DataType, style: str) -> Codec:
    """The spelling of values of a table's type in events without types: "debezium" has numbers for times and base64 for decimals,
    "debezium-text" is that with decimals as text, "canal" and "maxwell" have MySQL's text."""
    if not isinstance(target, Atomic) or target.kind in STRINGS:
        return Codec.TEXT
    kind = target.kind
    plain = {Kind.BOOLEAN: Codec.BOOLEAN, Kind.TIMESTAMP_LTZ: Codec.ZONED_TEXT}
    if kind in plain:
        return plain[kind]
    if kind in INTEGERS:
        return Codec.INTEGER
    if kind in FLOATS:
        return Codec.FLOATING
    if kind in BINARIES:
        return Codec.LATIN1 if style == "canal" else Codec.BASE64
    if not style.startswith("debezium"):
        texts = {Kind.DATE: Codec.DATE_TEXT, Kind.TIME: Codec.TIME_TEXT, Kind.TIMESTAMP: Codec.LOCAL_TEXT}
        return texts.get(kind, Codec.DECIMAL_TEXT)
    coarse = target.precision <= _MILLI
    if kind is Kind.DECIMAL:
        return Codec.DECIMAL_BYTES if style == "debezium" else Codec.DECIMAL_TEXT
    numbers = {
        Kind.DATE: Codec.DAYS,
        Kind.TIME: Codec.TIME_MILLIS if coarse else Codec.TIME_MICROS,
        Kind.TIMESTAMP: Codec.EPOCH_MILLIS if coarse else Codec.EPOCH_MICROS,
    }
    return numbers[kind]
