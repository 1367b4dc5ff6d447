"""Requests that were sent again, and that other nodes asked this one about: they may be written there.

A client that sends a request for the first time, under a key that it has just made, says so. It needs nobody's consent: nothing
that was written before is this request. But the request may be late: while it is on its way its client may give it up and
send it again, to a node that asks this one, which knows nothing of it yet, writes it, and dies. So a node remembers what it was
asked about, for longer than a request can be on its way, and believes no client before it runs for so long itself.
"""

from __future__ import annotations

from lakelet.clock import Clock

# Longer than any network or proxy keeps a request that its client has given up.
_LATE_SECONDS = 300.0
_KEPT_SECONDS = 3600.0
_MOST_KEPT = 100_000

_Place = tuple[str, bytes]


class ClaimsOfOthers:
    """Remembers the claims of others; used on the event loop alone."""

    def __init__(self, clock: Clock) -> None:
        monotonic = self._monotonic = clock.monotonic
        # Oldest first.
        self._asked: dict[_Place, float] = {}
        self._believes_from = monotonic() + _LATE_SECONDS

    def note(self, place: _Place) -> None:
        """Another node asks about a request that may have been sent before."""
        now = self._monotonic()
        self._asked.pop(place, None)
        self._asked[place] = now
        while len(self._asked) > _MOST_KEPT:
            oldest = next(iter(self._asked))
            if now - self._asked.pop(oldest) < _KEPT_SECONDS:
                # What is forgotten too early may be any request.
                self._believes_from = max(self._believes_from, now + _LATE_SECONDS)

    def is_first(self, place: _Place) -> bool:
        """Whether a request whose client says that it was not sent before was not."""
        now = self._monotonic()
        while self._asked and now - next(iter(self._asked.values())) >= _KEPT_SECONDS:
            del self._asked[next(iter(self._asked))]
        return now >= self._believes_from and place not in self._asked
