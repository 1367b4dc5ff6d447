"""How old the pointers may be that a query is answered with.

strict            revalidated at every query (the default)
bounded(5000)     at most 5,000 ms old
manual            as they were, until REFRESH or a change by this process
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lakelet.options.kinds import NotAValueError

_BOUNDED = re.compile(r"bounded\(\s*(\d{1,12})\s*\)")


@dataclass(frozen=True, slots=True)
class Staleness:
    """The greatest age of a pointer in milliseconds: 0 is strict, None without limit."""

    max_age_ms: int | None = 0

    @property
    def is_strict(self) -> bool:
        """Whether every use revalidates."""
        return self.max_age_ms == 0

    def allows(self, age_ms: float) -> bool:
        """Whether a pointer that was validated so long ago may be used."""
        return not self.is_strict and (self.max_age_ms is None or age_ms <= self.max_age_ms)

    def __str__(self) -> str:
        if self.is_strict:
            return "strict"
        return "manual" if self.max_age_ms is None else f"bounded({self.max_age_ms})"


STRICT = Staleness()
MANUAL = Staleness(None)


def parse_staleness(text: str) -> Staleness:
    """The staleness that a text names; NotAValueError for any other."""
    word = text.strip().lower()
    if word == "strict":
        return STRICT
    if word == "manual":
        return MANUAL
    match = _BOUNDED.fullmatch(word)
    if match is None:
        raise NotAValueError(text)
    return Staleness(int(match[1]))
