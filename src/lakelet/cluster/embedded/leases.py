"""Leases within one process."""

from __future__ import annotations

import threading

from lakelet.clock import Clock, SystemClock
from lakelet.cluster.lease import Lease


class LeaseBook:
    """Who holds which lease until when; for any number of threads."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self.lock = threading.Lock()
        self.held: dict[str, tuple[Lease, float]] = {}
        self.fence = 0


class EmbeddedLeases:
    """The leases of one holder; holders that share a book exclude each other."""

    def __init__(self, holder: str, book: LeaseBook | None = None) -> None:
        self._holder = holder
        self._book = book or LeaseBook()

    async def acquire(self, name: str, seconds: float) -> Lease | None:
        """The lease, unless another holder has it."""
        book, now = self._book, self._book.clock.monotonic()
        with book.lock:
            lease, until = book.held.get(name, (None, 0.0))
            if lease is None or until <= now:
                book.fence += 1
                lease = Lease(name, self._holder, book.fence)
            elif lease.holder != self._holder:
                return None
            book.held[name] = (lease, now + seconds)
            return lease

    async def renew(self, lease: Lease, seconds: float) -> bool:
        """Hold the lease for longer, unless it was lost."""
        book, now = self._book, self._book.clock.monotonic()
        with book.lock:
            held, until = book.held.get(lease.name, (None, 0.0))
            if held != lease or until <= now:
                return False
            book.held[lease.name] = (lease, now + seconds)
            return True

    async def release(self, lease: Lease) -> None:
        """Give the lease back."""
        with self._book.lock:
            held, _ = self._book.held.get(lease.name, (None, 0.0))
            if held == lease:
                del self._book.held[lease.name]
