"""One tier of the cache: values by key with limits on their number, bytes and age.

Values are shared and never modified; what changes gets another key or is put anew. A tier knows which table each key belongs to,
so that all of a table, a database or a catalog can be dropped at once, and counts hits and misses in total and per table.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lakelet.cache.keys import CacheKey, TableCacheKey, table_of
from lakelet.cache.level import CacheLevel
from lakelet.cache.single_flight import SingleFlight
from lakelet.cache.stats import CacheStats, Counters
from lakelet.clock import Clock
from lakelet.errors import LakeletError

Value = TypeVar("Value")
# Counters of this many tables are kept, those that were asked for first leave first.
_MOST_COUNTED = 20_000


@dataclass(frozen=True, slots=True)
class TierLimits:
    """The limits of a tier. A tier of no entries or bytes keeps nothing."""

    max_entries: int
    max_bytes: int
    expire_seconds: float


@dataclass(slots=True)
class _Entry:
    value: Any
    nbytes: int
    written: float


class Tier(Generic[Value]):
    """A thread-safe LRU cache of one level."""

    def __init__(
        self,
        level: CacheLevel,
        limits: TierLimits,
        clock: Clock,
        after_put: Callable[[TableCacheKey], None] = lambda _: None,
    ) -> None:
        self.level = level
        self._limits = limits
        self._clock = clock
        self._after_put = after_put
        self.reset()

    def reset(self) -> None:
        """Start anew, with a lock of its own: in a forked process the old one may be held by a thread that does not exist."""
        self._lock = threading.Lock()
        self._flights: SingleFlight[Value] = SingleFlight()
        self._entries: OrderedDict[CacheKey, _Entry] = OrderedDict()
        self._tables: dict[TableCacheKey, set[CacheKey]] = {}
        self._bytes = 0
        self._total = Counters()
        self._counted: dict[TableCacheKey, Counters] = {}

    # ------------------------------------------------------------------ values

    @property
    def nbytes(self) -> int:
        """The weight of all values."""
        return self._bytes

    @property
    def limits(self) -> TierLimits:
        """The limits in force."""
        return self._limits

    def get(self, key: CacheKey) -> Value | None:
        """The value, None where there is none; counted as a hit or a miss."""
        with self._lock:
            found = self._live(key)
            counters = self._counters(table_of(key))
            if found is None:
                counters.misses += 1
                self._total.misses += 1
                return None
            counters.hits += 1
            self._total.hits += 1
            value: Value = found.value
            return value

    def peek(self, key: CacheKey) -> Value | None:
        """The value without counting."""
        with self._lock:
            found = self._live(key)
            return None if found is None else found.value

    def count_hit(self, table: TableCacheKey) -> None:
        """Count a hit of a value that was found by other means."""
        with self._lock:
            self._counters(table).hits += 1
            self._total.hits += 1

    def count_miss(self, table: TableCacheKey) -> None:
        """Count a miss of a value that was found by other means."""
        with self._lock:
            self._counters(table).misses += 1
            self._total.misses += 1

    def put(self, key: CacheKey, value: Value, nbytes: int) -> None:
        """Keep a value, unless it alone is over the limit, and drop the least recently used until all are within it."""
        with self._lock:
            self._drop(key)
            if nbytes > self._limits.max_bytes or self._limits.max_entries < 1:
                return
            self._entries[key] = _Entry(value, nbytes, self._clock.monotonic())
            self._tables.setdefault(table_of(key), set()).add(key)
            self._bytes += nbytes
            self._shrink()
        self._after_put(table_of(key))

    def replace(self, key: CacheKey, old: Value, new: Value) -> None:
        """Put a value in the place of that very one, of the same weight and age; nothing where it is not there."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None and found.value is old:
                found.value = new

    def load(self, key: CacheKey, make: Callable[[], Value], weigh: Callable[[Value], int]) -> Value:
        """The cached value, else one that `make` loads, once for all threads that ask at the same time."""
        found = self.get(key)
        if found is not None:
            return found
        made, _ = self._flights.load(key, lambda: self._made(key, make, weigh))
        return made

    def timed(self, table: TableCacheKey, make: Callable[[], Value]) -> Value:
        """The result of a load, which is counted with its time; a failure is counted as one."""
        began = self._clock.monotonic()
        try:
            made = make()
        except LakeletError:
            with self._lock:
                for counters in (self._total, self._counters(table)):
                    counters.load_failures += 1
            raise
        took = self._clock.monotonic() - began
        with self._lock:
            for counters in (self._total, self._counters(table)):
                counters.loads += 1
                counters.load_seconds += took
        return made

    # ------------------------------------------------------------------ removal

    def remove(self, key: CacheKey) -> None:
        """Drop a value."""
        with self._lock:
            self._drop(key)

    def remove_table(self, table: TableCacheKey) -> None:
        """Drop all values of a table, on this branch."""
        with self._lock:
            for key in tuple(self._tables.get(table, ())):
                self._drop(key)

    def remove_matching(self, matches: Callable[[TableCacheKey], bool]) -> None:
        """Drop all values of the tables that match."""
        with self._lock:
            for table in [one for one in self._tables if matches(one)]:
                for key in tuple(self._tables[table]):
                    self._drop(key)

    def release(self) -> None:
        """Drop all values unless some thread is at work here, perhaps the caller's own: for finalizers, which run anywhere."""
        if self._lock.acquire(blocking=False):
            try:
                self._entries.clear()
                self._tables.clear()
                self._bytes = 0
            finally:
                self._lock.release()

    def evict_oldest(self) -> bool:
        """Drop the least recently used value; whether there was one."""
        with self._lock:
            return self._evict()

    def resize(self, limits: TierLimits) -> None:
        """Other limits from now on."""
        with self._lock:
            self._limits = limits
            self._shrink()

    # ------------------------------------------------------------------ reports

    def live_keys(self, table: TableCacheKey | None = None) -> list[CacheKey]:
        """The keys of live values, of one table or of all."""
        with self._lock:
            among = list(self._entries) if table is None else list(self._tables.get(table, ()))
            return [key for key in among if self._age(self._entries[key]) < self._limits.expire_seconds]

    def has_table(self, table: TableCacheKey) -> bool:
        """Whether a table has values, live or expired."""
        return table in self._tables

    def values_of(self, kind: type[CacheKey]) -> list[Value]:
        """The live values whose keys are of this kind, without counting or using them."""
        with self._lock:
            among = [entry for key, entry in self._entries.items() if isinstance(key, kind)]
            return [entry.value for entry in among if self._age(entry) < self._limits.expire_seconds]

    def tables(self) -> list[TableCacheKey]:
        """The tables that have values."""
        with self._lock:
            return list(self._tables)

    def stats(self, matches: Callable[[TableCacheKey], bool] | None = None) -> CacheStats:
        """The counts of all tables, or of those that match."""
        with self._lock:
            if matches is None:
                return CacheStats.of(self._total, len(self._entries), self._bytes)
            total = Counters()
            for table, one in self._counted.items():
                if matches(table):
                    total.hits += one.hits
                    total.misses += one.misses
                    total.loads += one.loads
                    total.load_failures += one.load_failures
                    total.load_seconds += one.load_seconds
                    total.evictions += one.evictions
            keys = [key for table in self._tables if matches(table) for key in self._tables[table]]
            return CacheStats.of(total, len(keys), sum(self._entries[key].nbytes for key in keys))

    # ------------------------------------------------------------------ inside, under the lock

    def _made(self, key: CacheKey, make: Callable[[], Value], weigh: Callable[[Value], int]) -> Value:
        # A thread that missed right before another finished its load finds it here.
        again = self.peek(key)
        if again is not None:
            return again
        made = self.timed(table_of(key), make)
        self.put(key, made, weigh(made))
        return made

    def _live(self, key: CacheKey) -> _Entry | None:
        found = self._entries.get(key)
        if found is None:
            return None
        if self._age(found) >= self._limits.expire_seconds:
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return found

    def _age(self, entry: _Entry) -> float:
        return self._clock.monotonic() - entry.written

    def _drop(self, key: CacheKey) -> None:
        gone = self._entries.pop(key, None)
        if gone is None:
            return
        self._bytes -= gone.nbytes
        table = table_of(key)
        keys = self._tables[table]
        keys.discard(key)
        if not keys:
            del self._tables[table]

    def _evict(self) -> bool:
        if not self._entries:
            return False
        key = next(iter(self._entries))
        self._drop(key)
        self._counters(table_of(key)).evictions += 1
        self._total.evictions += 1
        return True

    def _shrink(self) -> None:
        while len(self._entries) > self._limits.max_entries or self._bytes > self._limits.max_bytes:
            if not self._evict():
                return

    def _counters(self, table: TableCacheKey) -> Counters:
        found = self._counted.get(table)
        if found is None:
            found = self._counted[table] = Counters()
            if len(self._counted) > _MOST_COUNTED:
                del self._counted[next(iter(self._counted))]
        return found
