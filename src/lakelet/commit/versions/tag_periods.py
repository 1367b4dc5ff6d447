"""The policy of automatic tags, without I/O: the period and name of each tag, and when one is due.

A tag is named after the period whose rows it completes. With daily tags the first snapshot of November 16 (after the delay
for late rows) becomes tag `2026-11-15`:

    snapshots      …  15th 23:58   16th 00:03   16th 00:10  …
    tag                             2026-11-15

Names are Paimon's, for other writers continue from the last of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lakelet.errors import InvalidError
from lakelet.options import (
    TAG_AUTOMATIC_COMPLETION,
    TAG_AUTOMATIC_CREATION,
    TAG_CREATION_DELAY,
    TAG_CREATION_PERIOD,
    TAG_CREATION_PERIOD_DURATION,
    TAG_PERIOD_FORMATTER,
    TableOptions,
)

_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)
_MILLISECOND = timedelta(milliseconds=1)
_START = datetime(1970, 1, 1)
_DASHED_DAY, _PLAIN_DAY = "{0:04}-{1:02}-{2:02}", "{0:04}{1:02}{2:02}"
_SPELLINGS = {
    ("daily", "with_dashes"): _DASHED_DAY,
    ("daily", "without_dashes"): _PLAIN_DAY,
    ("daily", "without_dashes_and_spaces"): _PLAIN_DAY,
    ("hourly", "with_dashes"): _DASHED_DAY + " {3:02}",
    ("hourly", "without_dashes"): _PLAIN_DAY + " {3:02}",
    ("hourly", "without_dashes_and_spaces"): _PLAIN_DAY + "{3:02}",
}
_MINUTES = _PLAIN_DAY + "{3:02}{4:02}"


@dataclass(frozen=True, slots=True)
class TagPeriods:
    """Periods of one length and the names of their tags; `spelling` is a format of year, month, day, hour and minute.

    Times are local ones, without a zone.
    """

    length: timedelta
    spelling: str
    delay: timedelta = timedelta()
    completes: bool = False

    @staticmethod
    def of(options: TableOptions) -> TagPeriods | None:
        """What the options ask for; None where no tags are made by period."""
        if options.get(TAG_AUTOMATIC_CREATION) not in ("process-time", "watermark"):
            return None
        given, period = options.get(TAG_CREATION_PERIOD_DURATION), options.get(TAG_CREATION_PERIOD)
        if given is not None:
            length, spelling = given, _MINUTES
        elif period == "two-hours":
            length, spelling = 2 * _HOUR, _SPELLINGS["hourly", "with_dashes"]
        else:
            length = _DAY if period == "daily" else _HOUR
            spelling = _SPELLINGS[period, options.get(TAG_PERIOD_FORMATTER)]
        delay = options.get(TAG_CREATION_DELAY)
        if length < _MILLISECOND or delay >= length:
            raise InvalidError(
                f"automatic tags need a period of at least 1 ms that is longer than '{TAG_CREATION_DELAY.name}'; "
                f"found a period of {length} and a delay of {delay}"
            )
        return TagPeriods(length, spelling, delay, options.get(TAG_AUTOMATIC_COMPLETION))

    def name(self, period: datetime) -> str:
        """The name of the tag of a period, given by its start."""
        return self.spelling.format(period.year, period.month, period.day, period.hour, period.minute)

    def period(self, name: str) -> datetime | None:
        """The period of a tag of that name; None for a name that no automatic tag has."""
        # What follows a day is ignored, so that daily tags continue from hourly ones.
        text = name.partition(" ")[0] if self.spelling in (_DASHED_DAY, _PLAIN_DAY) else name
        match = _pattern(self.spelling).fullmatch(text)
        if match is None:
            return None
        try:
            year, month, day, hour, minute = (*map(int, match.groups()), 0, 0)[:5]
            return datetime(year, month, day, hour, minute)
        except ValueError:
            return None

    def after(self, period: datetime) -> datetime:
        """The next period."""
        return period + self.length

    def ended_before(self, moment: datetime) -> datetime:
        """The last period that had ended at that time."""
        return _START + ((moment - _START) // self.length - 1) * self.length

    def ready(self, next_period: datetime) -> datetime:
        """The time from which on a snapshot completes the next period."""
        return next_period + self.length + self.delay

    def due(self, next_period: datetime | None, moment: datetime) -> datetime | None:
        """The period for which to tag a snapshot made at that time; None for none.

        `next_period` follows that of the newest automatic tag, where there is one. Periods without a snapshot of their own
        have no tag, unless they are completed: then each further snapshot is the tag of one that was missed.
        """
        if next_period is None:
            return self.ended_before(moment)
        if moment < self.ready(next_period):
            return None
        return next_period if self.completes else self.ended_before(moment)


def local_time(time_ms: int) -> datetime:
    """Convert a time to local time, without a zone."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).astimezone().replace(tzinfo=None)


def _pattern(spelling: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{(\d):0(\d)\}", r"([0-9]{\2})", spelling))
