"""Parse points in time and durations, as callers write them.

"2026-01-01T00:00:00Z", datetime(2026, 1, 1, tzinfo=UTC)     a moment; without a zone in UTC
"1 d", "36 h", "PT1H", timedelta(days=1)                     a length; as an age: that long ago
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from lakelet.errors import InvalidError
from lakelet.options.kinds import DURATION

Moment: TypeAlias = datetime | str | int
Length: TypeAlias = timedelta | str
Age: TypeAlias = str | timedelta | datetime


def milliseconds(timestamp: object) -> int:
    """Milliseconds since 1970; text and datetimes without a zone are in UTC."""
    if isinstance(timestamp, int) and not isinstance(timestamp, bool):
        return timestamp
    if not isinstance(timestamp, (str, datetime)):
        raise InvalidError(
            f"timestamp {timestamp!r}: expected a datetime, ISO 8601 text or milliseconds, found {type(timestamp).__name__}"
        )
    try:
        moment = datetime.fromisoformat(timestamp) if isinstance(timestamp, str) else timestamp
    except ValueError as error:
        raise InvalidError(f"timestamp {timestamp!r}: expected ISO 8601 such as 2026-01-01T00:00:00Z") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def length(value: object, what: str) -> timedelta:
    """A duration, given as such or as text like '1 d' or 'PT1H'; `what` is the argument's name."""
    found = value if isinstance(value, timedelta) else None
    if isinstance(value, str):
        try:
            found = DURATION.convert(value.strip())
        except ValueError:
            found = None
    if found is None or found < timedelta():
        raise InvalidError(f"{what} {value!r}: expected a timedelta or {DURATION.expected}, not negative")
    return found


def past_ms(age: Age, now_ms: int, what: str) -> int:
    """Milliseconds since 1970; InvalidError, naming `what`, for anything that is no point in the past."""
    moment_ms = _moment_ms(age, now_ms)
    if moment_ms is None:
        raise InvalidError(
            f"{what} {age!r}: expected an age such as '1 d' or a timedelta, or a moment as a datetime or ISO 8601 text"
        )
    if moment_ms > now_ms:
        raise InvalidError(f"{what} {age!r}: expected a point in the past")
    return moment_ms


def _moment_ms(age: object, now_ms: int) -> int | None:
    if isinstance(age, str):
        with suppress(ValueError):
            age = DURATION.convert(age.strip())
    if isinstance(age, timedelta):
        return now_ms - round(age.total_seconds() * 1000)
    # A bare number may be meant as days or as milliseconds.
    if not isinstance(age, (str, datetime)):
        return None
    try:
        return milliseconds(age)
    except InvalidError:
        return None
