"""Points in time and lengths of it, as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lakelet.errors import InvalidError
from lakelet.options.kinds import DURATION

Moment = datetime | str | int
Length = timedelta | str


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
    """A length of time, given as such or as text like '1 d' or 'PT1H'; `what` is the argument's name."""
    found = value if isinstance(value, timedelta) else None
    if isinstance(value, str):
        try:
            found = DURATION.convert(value.strip())
        except ValueError:
            found = None
    if found is None or found < timedelta():
        raise InvalidError(f"{what} {value!r}: expected a timedelta or {DURATION.expected}, not negative")
    return found
