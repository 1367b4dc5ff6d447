"""The types of procedure arguments, and the conversion of SQL values to them.

    partitions    'dt=2026-01-01,h=7;dt=2026-01-02'    a comma is AND, a semicolon is OR
    options       'key=value,key=value'                or a map

Every `convert` raises an InvalidError that says what was expected; the caller adds the position in the statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.model.partition_path import DEFAULT_PARTITION
from lakelet.table.time_arguments import length, milliseconds

PartitionSpecs = tuple[dict[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class ValueKind:
    """An argument type: its display name, and the function that checks and converts a value."""

    name: str
    convert: Callable[[object], Any]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _unfit(value, "text in quotes")
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _unfit(value, "a whole number")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _unfit(value, "TRUE or FALSE")
    return value


def _moment(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, str, date)):
        raise _unfit(value, "a timestamp, ISO 8601 text or milliseconds")
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    return milliseconds(value)


def _length(value: object) -> timedelta:
    found = _interval(value)
    if not isinstance(found, (str, timedelta)):
        raise _unfit(value, "a length of time such as '1 d'")
    try:
        return length(found, "")
    except InvalidError as error:
        raise _unfit(value, "a length of time such as '1 d'") from error


def _age(value: object) -> str | timedelta | datetime:
    found = _interval(value)
    if isinstance(found, (str, timedelta, datetime)):
        return found
    if isinstance(found, date):
        return datetime(found.year, found.month, found.day, tzinfo=UTC)
    raise _unfit(value, "an age such as '1 d', or a timestamp")


def _interval(value: object) -> object:
    """The duration of a SQL interval; one with months has none."""
    if not isinstance(value, pa.MonthDayNano):
        return value
    if value.months:
        raise _unfit(value, "a length of time in days or less, for months differ")
    return timedelta(days=value.days, microseconds=value.nanoseconds // 1000)


def _version(value: object) -> int | str:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise _unfit(value, "the id of a snapshot or the name of a tag")
    return value


def _names(value: object) -> tuple[str, ...]:
    if (
        isinstance(value, Sequence)
        and not isinstance(value, (str, bytes))
        and all(isinstance(one, str) for one in value)
    ):
        return tuple(value)
    names = tuple(part.strip() for part in _text(value).split(","))
    if not all(names):
        raise _unfit(value, "names separated by commas")
    return names


def _pattern(value: object) -> re.Pattern[str]:
    try:
        return re.compile(_text(value))
    except re.error as error:
        raise InvalidError(f"{value!r} is no regular expression: {error}") from error


def _options(value: object) -> dict[str, str]:
    if isinstance(value, Mapping):
        return {str(key): str(text) for key, text in value.items()}
    if isinstance(value, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
        return {str(key): str(text) for key, text in value}
    found: dict[str, str] = {}
    key = ""
    for part in _text(value).split(","):
        name, equals, text = part.partition("=")
        # A comma may also be part of a value, as in a list of columns.
        if not equals and key:
            found[key] += f",{part}"
            continue
        key = name.strip()
        if not equals or not key:
            raise _unfit(value, "options such as 'key=value,key=value'")
        found[key] = text.strip()
    return found


def _partitions(value: object) -> PartitionSpecs:
    return tuple(_partition(part, value) for part in _text(value).split(";") if part.strip())


def _one_partition(value: object) -> dict[str, str | None]:
    return _partition(_text(value), value)


def _partition(text: str, whole: object) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for part in text.split(","):
        name, equals, written = (piece.strip() for piece in part.partition("="))
        if not equals or not name:
            raise _unfit(whole, "partitions such as 'dt=2026-01-01,h=7'")
        if len(written) > 1 and written[0] == written[-1] and written[0] in "'\"":
            written = written[1:-1]
        found[name] = None if written == DEFAULT_PARTITION else written
    return found


def _unfit(value: object, expected: str) -> InvalidError:
    return InvalidError(f"expected {expected}, found {value!r}")


TEXT = ValueKind("text", _text)
TABLE = ValueKind("table", _text)
NUMBER = ValueKind("number", _number)
FLAG = ValueKind("boolean", _flag)
MOMENT = ValueKind("timestamp", _moment)
LENGTH = ValueKind("duration", _length)
AGE = ValueKind("age", _age)
VERSION = ValueKind("snapshot id or tag", _version)
NAMES = ValueKind("names", _names)
PATTERN = ValueKind("regular expression", _pattern)
OPTIONS = ValueKind("options", _options)
PARTITIONS = ValueKind("partitions", _partitions)
PARTITION = ValueKind("partition", _one_partition)
