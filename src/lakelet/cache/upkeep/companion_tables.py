"""Companion tables: those that are usually asked for together with another one, or shortly after it by the same thread.

A statement that joins tables binds them one after the other, and an application asks for the same few tables in turn. Pairs are
counted within five seconds; a table has companions once it was asked for three times and one of the others followed in at least
half of the cases. The number of tables and of companions of each is limited.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from lakelet.cache.keys import TableCacheKey
from lakelet.clock import Clock

_SHORTLY_SECONDS = 5.0
_RECENT = 8
_MOST_TABLES = 2_000
_MOST_COMPANIONS = 8
_ASKED_AT_LEAST = 3
_SHARE = 0.5


@dataclass(slots=True)
class _Followed:
    """How often a table was asked for, and which tables were asked for after it."""

    asked: int = 0
    by: dict[TableCacheKey, int] = field(default_factory=dict)

    def add(self, other: TableCacheKey) -> None:
        self.by[other] = self.by.get(other, 0) + 1
        if len(self.by) > _MOST_COMPANIONS:
            # The one that was just added has the least chance to stay, and gets it by being seen again.
            del self.by[min((one for one in self.by if one != other), key=self.by.__getitem__)]


class CompanionTables:
    """Which tables follow which; any number of threads may record."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.reset()

    def reset(self) -> None:
        """Start anew, in a forked process too."""
        self._lock = threading.Lock()
        self._followed: OrderedDict[TableCacheKey, _Followed] = OrderedDict()
        self._recent = threading.local()

    def record(self, table: TableCacheKey) -> bool:
        """Count that this thread asked for a table; False where it is the one that it has just asked for."""
        recent: list[tuple[TableCacheKey, float]] = getattr(self._recent, "tables", [])
        now = self._clock.monotonic()
        if recent and recent[-1][0] == table and now - recent[-1][1] <= _SHORTLY_SECONDS:
            # The same statement, or one that is repeated.
            recent[-1] = (table, now)
            return False
        before = [(one, then) for one, then in recent if one != table and now - then <= _SHORTLY_SECONDS]
        self._recent.tables = [*before, (table, now)][-_RECENT:]
        with self._lock:
            self._of(table).asked += 1
            for one, _ in before:
                self._of(one).add(table)
            while len(self._followed) > _MOST_TABLES:
                self._followed.popitem(last=False)
        return True

    def of(self, table: TableCacheKey) -> list[TableCacheKey]:
        """The companions of a table, the most frequent first."""
        with self._lock:
            found = self._followed.get(table)
            if found is None or found.asked < _ASKED_AT_LEAST:
                return []
            least = found.asked * _SHARE
            chosen = [(count, one) for one, count in found.by.items() if count >= least]
        if len(chosen) > 1:
            chosen.sort(key=lambda one: -one[0])
        return [one for _, one in chosen]

    def pairs(self) -> list[tuple[TableCacheKey, int, dict[TableCacheKey, int]]]:
        """All tables with the number of times that they were asked for, and their followers."""
        with self._lock:
            return [(table, one.asked, dict(one.by)) for table, one in self._followed.items()]

    def add(self, table: TableCacheKey, asked: int, by: dict[TableCacheKey, int]) -> None:
        """Take over what an earlier process has counted, where nothing was counted here."""
        with self._lock:
            if table not in self._followed and len(self._followed) < _MOST_TABLES:
                self._followed[table] = _Followed(asked, dict(list(by.items())[:_MOST_COMPANIONS]))

    def _of(self, table: TableCacheKey) -> _Followed:
        found = self._followed.get(table)
        if found is None:
            found = self._followed[table] = _Followed()
        else:
            self._followed.move_to_end(table)
        return found
