"""A hybrid logical clock: numbers that follow the time of day, and never go back.

    (milliseconds since 1970) << 21 | counter          a BIGINT until 2109

A number that is taken is greater than all that this node has taken or seen before, whatever its clock says. So of two writes of a
key, the one that came later at this node, or after this node had heard of the other, is the later one everywhere.

A node that dies may have taken numbers that nobody has heard of. So numbers follow the fastest clock of all nodes: each asks the
others for the time, and counts as far ahead as the fastest is. What is written after a death wins against what was before.

    own time when it asks ── time there ── own time when the answer comes        ahead by at most (time there − own time before)

Of the time itself the greatest difference that is possible is taken, of how far another counts ahead the least: else two nodes
would drive each other on, by the time that a question takes.
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
        self._ahead_ms = 0

    def take(self, count: int = 1) -> int:
        """The first of `count` consecutive numbers that nobody else is given here."""
        now_ms = self._clock.now_ms()
        with self._lock:
            now = (now_ms + self._ahead_ms) << _COUNTER_BITS
            first = max(self._next, now)
            self._next = first + count
            return first

    def observe(self, number: int) -> None:
        """Take only numbers beyond this one from now on."""
        with self._lock:
            self._next = max(self._next, number + 1)

    def now_ms(self) -> int:
        """The time of day here."""
        return self._clock.now_ms()

    @property
    def ahead_ms(self) -> int:
        """How far numbers are ahead of it."""
        return self._ahead_ms

    def follow(self, now_ms: int, ahead_ms: int, asked_ms: int) -> None:
        """Count as far ahead as a node that was asked at `asked_ms`, and has just told its own time."""
        if not now_ms:
            # A node that does not tell.
            return
        most, least = now_ms - asked_ms + 1, now_ms + ahead_ms - self._clock.now_ms()
        with self._lock:
            self._ahead_ms = max(self._ahead_ms, most, least)

    @property
    def last(self) -> int:
        """The greatest number that was taken or seen, -1 for none."""
        return self._next - 1
