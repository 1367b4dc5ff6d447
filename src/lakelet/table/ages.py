"""Points in the past, as callers of clean-up name them: an age, or a moment.

"1 d", "36 h", "PT1H", timedelta(days=1)                     that long ago
"2026-01-01T00:00:00Z", datetime(2026, 1, 1, tzinfo=UTC)     then; without a zone in UTC
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypeAlias

from lakelet.errors import InvalidError
from lakelet.options.kinds import DURATION
from lakelet.table.moments import milliseconds

Age: TypeAlias = str | timedelta | datetime


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
