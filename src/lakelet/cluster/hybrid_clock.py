"""A hybrid logical clock: numbers that follow the time of day, and never go back.

    (milliseconds since 1970) << 21 | counter          a BIGINT until 2109

A number that is taken is greater than all that this node has taken or seen before, whatever its clock says. So of two writes of a
key, the one that came later at this node, or after this node had heard of the other, is the later one everywhere.
"""

from __future__ import annotations

import threading

from lakelet.clock import Clock, SystemClock

_COUNTER_BITS = 21


class HybridClock:
    """Numbers for the order of writes; for any number of threads."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._next = 0

    def take(self, count: int = 1) -> int:
        """The first of `count` consecutive numbers that nobody else is given here."""
        now = self._clock.now_ms() << _COUNTER_BITS
        with self._lock:
            first = max(self._next, now)
            self._next = first + count
            return first

    def observe(self, number: int) -> None:
        """Take only numbers beyond this one from now on."""
        with self._lock:
            self._next = max(self._next, number + 1)

    @property
    def last(self) -> int:
        """The greatest number that was taken or seen, -1 for none."""
        return self._next - 1
