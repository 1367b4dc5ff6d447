"""The turns of a single node: everything is its own, once at a time, when it is due."""

from __future__ import annotations

from lakelet.clock import Clock, SystemClock
from lakelet.cluster.lease import Lease
from lakelet.cluster.turn import NotNow, Turn

_BUSY_SECONDS = 5.0


class EmbeddedTurns:
    """Gives all turns to one holder."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._monotonic = (clock or SystemClock()).monotonic
        self._running: set[str] = set()
        self._due: dict[str, float] = {}
        self._fence = 0

    async def begin(self, name: str, *, when_due: bool = True) -> Turn | NotNow:
        """Begin some work, unless it is running or not due."""
        if name in self._running:
            return NotNow(_BUSY_SECONDS)
        left = self._due.get(name, 0.0) - self._monotonic()
        if when_due and name in self._due and left > 0:
            return NotNow(left)
        self._running.add(name)
        self._fence += 1
        return Turn(Lease(name, "local", self._fence))

    async def end(self, turn: Turn, *, due_in_seconds: float = 0.0) -> None:
        """End it."""
        self._running.discard(turn.name)
        if due_in_seconds > 0:
            self._due[turn.name] = self._monotonic() + due_in_seconds
