"""Partition values as text: the folders `k=v/k2=v2` of data files, and the partition specs of users.

    ("dt", "hour"), (date(2024, 1, 1), 10)      dt=19723/hour=10            as Paimon names folders by default
                                                dt=2024-01-01/hour=10       with partition.legacy-name = false

A reader finds a file by the folder it computes from the partition's value, so the text is exactly
what Paimon makes of it. Three things are undefined there and are chosen so: FLOAT and DOUBLE are the shortest
digits that give the number back (what Java prints from version 19 on); timestamps with a time zone are in
UTC; BYTES can only be named where `partition.legacy-name` is false, for the default puts a memory address
into the name. Nothing here touches a store.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation, localcontext

from lakelet.errors import InvalidError
from lakelet.model.types import BINARIES, FLOATS, INTEGERS, STRINGS, Atomic, DataType, Kind

DEFAULT_PARTITION = "__DEFAULT_PARTITION__"
_ESCAPED = {code: f"%{code:02X}" for code in (*range(0x20), *map(ord, "\"#%'*/:=?\\{[]}^\x7f"))}
# White space to Python but not to Java: the next-line character and the no-break spaces.
_NO_BREAK = "\x85\xa0\u2007\u202f"
_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_DAY = _EPOCH.toordinal()
_MICRO = 6
_BITS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32, Kind.BIGINT: 64}
_TRUE = ("true", "t", "yes", "y", "1")
_FALSE = ("false", "f", "no", "n", "0")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_FLOAT = re.compile(_DECIMAL.pattern + r"|NaN|[+-]?Infinity")
_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?")
_TIMESTAMP = re.compile(rf"{_DATE.pattern}(?:[ T]{_TIME.pattern})?(Z|[+-][0-9]{{2}}:[0-9]{{2}})?")


class _NotAValue(ValueError):
    """The text is no value of the type; the caller adds the type to the message."""


def partition_path(
    names: Sequence[str],
    types: Sequence[DataType],
    values: Sequence[object],
    *,
    default_name: str = DEFAULT_PARTITION,
    legacy: bool = True,
) -> str:
    """The folder of a partition below the table's, without slashes at its ends; "" for a table without partitions.

    NULL and blank text share the folder `default_name`; the manifest distinguishes them.
    """
    parts: list[str] = []
    for name, data_type, value in zip(names, types, values, strict=True):
        text = default_name if value is None else partition_text(data_type, value, legacy=legacy)
        if all(letter.isspace() and letter not in _NO_BREAK for letter in text):
            text = default_name
        parts.append(f"{escape(name)}={escape(text)}")
    return "/".join(parts)


def escape(text: str) -> str:
    """Escape text for a path: characters with a special meaning in paths become %XX."""
    return text.translate(_ESCAPED)


def partition_text(data_type: DataType, value: object, *, legacy: bool = True) -> str:
    """A partition value that is not NULL as text, before it is escaped for a path."""
    if not isinstance(data_type, Atomic):
        raise InvalidError(f"a column of {data_type} cannot be a partition key")
    kind = data_type.kind
    match value:
        case bool():
            if kind is Kind.BOOLEAN:
                return "true" if value else "false"
        case int() if kind in INTEGERS:
            return str(int(value))
        case float() | int() if kind in FLOATS:
            return _float_text(float(value), single=kind is Kind.FLOAT)
        case Decimal() | int() if kind is Kind.DECIMAL:
            return _decimal_text(Decimal(value), data_type)
        case str() if kind in STRINGS:
            return value
        case bytes() if kind in BINARIES and not legacy:
            return value.decode(errors="replace")
        case bytes() if kind in BINARIES:
            raise InvalidError(f"{data_type} can be a partition key only with partition.legacy-name = false")
        case dt.datetime() | int() if kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ):
            return _timestamp_text(value, data_type, legacy=legacy)
        case dt.date() if kind is Kind.DATE:
            return str(value.toordinal() - _EPOCH_DAY) if legacy else value.isoformat()
        case dt.time() if kind is Kind.TIME:
            return _time_text(value, data_type.precision, legacy=legacy)
    raise InvalidError(f"the partition value {value!r} is no {data_type}")


def _float_text(value: float, *, single: bool) -> str:
    """As Java prints it: plain from 0.001 to below 10,000,000, else with an exponent; never without a fraction."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = Decimal(_shortest(value, single=single)).as_tuple()
    text = "".join(map(str, digits))
    if not value:
        return "-0.0" if sign else "0.0"
    scale = len(text) - 1 + int(exponent)
    text = text.rstrip("0") or "0"
    minus = "-" if sign else ""
    if -3 <= scale < 0:
        return f"{minus}0.{'0' * (-scale - 1)}{text}"
    if 0 <= scale < 7:
        text = text.ljust(scale + 2, "0")
        return f"{minus}{text[: scale + 1]}.{text[scale + 1 :]}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{scale}"


