"""The invalidation bus: tells other caches of a change. A cluster brings its own; within a process there is this one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from lakelet.cache.invalidation import Invalidation

_LOG = logging.getLogger(__name__)
Receiver = Callable[[Invalidation], object]


class InvalidationBus(Protocol):
    """Delivers invalidations at least once, to all caches but the sender's; they are idempotent."""

    def send(self, invalidation: Invalidation, sender: object) -> None:
        """Tell all receivers but the sender's own."""
        ...

    def join(self, member: object, receiver: Receiver) -> Callable[[], None]:
        """Receive the invalidations that others send, until the function returned is called."""
        ...


class InProcessBus:
    """The bus between caches of one process. A receiver's failure is logged and keeps no other from being told."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._members: tuple[tuple[object, Receiver], ...] = ()

    def send(self, invalidation: Invalidation, sender: object) -> None:
        """Tell all receivers but the sender's own, in this thread."""
        for member, receiver in self._members:
            if member is sender:
                continue
            try:
                receiver(invalidation)
            except Exception as error:
                _LOG.warning("an invalidation of %s was not taken: %s", invalidation.table, error)

    def join(self, member: object, receiver: Receiver) -> Callable[[], None]:
        """Receive the invalidations that others send, until the function returned is called."""
        joined = (member, receiver)
        with self._lock:
            self._members = (*self._members, joined)

        def leave() -> None:
            with self._lock:
                self._members = tuple(one for one in self._members if one is not joined)

        return leave
