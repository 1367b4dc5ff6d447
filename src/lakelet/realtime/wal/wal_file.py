"""A write-ahead log that is appended to.

What is acknowledged is in front of `size`. Bytes of an append that failed or was interrupted are behind it, and are cut off
before the next one, so that a log never has a torn record in its middle.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress

from lakelet.errors import UnavailableError
from lakelet.storage.disk.system_errors import SystemErrors


class WalFile:
    """The log of the active memtable. One thread appends at a time; any may sync."""

    def __init__(self, path: str, descriptor: int, size: int) -> None:
        self.path = path
        self.size = size
        self.broken = False
        self.syncs = 0
        self._descriptor = descriptor
        self._synced = size
        self._has_tail = False
        self._guard = threading.Lock()

    def append(self, data: bytes) -> None:
        """Write records behind the others, all or none; UnavailableError where the disk is full or fails."""
        self._check()
        with SystemErrors(self.path):
            if self._has_tail:
                os.ftruncate(self._descriptor, self.size)
            self._has_tail = True
            at, view = self.size, memoryview(data)
            try:
                while view:
                    written = os.pwrite(self._descriptor, view, at)
                    at, view = at + written, view[written:]
            except OSError:
                # On a full disk others need the room; where this fails the next append does it.
                with suppress(OSError):
                    os.ftruncate(self._descriptor, self.size)
                raise
        self.size, self._has_tail = at, False

    def sync(self) -> None:
        """Make everything that was appended durable. After a failed sync the log takes no further record: the system may have
        dropped what it could not write, and would answer the next sync with success."""
        self._check()
        with self._guard:
            end = self.size
            if self._synced == end or self._descriptor < 0:
                return
            try:
                with SystemErrors(self.path):
                    os.fsync(self._descriptor)
            except BaseException:
                self.broken = True
                raise
            self._synced = end
            self.syncs += 1

    def withdraw(self, size: int) -> None:
        """Take back, durably, what was appended behind `size` and not acknowledged. Where that fails the log takes no further
        record, and a crash may leave it with those bytes."""
        with self._guard:
            self.size = min(self.size, size)
            self._synced = min(self._synced, size)
            try:
                os.ftruncate(self._descriptor, self.size)
                os.fsync(self._descriptor)
            except OSError:
                self.broken = True
            self._has_tail = False

    def close(self) -> None:
        """Close the file; once is enough."""
        with self._guard:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1

    def _check(self) -> None:
        if self.broken:
            raise UnavailableError(f"{self.path}: the log could not be synced to disk and takes no further rows")
