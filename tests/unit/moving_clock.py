"""A clock that tests move by hand."""

from dataclasses import dataclass

START_MS = 1_800_000_000_000


@dataclass(slots=True)
class MovingClock:
    """Stands still but for a millisecond per look, until it is moved."""

    now: int = START_MS

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        self.now += 1
        return self.now

    def monotonic(self) -> float:
        """Seconds from an arbitrary start."""
        return self.now / 1000

    def sleep(self, seconds: float) -> None:
        """Moves on instead of waiting."""
        self.now += round(seconds * 1000)

    def move(self, *, days: float = 0, hours: float = 0, minutes: float = 0) -> None:
        """Lets time pass."""
        self.now += round(((days * 24 + hours) * 60 + minutes) * 60_000)
