"""What lookups have read, kept in memory: one cache for the process, least recently used first to go.

Data files never change and their names are never used again, so whatever was decoded from one stays true as long as it is kept;
nothing is ever invalidated. A value is shared by all that ask for it and must not be changed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Value = TypeVar("Value")


class BlockCache:
    """Values by key, up to a number of bytes that each `put` names: tables differ in what they allow."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._bytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all values, as they were declared."""
        return self._bytes

    def get(self, key: Hashable) -> Any:
        """The value, None where there is none."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: object, nbytes: int, *, limit_bytes: int) -> None:
        """Keeps a value, unless it alone is over the limit, and drops others until all are within it."""
        with self._lock:
            before = self._values.pop(key, None)
            if before is not None:
                self._bytes -= before[1]
            if nbytes <= limit_bytes:
                self._values[key] = (value, nbytes)
                self._bytes += nbytes
            while self._bytes > limit_bytes:
                _, (_, dropped) = self._values.popitem(last=False)
                self._bytes -= dropped

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._values.clear()
            self._bytes = 0

    def load(
        self, key: Hashable, make: Callable[[], Value], size: Callable[[Value], int], *, limit_bytes: int
    ) -> Value:
        """The value, made now if it is not there; two threads that miss at once both make it."""
        found: Value | None = self.get(key)
        if found is None:
            found = make()
            self.put(key, found, size(found), limit_bytes=limit_bytes)
        return found


BLOCKS = BlockCache()
"""The cache of this process."""
