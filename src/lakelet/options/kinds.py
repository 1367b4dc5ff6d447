"""The kinds of option values, and how each is parsed from text.

Options live in schema files as text, so this is where text becomes a typed value, with the same spellings Paimon
takes. A kind converts or raises ValueError; it knows no option names and never fills in defaults.

    kind        text                                         value
    bool        true, false (any case)                       bool
    int, long   -1, 42 (32 and 64 bits)                      int
    float       0.2                                          float
    size        128 mb, 64kb, 1 g, 4096                      int, bytes
    duration    1 h, 30 min, 500 ms, 2 d, PT1H30M, 250       timedelta (a bare number is milliseconds)
    columns     a,b                                          tuple of names
    map         k1:v1,k2:v2                                  Mapping[str, str]
    level map   0:avro,3:parquet                             Mapping[int, str]
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Generic, TypeVar

T = TypeVar("T")

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

_SIZE_UNITS: Mapping[str, int] = {
    unit: 1024**power
    for power, units in enumerate(
        (
            ("", "b", "bytes"),
            ("k", "kb", "kibibytes"),
            ("m", "mb", "mebibytes"),
            ("g", "gb", "gibibytes"),
            ("t", "tb", "tebibytes"),
        )
    )
    for unit in units
}

_DURATION_UNITS: Mapping[str, timedelta] = {
    unit: length
    for length, units in (
        (timedelta(days=1), ("d", "day", "days")),
        (timedelta(hours=1), ("h", "hour", "hours")),
        (timedelta(minutes=1), ("m", "min", "minute", "minutes")),
        (timedelta(seconds=1), ("s", "sec", "secs", "second", "seconds")),
        (timedelta(milliseconds=1), ("", "ms", "milli", "millis", "millisecond", "milliseconds")),
        (timedelta(microseconds=1), ("µs", "micro", "micros", "microsecond", "microseconds")),
    )
    for unit in units
}
_NANOSECOND_UNITS = ("ns", "nano", "nanos", "nanosecond", "nanoseconds")

_NUMBER_AND_UNIT = re.compile(r"([0-9]+)\s*([a-zµ]*)")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_ISO_DURATION = re.compile(
    r"P(?:([0-9]+)D)?(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]{0,9})?)S)?)?", re.IGNORECASE
)
_STATS_MODE = re.compile(r"none|counts|full|truncate\([1-9][0-9]{0,8}\)")


class NotAValueError(ValueError):
    """The text is no value of its kind; the caller adds the option to the message."""


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """The parser of one kind of value: `name` for documentation, `expected` for error messages.

    Blanks around the text belong to the value only where it is `verbatim`.
    """

    name: str
    expected: str
    convert: Callable[[str], T]
    verbatim: bool = False


def _to_bool(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise NotAValueError(text)
    return lowered == "true"


def _to_string(text: str) -> str:
    return text


def _to_float(text: str) -> float:
    value = float(text)
    if not -float("inf") < value < float("inf"):
        raise NotAValueError(text)
    return value


def _to_duration(text: str) -> timedelta:
    iso = _ISO_DURATION.fullmatch(text)
    try:
        if iso and any(iso.groups()):
            days, hours, minutes, seconds = (float(part) if part else 0.0 for part in iso.groups())
            return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        match = _NUMBER_AND_UNIT.fullmatch(text.lower())
        if not match:
            raise NotAValueError(text)
        number, unit = int(match[1]), match[2]
        if unit in _NANOSECOND_UNITS:
            return timedelta(microseconds=number // 1000)
        if unit not in _DURATION_UNITS:
            raise NotAValueError(text)
        return number * _DURATION_UNITS[unit]
    except OverflowError as error:
        raise NotAValueError(text) from error


def _to_columns(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) != len(names):
        raise NotAValueError(text)
    return names


def _to_pairs(text: str) -> list[tuple[str, str]]:
    pairs = []
    for item in text.split(",") if text.strip() else ():
        key, separator, value = item.partition(":")
        if not separator or not key.strip():
            raise NotAValueError(text)
        pairs.append((key.strip(), value.strip()))
    if len(dict(pairs)) != len(pairs):
        raise NotAValueError(text)
    return pairs


def _to_map(text: str) -> Mapping[str, str]:
    return MappingProxyType(dict(_to_pairs(text)))


def _to_stats_mode(text: str) -> str:
    lowered = text.lower()
    if not _STATS_MODE.fullmatch(lowered):
        raise NotAValueError(text)
    return lowered


def _to_file_name_part(text: str) -> str:
    # The text becomes part of one file name, so that it must not lead into another folder.
    if not text or "/" in text or "\\" in text or "\0" in text or text in (".", ".."):
        raise NotAValueError(text)
    return text


def _to_relative_path(text: str) -> str:
    parts = text.strip("/").split("/")
    if text.startswith("/") or "\\" in text or "\0" in text or any(part in ("", ".", "..") for part in parts):
        raise NotAValueError(text)
    return "/".join(parts)


def integer(minimum: int = -INT_MAX - 1, maximum: int = INT_MAX, *, but_not: tuple[int, ...] = ()) -> Kind[int]:
    """A whole number of 32 bits, unless other bounds are given."""

    def convert(text: str) -> int:
        if not _INTEGER.fullmatch(text) or not minimum <= int(text) <= maximum or int(text) in but_not:
            raise NotAValueError(text)
        return int(text)

    bounds = []
    if minimum > -INT_MAX - 1:
        bounds.append(f"at least {minimum}")
    if maximum < INT_MAX:
        bounds.append(f"at most {maximum}")
    bounds.extend(f"not {value}" for value in but_not)
    return Kind("long" if maximum > INT_MAX else "int", ", ".join(["a whole number", *bounds]), convert)


def size(minimum: int = 0) -> Kind[int]:
    """A number of bytes, written with or without a unit."""

    def convert(text: str) -> int:
        match = _NUMBER_AND_UNIT.fullmatch(text.lower())
        if not match or match[2] not in _SIZE_UNITS:
            raise NotAValueError(text)
        value = int(match[1]) * _SIZE_UNITS[match[2]]
        if not minimum <= value <= LONG_MAX:
            raise NotAValueError(text)
        return value

    bound = f" of at least {minimum} bytes" if minimum else ""
    return Kind("size", f"a size{bound} such as '128 mb'", convert)


def one_of(*values: str) -> Kind[str]:
    """One word of a fixed list, in any case; the value is the list's own spelling."""

    spellings = {value.lower(): value for value in values}

    def convert(text: str) -> str:
        if text.lower() not in spellings:
            raise NotAValueError(text)
        return spellings[text.lower()]

    return Kind("enum: " + ", ".join(values), "one of " + ", ".join(values), convert)


