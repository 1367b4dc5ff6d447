"""Single-flight loading: of any number of threads that miss the same key at the same time, one loads and all get its result.

Only for values that never change under their key: whoever joins a load gets what it read, which may have been read before the
caller asked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class _Flight(Generic[Value]):
    """A load in progress."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.result: tuple[Value] | None = None
        self.error: BaseException | None = None
        self.waiting = 0


class SingleFlight(Generic[Value]):
    """Loads in progress by key."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[Hashable, _Flight[Value]] = {}

    def load(self, key: Hashable, make: Callable[[], Value]) -> tuple[Value, bool]:
        """The value, and whether this call loaded it. A failure is given to all who wait, and is not kept."""
        while True:
            with self._lock:
                flight = self._flights.get(key)
                leads = flight is None
                if flight is None:
                    flight = self._flights[key] = _Flight()
                else:
                    flight.waiting += 1
            if leads:
                return self._lead(key, flight, make), True
            flight.done.wait()
            if flight.result is not None:
                return flight.result[0], False
            # An interrupt stops the thread that it was meant for; the others try for themselves.
            if isinstance(flight.error, Exception):
                raise flight.error

    def waiting(self, key: Hashable) -> int:
        """How many threads wait for a load that is under way."""
        with self._lock:
            flight = self._flights.get(key)
            return 0 if flight is None else flight.waiting

    def _lead(self, key: Hashable, flight: _Flight[Value], make: Callable[[], Value]) -> Value:
        try:
            made = make()
            flight.result = (made,)
            return made
        except BaseException as error:
            flight.error = error
            raise
        finally:
            with self._lock:
                self._flights.pop(key, None)
            flight.done.set()
