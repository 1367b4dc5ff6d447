"""An LRU cache with a limit on the total weight of its values.

For values that never become invalid, such as what was decoded from immutable files: there is no invalidation. A value is shared
by all callers and must not be modified. Threads may share a cache; a forked process starts with an empty one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from lakelet.cache.process_fork import reset_in_children

Value = TypeVar("Value")


class LruCache(Generic[Value]):
    """Values by key. The limit is in the unit of the weights given to `put`: the number of values by default."""

    def __init__(self) -> None:
        self.reset()
        reset_in_children(self)

    def reset(self) -> None:
        """Start anew, with a lock of its own: in a forked process the old one may be held by a thread that does not exist."""
        self._lock = threading.Lock()
        self._values: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._weight = 0
        # How many values were put so far: as long as this stays, nothing is dropped.
        self.puts = 0

    @property
    def weight(self) -> int:
        """The total weight of all values."""
        return self._weight

    def get(self, key: Hashable) -> Value | None:
        """The value, None where there is none."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: Value, weight: int = 1, *, limit: int) -> None:
        """Keeps a value, unless it alone is over the limit, and drops others until all are within it."""
        with self._lock:
            self.puts += 1
            before = self._values.pop(key, None)
            if before is not None:
                self._weight -= before[1]
            if weight <= limit:
                self._values[key] = (value, weight)
                self._weight += weight
            while self._weight > limit:
                _, (_, dropped) = self._values.popitem(last=False)
                self._weight -= dropped

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._values.clear()
            self._weight = 0

    def load(
        self,
        key: Hashable,
        make: Callable[[], Value],
        weigh: Callable[[Value], int] = lambda _: 1,
        *,
        limit: int,
    ) -> Value:
        """The cached value, else a newly made one; two threads that miss at the same time both make it."""
        found = self.get(key)
        if found is None:
            found = make()
            self.put(key, found, weigh(found), limit=limit)
        return found
