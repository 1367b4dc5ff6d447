"""The memtables of a writer, oldest first: the last one is active, the others wait for their flush."""

from __future__ import annotations

import threading

from lakelet.realtime.memtable import Memtable, MemtableState


class Memtables:
    """A short queue. `changed` guards it and the memtables in it, and is notified of every change."""

    def __init__(self, active: Memtable) -> None:
        self.changed = threading.Condition()
        self._tables = [active]

    @property
    def active(self) -> Memtable:
        """The one that takes rows."""
        return self._tables[-1]

    @property
    def all(self) -> tuple[Memtable, ...]:
        """All of them, oldest first."""
        return tuple(self._tables)

    def oldest_sealed(self) -> Memtable | None:
        """The one to be flushed next, None where only the active one is left."""
        return self._tables[0] if len(self._tables) > 1 else None

    def is_flushed(self, sequence_number: int) -> bool:
        """Whether all up to that number are gone."""
        return self._tables[0].sequence_number > sequence_number

    def seal(self, following: Memtable) -> None:
        """Make another one active; the one before takes no further rows."""
        self.active.state = MemtableState.IMMUTABLE
        self._tables.append(following)
        self.changed.notify_all()

    def drop_oldest(self, committed_in: int | None) -> None:
        """Remove the one that was flushed."""
        flushed = self._tables.pop(0)
        flushed.committed_in = committed_in
        flushed.state = MemtableState.FLUSHED
        self.changed.notify_all()

    def find(self, key: bytes) -> tuple[Memtable, bytes] | None:
        """The newest value of a key, and its memtable."""
        for memtable in reversed(self._tables):
            value = memtable.get(key)
            if value is not None:
                return memtable, value
        return None
