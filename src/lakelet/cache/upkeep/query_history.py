"""The query history: how often each table was asked for in the last 24 hours.

Counts are kept per table and hour of the lake's clock, so that memory is bounded by the number of tables, which is limited too:
those that were asked for longest ago leave first. `since_taken` are the counts that were added since they were last taken, for
whoever stores the history beside those of other processes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from lakelet.cache.keys import TableCacheKey
from lakelet.clock import Clock

HOURS = 24
_HOUR_MS = 3_600_000
_MOST_TABLES = 10_000
# Queries by the hour in which they were made, counted from 1970.
Hours = Mapping[int, int]
Counts = Mapping[TableCacheKey, Hours]


class QueryHistory:
    """Counts of queries by table; any number of threads may record."""

    def __init__(self, clock: Clock, most_tables: int = _MOST_TABLES) -> None:
        self._clock = clock
        self._most_tables = most_tables
        self.reset()

    def reset(self) -> None:
        """Start anew, in a forked process too."""
        self._lock = threading.Lock()
        self._counts: OrderedDict[TableCacheKey, dict[int, int]] = OrderedDict()
        self._since_taken: dict[TableCacheKey, dict[int, int]] = {}

    def record(self, table: TableCacheKey) -> None:
        """Count a query of a table."""
        hour = self._clock.now_ms() // _HOUR_MS
        with self._lock:
            hours = self._counts.get(table)
            if hours is None:
                hours = self._counts[table] = {}
                self._limit()
            else:
                self._counts.move_to_end(table)
            hours[hour] = hours.get(hour, 0) + 1
            if len(hours) > 2 * HOURS:
                _drop_old(hours, hour)
            taken = self._since_taken.setdefault(table, {})
            taken[hour] = taken.get(hour, 0) + 1
            if len(taken) > 2 * HOURS:
                _drop_old(taken, hour)
            if len(self._since_taken) > self._most_tables:
                del self._since_taken[next(iter(self._since_taken))]

    def add(self, counts: Counts) -> None:
        """Add counts that were recorded elsewhere, such as those of an earlier process."""
        hour = self._clock.now_ms() // _HOUR_MS
        with self._lock:
            for table, added in counts.items():
                recent = {one: count for one, count in added.items() if _is_recent(one, hour)}
                if not recent:
                    continue
                hours = self._counts.setdefault(table, {})
                for one, count in recent.items():
                    hours[one] = hours.get(one, 0) + count
                # They are older than anything that was recorded here.
                self._counts.move_to_end(table, last=False)
            self._limit()

    def counts(self) -> dict[TableCacheKey, int]:
        """The number of queries of each table in the last 24 hours; tables without any are left out."""
        hour = self._clock.now_ms() // _HOUR_MS
        with self._lock:
            totals = {
                table: sum(count for one, count in hours.items() if _is_recent(one, hour))
                for table, hours in self._counts.items()
            }
        return {table: total for table, total in totals.items() if total}

    def hottest(self, number: int) -> list[tuple[TableCacheKey, int]]:
        """The tables that were asked for most often in the last 24 hours, with the number of queries; ties by name."""
        ordered = sorted(self.counts().items(), key=lambda one: (-one[1], str(one[0])))
        return ordered[: max(number, 0)]

    @property
    def has_new(self) -> bool:
        """Whether anything was recorded since the counts were last taken."""
        return bool(self._since_taken)

    def take(self) -> dict[TableCacheKey, dict[int, int]]:
        """The counts since the last call."""
        with self._lock:
            taken, self._since_taken = self._since_taken, {}
            return taken

    def _limit(self) -> None:
        while len(self._counts) > self._most_tables:
            self._counts.popitem(last=False)


def merged(parts: Iterable[Counts], now_ms: int) -> dict[TableCacheKey, dict[int, int]]:
    """The sum of several histories without what is older than 24 hours."""
    hour = now_ms // _HOUR_MS
    total: dict[TableCacheKey, dict[int, int]] = {}
    for part in parts:
        for table, hours in part.items():
            for one, count in hours.items():
                if _is_recent(one, hour):
                    found = total.setdefault(table, {})
                    found[one] = found.get(one, 0) + count
    return total


def _is_recent(hour: int, now: int) -> bool:
    # A clock that was set back leaves hours ahead of now; they are as near as those behind.
    return abs(now - hour) < HOURS


def _drop_old(hours: dict[int, int], now: int) -> None:
    for one in [one for one in hours if not _is_recent(one, now)]:
        del hours[one]
