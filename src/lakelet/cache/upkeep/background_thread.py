"""A daemon thread that calls a function at an interval, until it is stopped or its owner is gone."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable
from typing import Any

_LOG = logging.getLogger(__name__)


class BackgroundThread:
    """Calls `run(owner)` every so many seconds. It does not keep its owner alive, and forked processes do not have it."""

    def __init__(self, owner: Any, run: Callable[[Any], object], seconds: float) -> None:
        self.seconds = seconds
        self._stop = threading.Event()
        target = weakref.ref(owner, lambda _: self._stop.set())
        self._thread = threading.Thread(
            target=_repeat,
            args=(target, run, min(seconds, threading.TIMEOUT_MAX), self._stop),
            name="lakelet-cache-refresh",
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        """Have it end; what it is doing is finished first."""
        self._stop.set()

    @property
    def is_alive(self) -> bool:
        """Whether it runs, in this process."""
        return self._thread.is_alive()

    def join(self, seconds: float) -> None:
        """Wait until it has ended."""
        self._thread.join(seconds)


def _repeat(target: weakref.ref[Any], run: Callable[[Any], object], seconds: float, stop: threading.Event) -> None:
    while not stop.wait(seconds):
        owner = target()
        if owner is None:
            return
        try:
            run(owner)
        except Exception as error:
            _LOG.warning("the cache could not be refreshed: %s", error)
        del owner
