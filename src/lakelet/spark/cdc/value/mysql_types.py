"""Columns of Canal events: MySQL's type texts (`mysqlType`) to table types.

tinyint(1) → BOOLEAN        int unsigned → BIGINT           decimal(10,2) → DECIMAL(10, 2), over 38 digits STRING
datetime(6) → TIMESTAMP(6)  bigint unsigned → DECIMAL(20,0) varchar(50) → VARCHAR(50)
blob, binary → BYTES        bit(1) → BOOLEAN, bit(n) → DECIMAL(20, 0), whose number Canal spells
"""

from __future__ import annotations

import re

from lakelet.model.types import Atomic, Kind, string
from lakelet.spark.cdc.value.type_rules import TypeRules
from lakelet.spark.cdc.value.wire_field import Codec, WireField, as_text, byte_string

_TYPE = re.compile(r"^\s*([a-z]+(?:\s+precision)?)\s*(?:\(([^)]*)\))?\s*(.*)$", re.IGNORECASE)
_MOST_DIGITS = 38
_UNSIGNED_BIGINT = Atomic(Kind.DECIMAL, 20, 0)
# Signed and unsigned.
_INTEGERS = {
    "tinyint": (Kind.TINYINT, Kind.SMALLINT),
    "smallint": (Kind.SMALLINT, Kind.INT),
    "mediumint": (Kind.INT, Kind.INT),
    "int": (Kind.INT, Kind.BIGINT),
    "integer": (Kind.INT, Kind.BIGINT),
    "year": (Kind.INT, Kind.INT),
}
_DECIMALS = ("decimal", "numeric", "dec", "fixed")
_FLOATS = {"float": Kind.FLOAT, "double": Kind.DOUBLE, "double precision": Kind.DOUBLE, "real": Kind.DOUBLE}
_BYTES = ("binary", "varbinary", "blob", "tinyblob", "mediumblob", "longblob")


def mysql_field(name: str, text: str, mapping: TypeRules) -> WireField:
    """The column of a MySQL type; one that is unknown is STRING."""
    found = _TYPE.match(text)
    base, given, rest = found.groups() if found else ("", None, "")
    field = _field(name, base.lower(), _numbers(given), mapping, unsigned="unsigned" in rest.lower())
    return as_text(field) if mapping.to_string else field


def _field(name: str, base: str, numbers: tuple[int, ...], mapping: TypeRules, *, unsigned: bool) -> WireField:
    if base in ("boolean", "bool") or (base in ("tinyint", "bit") and numbers == (1,)):
        if base == "tinyint" and mapping.tinyint1_not_bool:
            return WireField(name, Codec.INTEGER, Atomic(Kind.TINYINT))
        return WireField(name, Codec.BOOLEAN, Atomic(Kind.BOOLEAN))
    if base in _INTEGERS:
        return WireField(name, Codec.INTEGER, Atomic(_INTEGERS[base][unsigned]))
    if base == "bigint":
        exact = Atomic(Kind.BIGINT) if not unsigned or mapping.bigint_unsigned_to_bigint else _UNSIGNED_BIGINT
        return WireField(name, Codec.INTEGER, exact)
    if base == "bit":
        return WireField(name, Codec.INTEGER, _UNSIGNED_BIGINT)
    if base in _DECIMALS:
        return WireField(name, Codec.DECIMAL_TEXT, decimal_type(numbers))
    if base in _FLOATS:
        return WireField(name, Codec.FLOATING, Atomic(_FLOATS[base]))
    if base in _BYTES:
        return WireField(name, Codec.LATIN1, byte_string())
    return _text_or_time(name, base, numbers, mapping)


def _text_or_time(name: str, base: str, numbers: tuple[int, ...], mapping: TypeRules) -> WireField:
    precision = numbers[0] if numbers else 0
    match base:
        case "date":
            return WireField(name, Codec.DATE_TEXT, Atomic(Kind.DATE))
        case "time":
            return WireField(name, Codec.TIME_TEXT, Atomic(Kind.TIME, precision))
        case "datetime" | "timestamp":
            return WireField(name, Codec.LOCAL_TEXT, Atomic(Kind.TIMESTAMP, precision))
        case "char" | "varchar" if numbers and numbers[0] > 0 and not mapping.char_to_string:
            return WireField(name, Codec.TEXT, Atomic(Kind.CHAR if base == "char" else Kind.VARCHAR, numbers[0]))
        case "longtext" if mapping.longtext_to_bytes:
            return WireField(name, Codec.TEXT, byte_string())
        case _:
            return WireField(name, Codec.TEXT, string())


def decimal_type(numbers: tuple[int, ...]) -> Atomic:
    """DECIMAL(precision, scale); without a precision DECIMAL(20, 0), beyond 38 digits STRING."""
    precision, scale = (*numbers, 0)[:2] if numbers else (20, 0)
    return Atomic(Kind.DECIMAL, precision, scale) if 0 < precision <= _MOST_DIGITS else string()


def _numbers(given: str | None) -> tuple[int, ...]:
    parts = [part.strip() for part in (given or "").split(",") if part.strip()]
    return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else ()