def _shortest(value: float, *, single: bool) -> str:
    """The fewest digits, but two at least, that give the number back; of two digits those nearest to it."""
    for digits in range(1, 17):
        text = f"{value:.{digits}e}"
        if (_as_single(float(text)) if single else float(text)) == value:
            return text
    raise InvalidError(f"the partition value {value!r} is no FLOAT")


def _as_single(value: float) -> float:
    """The nearest number of 32 bits."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _decimal_text(value: Decimal, data_type: Atomic) -> str:
    with localcontext() as context:
        context.prec = 80
        fitted = value.quantize(Decimal(1).scaleb(-data_type.scale))
    if fitted != value:
        raise InvalidError(f"the partition value {value} is no {data_type}")
    return f"{fitted:f}"


def _time_text(value: dt.time, precision: int, *, legacy: bool) -> str:
    millis = value.microsecond // 1000
    if legacy:
        return str(((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + millis)
    text = f"{value.hour:02d}:{value.minute:02d}:{value.second:02d}"
    fraction = f"{millis:03d}"[:precision]
    return f"{text}.{fraction.rstrip('0') or '0'}" if fraction else text


def _timestamp_text(value: dt.datetime | int, data_type: Atomic, *, legacy: bool) -> str:
    if isinstance(value, dt.datetime):
        moment = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
        nanos = moment.microsecond * 1000
    else:
        seconds, nanos = divmod(value, 1_000_000_000)
        moment = _EPOCH + dt.timedelta(seconds=seconds)
    day = moment.date().isoformat()
    clock = f"{moment.hour:02d}:{moment.minute:02d}"
    if not legacy:
        fraction = f"{nanos:09d}"[: data_type.precision]
        return f"{day} {clock}:{moment.second:02d}" + (f".{fraction}" if fraction else "")
    if nanos:
        fraction = f"{nanos:09d}"
        while fraction.endswith("000"):
            fraction = fraction[:-3]
        return f"{day}T{clock}:{moment.second:02d}.{fraction}"
    return f"{day}T{clock}:{moment.second:02d}" if moment.second else f"{day}T{clock}"


def parse_partition_value(text: str, data_type: DataType, *, default_name: str = DEFAULT_PARTITION) -> object:
    """The value that the text of a partition spec means; `default_name` means NULL.

    Takes what people write (`2024-01-01`, `2024-01-01 10:11:12.5`) and what folders are called (`19723`,
    `2024-01-01T10:11`). The value is of the kind that `partition_text` takes: a TIMESTAMP of a precision over 6
    is an int of nanoseconds since 1970. Text that would lose digits is refused, not rounded.
    """
    if text == default_name:
        return None
    if not isinstance(data_type, Atomic):
        raise InvalidError(f"a column of {data_type} cannot be a partition key")
    try:
        value = _parse(text, data_type)
    except (ValueError, OverflowError, InvalidOperation) as error:
        raise InvalidError(f"partition value {text!r} is no {data_type}") from error
    if value is None:
        raise InvalidError(f"partition value {text!r} is no {data_type}")
    return value


def _parse(text: str, data_type: Atomic) -> object:
    kind = data_type.kind
    if kind in STRINGS:
        return text if len(text) <= data_type.precision else None
    if kind in BINARIES:
        return text.encode() if len(text.encode()) <= data_type.precision else None
    if kind is Kind.BOOLEAN:
        return True if text.lower() in _TRUE else False if text.lower() in _FALSE else None
    if kind in INTEGERS:
        value = int(text) if _INTEGER.fullmatch(text) else None
        return value if value is not None and -(1 << _BITS[kind] - 1) <= value < 1 << _BITS[kind] - 1 else None
    if kind in FLOATS:
        return _parse_float(text, single=kind is Kind.FLOAT)
    if kind is Kind.DECIMAL:
        return _parse_decimal(text, data_type)
    if kind is Kind.DATE:
        return _parse_date(text)
    if kind is Kind.TIME:
        return _parse_time(text, data_type.precision)
    return _parse_timestamp(text, data_type)


def _parse_float(text: str, *, single: bool) -> float | None:
    if not _FLOAT.fullmatch(text):
        return None
    value = float(text)
    fitted = _as_single(value) if single else value
    return None if math.isinf(fitted) and not text.endswith("Infinity") else fitted


def _parse_decimal(text: str, data_type: Atomic) -> Decimal | None:
    if not _DECIMAL.fullmatch(text):
        return None
    with localcontext() as context:
        context.prec = 80
        value = Decimal(text)
        fitted = value.quantize(Decimal(1).scaleb(-data_type.scale))
        fits = fitted == value and abs(fitted) < Decimal(10) ** (data_type.precision - data_type.scale)
    return fitted if fits else None


def _parse_date(text: str) -> dt.date | None:
    if _INTEGER.fullmatch(text):
        return dt.date.fromordinal(int(text) + _EPOCH_DAY)
    found = _DATE.fullmatch(text)
    return dt.date(int(found[1]), int(found[2]), int(found[3])) if found else None


def _parse_time(text: str, precision: int) -> dt.time | None:
    if _INTEGER.fullmatch(text):
        millis = int(text)
        if not 0 <= millis < 86_400_000:
            return None
        return (_EPOCH + dt.timedelta(milliseconds=millis)).time()
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    nanos = _fraction(found[4], min(precision, 3))
    return dt.time(int(found[1]), int(found[2]), int(found[3] or 0), nanos // 1000)


def _fraction(digits: str | None, precision: int) -> int:
    """Nanoseconds of the digits after the point; a ValueError if they say more than the precision holds."""
    if digits is not None and digits[precision:].strip("0"):
        raise _NotAValue("too many digits")
    return int((digits or "0").ljust(9, "0"))


def _parse_timestamp(text: str, data_type: Atomic) -> dt.datetime | int | None:
    found = _TIMESTAMP.fullmatch(text)
    if found is None or (found[8] and data_type.kind is Kind.TIMESTAMP):
        return None
    numbers = [int(found[group] or 0) for group in range(1, 7)]
    nanos = _fraction(found[7], data_type.precision)
    moment = dt.datetime(*numbers)  # type: ignore[arg-type]
    if found[8] and found[8] != "Z":
        moment = dt.datetime.fromisoformat(f"{moment.isoformat()}{found[8]}").astimezone(dt.UTC).replace(tzinfo=None)
    if data_type.precision > _MICRO:
        since = moment - _EPOCH
        return (since.days * 86_400 + since.seconds) * 1_000_000_000 + nanos
    moment = moment.replace(microsecond=nanos // 1000)
    return moment.replace(tzinfo=dt.UTC) if data_type.kind is Kind.TIMESTAMP_LTZ else moment
