"""Background compaction: a thread that compacts once or periodically.

    with table.compact_in_background(every=60) as compaction:
        …                                                       compacted at once, and 60 seconds after each run
                                                                leaving the block stops it

The thread is a daemon: a program that ends does not wait for it, and its uncommitted files become orphans. An error is kept and
raised by `result()`; a periodic compaction ends with its first error.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import TypeAlias

from lakelet.errors import InvalidError, UnavailableError
from lakelet.model.snapshot import Snapshot

Run: TypeAlias = Callable[[threading.Event], Snapshot | None]
Wait: TypeAlias = Callable[[threading.Event, float], bool]


class BackgroundCompaction:
    """A running background compaction. `run` does it once and stops early when the event it is given is set.

    `wait` waits for an event, up to a number of seconds, and returns whether it was set.
    """

    def __init__(self, run: Run, *, every: float | None = None, wait: Wait = threading.Event.wait) -> None:
        _check_seconds(every)
        self._run = run
        self._every = every
        self._wait = wait
        self._stop = threading.Event()
        self._ended = threading.Event()
        self._made: Snapshot | None = None
        self._error: BaseException | None = None
        threading.Thread(target=self._work, name="lakelet-compact", daemon=True).start()

    @property
    def done(self) -> bool:
        """Whether it has ended: completed, failed or cancelled."""
        return self._ended.is_set()

    def cancel(self) -> None:
        """Asks it to stop soon, without waiting. What is not committed by then is undone."""
        self._stop.set()

    def result(self, timeout: float | None = None) -> Snapshot | None:
        """Waits for its end; the last snapshot that it made, None where there was nothing to do. Its error, if there was one.

        UnavailableError if it is not done after `timeout` seconds; it goes on.
        """
        if not self._ended.wait(timeout):
            raise UnavailableError(f"the compaction is not done after {timeout} seconds")
        if self._error is not None:
            raise self._error
        return self._made

    def __enter__(self) -> BackgroundCompaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops one that repeats, waits for any, and raises what went wrong, unless the block has failed itself."""
        if kind is not None or self._every is not None:
            self.cancel()
        self._ended.wait()
        if kind is None:
            self.result()

    def _work(self) -> None:
        try:
            while not self._stop.is_set():
                self._made = self._run(self._stop) or self._made
                if self._every is None or self._wait(self._stop, self._every):
                    break
        except BaseException as error:
            self._error = error
        finally:
            self._ended.set()


def _check_seconds(every: object) -> None:
    is_number = isinstance(every, (int, float)) and not isinstance(every, bool) and every > 0
    if every is not None and not is_number:
        raise InvalidError(f"every {every!r}: expected seconds above 0")
