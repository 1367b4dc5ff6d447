"""The memtables of a writer, oldest first: the last one is active, the others wait for their flush."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from lakelet.realtime.memtable import Memtable, MemtableState


@dataclass(frozen=True, slots=True)
class SeenKeys:
    """What memory held of keys at one moment: values, None where there was none, and the number of the oldest memtable."""

    keys: tuple[bytes, ...]
    values: tuple[bytes | None, ...]
    oldest: int
    counts: tuple[int, ...] = ()
    """In a folding table the numbers of versions."""


class Memtables:
    """A short queue. `changed` guards it and the memtables in it, and is notified of every change."""

    def __init__(self, active: Memtable, base: int | None = None) -> None:
        """With a `base`, the snapshot that was newest when the first was opened, another node may commit the rows of any of them
        from a copy of their logs, before they are flushed here."""
        self.changed = threading.Condition()
        self._tables = [active]
        self._base = active.flush_base = base

    @property
    def active(self) -> Memtable:
        """The one that takes rows."""
        return self._tables[-1]

    @property
    def all(self) -> tuple[Memtable, ...]:
        """All of them, oldest first."""
        return tuple(self._tables)

    def next_sealed(self) -> Memtable | None:
        """The oldest one to be flushed that nobody has taken yet."""
        return next((table for table in self._tables[:-1] if not table.is_taken), None)

    def is_oldest(self, memtable: Memtable) -> bool:
        """Whether all before it are committed."""
        return self._tables[0] is memtable

    def rows_before(self, memtable: Memtable) -> int:
        """The rows of all that are to be committed before one."""
        return sum(len(table) for table in self._tables if table.sequence_number < memtable.sequence_number)

    def is_flushed(self, sequence_number: int) -> bool:
        """Whether all up to that number are gone."""
        return self._tables[0].sequence_number > sequence_number

    def seal(self, following: Memtable) -> None:
        """Make another one active; the one before takes no further rows."""
        self.active.state = MemtableState.IMMUTABLE
        following.flush_base = self._base
        self._tables.append(following)
        self.changed.notify_all()

    def drop_oldest(self, committed_in: int | None) -> None:
        """Remove the one that was flushed."""
        flushed = self._tables.pop(0)
        if self._base is not None and committed_in is not None:
            # A memtable that is opened from now on is committed behind it, whoever commits it.
            self._base = max(self._base, committed_in)
        flushed.committed_in = committed_in
        flushed.state = MemtableState.FLUSHED
        self.changed.notify_all()

    def find(self, key: bytes) -> tuple[Memtable, bytes] | None:
        """The value of a key that counts, and its memtable: the newest, or the oldest where first rows stay."""
        for memtable in self._tables if self.active.keeps_first else reversed(self._tables):
            value = memtable.get(key)
            if value is not None:
                return memtable, value
        return None

    def find_each(self, key: bytes) -> list[tuple[Memtable, bytes]]:
        """The values of a key in all memtables, oldest first."""
        return [(memtable, value) for memtable in self._tables for value in memtable.versions(key)]

    def seen(self, keys: Sequence[bytes], hits: Sequence[tuple[Memtable, bytes] | None]) -> SeenKeys:
        """What was just found of keys, to be compared later."""
        values = tuple(None if hit is None else hit[1] for hit in hits)
        return SeenKeys(tuple(keys), values, self._tables[0].sequence_number, self._counts(keys))

    def is_unchanged(self, seen: SeenKeys) -> bool:
        """Whether the keys still have the values that were seen. After a flush nobody can tell: rows may have gone through memory
        into the table meanwhile."""
        if self._tables[0].sequence_number != seen.oldest:
            return False
        if self._counts(seen.keys) != seen.counts:
            return False
        hits = map(self.find, seen.keys)
        return all((None if hit is None else hit[1]) == value for hit, value in zip(hits, seen.values, strict=True))

    def _counts(self, keys: Sequence[bytes]) -> tuple[int, ...]:
        return tuple(len(self.find_each(key)) for key in keys) if self.active.folds else ()
