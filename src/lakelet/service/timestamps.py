"""Points in time as texts: RFC 3339 in, microseconds since 1970 in UTC, RFC 3339 out."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from lakelet.errors import InvalidError

DAY_US = 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LEAST_US, _MOST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
_MICROSECOND = timedelta(microseconds=1)
# Digits beyond the sixth may be zeros: they say nothing finer than a microsecond.
_FORM = re.compile(r"(\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,6})?)(\d*)([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def parse_timestamp(text: object) -> int:
    """The microseconds of an RFC 3339 text; InvalidError for another form, and for what is finer than a microsecond."""
    found = _FORM.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise InvalidError(
            f"timestamp: expected RFC 3339 with a zone, such as 2026-01-31T10:00:00Z, found {_shown(text)}"
        )
    finer = found[2]
    if finer.strip("0"):
        raise InvalidError(f"timestamp: expected microseconds at the finest, found {_shown(text)}")
    try:
        since = datetime.fromisoformat(f"{found[1]}{found[3]}".upper() if finer else found[0].upper()) - _EPOCH
    except (ValueError, OverflowError) as error:
        raise InvalidError(f"timestamp: {_shown(text)} is no point in time: {error}") from None
    moment = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    if not _LEAST_US <= moment <= _MOST_US:
        # Its own zone has a year for it, UTC has none.
        raise InvalidError(f"timestamp: expected the years 1 to 9999 in UTC, found {_shown(text)}")
    return moment


def moment_us(moment: datetime) -> int:
    """The microseconds of a moment; one without a zone is in UTC."""
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def check_timestamp_us(moment_us: int) -> int:
    """The microseconds themselves; InvalidError unless they are in the years 1 to 9999."""
    try:
        _EPOCH + timedelta(microseconds=moment_us)
    except OverflowError:
        raise InvalidError(f"timestamp: expected the years 1 to 9999, found {moment_us} µs since 1970") from None
    return moment_us


def timestamp_text(moment_us: int) -> str:
    """RFC 3339 in UTC, with a fraction where there is one."""
    moment = _EPOCH + timedelta(microseconds=moment_us)
    return moment.isoformat(timespec="microseconds" if moment_us % 1_000_000 else "seconds").replace("+00:00", "Z")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
