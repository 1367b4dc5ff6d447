"""The clock: the only place that reads the system's time, so that tests can inject another."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall-clock time, monotonic time and sleeping, as an injected dependency."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start, never going back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Waits."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    # Reads by key call it for each of them.
    monotonic = staticmethod(time.monotonic)

    def sleep(self, seconds: float) -> None:
        """Waits in this thread."""
        time.sleep(seconds)


def shown_time(time_ms: int) -> str:
    """Format a time as UTC text with milliseconds; the bare number where it is outside the calendar."""
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms since 1970"
