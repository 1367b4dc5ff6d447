"""Retry store calls that failed with UnavailableError, with exponential back-off.

Place in the data path: around an S3 store. It owns the back-off: the wait before attempt n is a random part
of `first_wait_ms` x 2^n, at most `longest_wait_ms`, so that clients that failed together do not return
together. It retries UnavailableError and nothing else, and never

- `put_if_absent`: after an unknown outcome a second try would find our own object and call it lost; the
  commit looks instead;
- `sync`: a second try may be answered with success although pages were dropped;
- `move_folder`: a second try would find the half-made target of the first;
- a file being written through `open_output`, whose bytes are gone.
"""

from collections.abc import Callable
from typing import TypeVar

from lakelet.clock import SystemClock
from lakelet.errors import InvalidError, UnavailableError
from lakelet.ids import RandomIds
from lakelet.storage.decorated import DecoratedStore
from lakelet.storage.store import ObjectStore

T = TypeVar("T")

_clock = SystemClock()
_ids = RandomIds()
_NEVER = frozenset({"put_if_absent", "move_folder", "sync"})


class RetryingStore(DecoratedStore):
    """Tries each call up to `attempts` times; `sleep` takes seconds, `jitter` gives a number in [0, 1)."""

    def __init__(
        self,
        store: ObjectStore,
        *,
        attempts: int = 3,
        sleep: Callable[[float], None] = _clock.sleep,
        jitter: Callable[[], float] = _ids.jitter,
        first_wait_ms: int = 100,
        longest_wait_ms: int = 5_000,
    ) -> None:
        super().__init__(store)
        if attempts < 1:
            raise InvalidError(f"attempts is {attempts}; expected at least 1")
        self._attempts = attempts
        self._sleep = sleep
        self._jitter = jitter
        self._first_wait_ms = first_wait_ms
        self._longest_wait_ms = longest_wait_ms

    def _around(self, call: str, path: str, action: Callable[[], T]) -> T:
        if call not in _NEVER:
            for attempt in range(self._attempts - 1):
                try:
                    return action()
                except UnavailableError:
                    longest = min(self._longest_wait_ms, self._first_wait_ms * 2**attempt)
                    self._sleep(longest * self._jitter() / 1000)
        return action()