def per_level(kind: Kind[str]) -> Kind[Mapping[int, str]]:
    """A value of another kind for each level of the LSM tree."""

    def convert(text: str) -> Mapping[int, str]:
        pairs = _to_pairs(text)
        if not all(_INTEGER.fullmatch(level) and 0 <= int(level) <= INT_MAX for level, _ in pairs):
            raise NotAValueError(text)
        return MappingProxyType({int(level): kind.convert(value) for level, value in pairs})

    return Kind("map: level to value", f"level:value pairs such as '0:x,1:y', each value {kind.expected}", convert)


BOOL: Kind[bool] = Kind("bool", "true or false", _to_bool)
INT: Kind[int] = integer()
COUNT: Kind[int] = integer(0)
POSITIVE: Kind[int] = integer(1)
LONG: Kind[int] = integer(-LONG_MAX - 1, LONG_MAX)
FLOAT: Kind[float] = Kind("float", "a number", _to_float)
SIZE: Kind[int] = size()
POSITIVE_SIZE: Kind[int] = size(1)
DURATION: Kind[timedelta] = Kind("duration", "a duration such as '1 h', '30 min', '500 ms' or 'PT1H'", _to_duration)
STRING: Kind[str] = Kind("string", "text", _to_string, verbatim=True)
COLUMNS: Kind[tuple[str, ...]] = Kind("columns", "different column names separated by commas", _to_columns)
MAP: Kind[Mapping[str, str]] = Kind("map", "key:value pairs separated by commas", _to_map)
STATS_MODE: Kind[str] = Kind("statistics mode", "none, counts, full or truncate(n)", _to_stats_mode)
FILE_NAME_PART: Kind[str] = Kind("file name part", "text without slashes", _to_file_name_part, verbatim=True)
RELATIVE_PATH: Kind[str] = Kind("relative path", "a path inside the table, without '.' and '..'", _to_relative_path)
