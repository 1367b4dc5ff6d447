"""Parse the time that the values of a partition denote.

    partition.timestamp-pattern = $dt $hour:00:00      dt=2026-01-01, hour=7   ─→  2026-01-01 07:00:00
    partition.timestamp-formatter = yyyyMMdd           dt=20260101             ─→  2026-01-01 00:00:00

Without a pattern the first partition column is the time; without a formatter it is text such as 2026-1-1 or 2026-01-01
07:00:00.5, where as in Java a month 13 or an hour 25 carries over. The letters of a formatter are those of Java: y or u, M,
d, H, h, a, m, s, S, and text in single quotes. DATE and TIMESTAMP columns are read as such text too; Java cannot parse their
time at all and never expires them by it.

Pure functions; a value that is no time gives None.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakelet.errors import InvalidError

_DEFAULT = re.compile(r"(-?\d{1,10})-(\d{1,2})-(\d{1,2})(?: (\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?)?")
_PARTS = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z'])")
_LETTERS = {"y": "year", "u": "year", "M": "month", "d": "day", "H": "hour", "h": "half", "m": "minute", "s": "second"}


@dataclass(frozen=True, slots=True)
class PartitionTime:
    """How the time of a partition is parsed; InvalidError for a formatter with unknown letters."""

    pattern: str | None = None
    formatter: str | None = None

    def __post_init__(self) -> None:
        if self.formatter is not None:
            _expression(self.formatter)

    def of(self, values: Mapping[str, str | None]) -> datetime | None:
        """The time of a partition by the text of its columns, in their order; None if it has none."""
        text = next(iter(values.values())) if self.pattern is None else self._filled(self.pattern, values)
        if text is None:
            return None
        try:
            return _default_time(text) if self.formatter is None else _formatted_time(text, self.formatter)
        except (ValueError, OverflowError):
            return None

    @staticmethod
    def _filled(pattern: str, values: Mapping[str, str | None]) -> str | None:
        """The pattern with `$column` replaced, the longest name that fits first; None if such a value is NULL."""
        names = sorted(values, key=len, reverse=True)
        if not names:
            return pattern
        found = re.compile(r"\$(" + "|".join(map(re.escape, names)) + ")")
        if any(values[match[1]] is None for match in found.finditer(pattern)):
            return None
        return found.sub(lambda match: values[match[1]] or "", pattern)


def _default_time(text: str) -> datetime | None:
    match = _DEFAULT.fullmatch(text)
    if match is None:
        return None
    year, month, day, *time = (int(part) if part else 0 for part in match.groups()[:6])
    fraction = (match[7] or "").ljust(9, "0")[:6]
    years, months = divmod(month - 1, 12)
    first = datetime(year + years, months + 1, 1)
    hours, minutes, seconds = time
    return first + timedelta(
        days=day - 1, hours=hours, minutes=minutes, seconds=seconds, microseconds=int(fraction or "0")
    )


def _formatted_time(text: str, formatter: str) -> datetime | None:
    match = re.compile(_expression(formatter)).fullmatch(text)
    if match is None:
        return None
    found = match.groupdict()
    if not {"year", "month", "day"} <= found.keys():
        return None
    year = int(found["year"]) + (2000 if len(found["year"]) == 2 else 0)
    month, day = int(found["month"]), int(found["day"])
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return None
    hour = int(found.get("hour") or 0)
    if "half" in found:
        hour = int(found["half"]) % 12 + (12 if found.get("noon", "").upper() == "PM" else 0)
    fraction = int((found.get("fraction") or "0").ljust(6, "0")[:6])
    # A day past the end of its month is the month's last one.
    day = min(day, calendar.monthrange(year, month)[1])
    return datetime(year, month, day, hour, int(found.get("minute") or 0), int(found.get("second") or 0), fraction)


def _expression(formatter: str) -> str:
    """A regular expression for the times that a formatter of Java describes."""
    parts: list[str] = []
    at = 0
    for match in _PARTS.finditer(formatter):
        if match.start() != at:
            break
        at = match.end()
        quoted, letter, other = match.groups()
        count = match.end() - match.start()
        if letter is None:
            literal = other if other is not None else (quoted.replace("''", "'") or "'")
            parts.append(re.escape(literal))
        elif letter == "S":
            parts.append(rf"(?P<fraction>\d{{{count}}})")
        elif letter == "a" and count == 1:
            parts.append("(?P<noon>[AaPp][Mm])")
        elif letter in _LETTERS and count <= (4 if letter in "yu" else 2):
            digits = {1: r"\d{1,2}" if letter not in "yu" else r"\d{1,9}"}.get(count, rf"\d{{{count}}}")
            parts.append(rf"(?P<{_LETTERS[letter]}>{digits})")
        else:
            raise _unknown(formatter)
    if at != len(formatter) or any(sum(f"<{name}>" in part for part in parts) > 1 for name in set(_LETTERS.values())):
        raise _unknown(formatter)
    return "".join(parts)


def _unknown(formatter: str) -> InvalidError:
    return InvalidError(
        f"option 'partition.timestamp-formatter': {formatter!r} is no pattern of the letters y, M, d, H, h, a, m, s, S, each "
        "field once, and text in single quotes"
    )
