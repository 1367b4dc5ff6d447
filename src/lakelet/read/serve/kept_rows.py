"""Rows of a lookup file that were found, by the bytes of their keys: one that is asked for again is found by one hash.

    young ── the rows that were found last, or asked for again      up to half of the bytes
    old   ── what was young before                                  dropped when young is full again

That a key is absent is kept as well. As long as there is room everything is kept; then only keys that come a second time, so that
a program which reads a table once does not displace what another one reads again and again. A file never changes, so that nothing
here becomes wrong; the rows are in the one cache with the weight that they have there, and go with it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import Any

ABSENT: Any = {}
"""What is kept of a key without a row, and of one without a value."""
LEAST_BYTES = 1 << 16
# A place in a dict that is half full.
_PLACE_BYTES = 80
_DOORS = 1 << 14
_TAG_SHIFT = 20


class KeptRows:
    """Rows, or values, of one file within `most_bytes`. `young` is read without a lock; `touched` is for the cache: how many
    values had been put there when these were used."""

    __slots__ = (
        "__weakref__",
        "_doors",
        "_known_bytes",
        "_lock",
        "_most",
        "_old",
        "_old_bytes",
        "_young_bytes",
        "touched",
        "young",
    )

    def __init__(self, most_bytes: int) -> None:
        self.young: dict[bytes, Any] = {}
        self.touched = 0
        self._old: dict[bytes, Any] = {}
        self._young_bytes = self._old_bytes = self._known_bytes = 0
        self._most = most_bytes
        # A byte of the hash of keys that came when there was no room.
        self._doors: bytearray | None = None
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """About the memory this takes."""
        return self._young_bytes + self._old_bytes + (0 if self._doors is None else _DOORS)

    @property
    def has_room(self) -> bool:
        """Whether everything is kept that is found."""
        return self._doors is None

    def find_all(self, keys: Sequence[bytes]) -> list[dict[str, Any] | None] | None:
        """Copies of the rows of all keys, None for those without one; None where nothing is kept of one of them."""
        found = list(map(self.young.get, keys))
        for place in [place for place, row in enumerate(found) if row is None]:
            found[place] = self.find(keys[place])
            if found[place] is None:
                return None
        return [row.copy() if row else None for row in found]

    def find(self, key: bytes) -> Any | None:
        """What is kept of a key, which becomes young; None where nothing is."""
        found = self.young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                with self._lock:
                    self._put(key, found)
        return found

    def add(self, key: bytes, value: Any) -> None:
        """Keep what was found of a key, if there is room, or it comes again."""
        with self._lock:
            if self._doors is None or _comes_again(self._doors, key):
                self._put(key, value)

    def weigh(self) -> int | None:
        """The weight to tell the cache, if these are heavier than it knows: twice as much, so that it is told rarely."""
        if self.nbytes <= self._known_bytes:
            return None
        with self._lock:
            self._known_bytes = max(min(2 * self.nbytes, self._most), self.nbytes, LEAST_BYTES)
            return self._known_bytes

    def _put(self, key: bytes, value: Any) -> None:
        if key in self.young:
            # Another thread was first.
            return
        self._young_bytes += _size(key, value)
        self.young[key] = value
        if 2 * self._young_bytes >= self._most - _DOORS:
            self._old, self._old_bytes = self.young, self._young_bytes
            self.young, self._young_bytes = {}, 0
            self._doors = self._doors or bytearray(_DOORS)


def _comes_again(doors: bytearray, key: bytes) -> bool:
    number = hash(key)
    place, tag = number & _DOORS - 1, number >> _TAG_SHIFT & 255
    if doors[place] == tag:
        return True
    doors[place] = tag
    return False


def _size(key: bytes, value: Any) -> int:
    size = _PLACE_BYTES + sys.getsizeof(key)
    if value is ABSENT:
        return size
    size += sys.getsizeof(value)
    return size + sum(map(sys.getsizeof, value.values())) if type(value) is dict else size
