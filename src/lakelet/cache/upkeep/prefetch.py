"""Prefetch: when a table is asked for, its companions that are not cached are loaded in the background.

A load that fails is tried again a minute later at the earliest: the query that comes for the table fails by itself. Where the
cache is almost full nothing is loaded, since it would drive out what is in use.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable

from lakelet.cache.keys import TableCacheKey
from lakelet.cache.upkeep.companion_tables import CompanionTables
from lakelet.clock import Clock
from lakelet.errors import LakeletError

_LOG = logging.getLogger(__name__)
_MOST_PENDING = 16
_MOST_FAILURES = 256
_AGAIN_SECONDS = 60.0


class Prefetch:
    """Loads companions of tables. `submit` runs a function in the background, `load` loads a table."""

    def __init__(
        self,
        companions: CompanionTables,
        is_wanted: Callable[[TableCacheKey], bool],
        load: Callable[[TableCacheKey], object],
        submit: Callable[[Callable[[], None]], None],
        clock: Clock,
    ) -> None:
        self._clock = clock
        self._companions = companions
        self._is_wanted = is_wanted
        self._load = load
        self._submit = submit
        self.reset()

    def reset(self) -> None:
        """Start anew, in a forked process too."""
        self._lock = threading.Lock()
        self._pending: set[TableCacheKey] = set()
        self._failures: OrderedDict[TableCacheKey, float] = OrderedDict()
        self.loaded = 0
        self.failed = 0

    def after(self, table: TableCacheKey) -> None:
        """Have the companions of a table loaded that has just been asked for."""
        for one in self._companions.of(table):
            if not self._is_wanted(one):
                continue
            with self._lock:
                if one in self._pending or len(self._pending) >= _MOST_PENDING or self._has_failed(one):
                    continue
                self._pending.add(one)
            self._submit(lambda one=one: self._run(one))  # type: ignore[misc]

    def _has_failed(self, table: TableCacheKey) -> bool:
        then = self._failures.get(table)
        return then is not None and self._clock.monotonic() - then < _AGAIN_SECONDS

    def _run(self, table: TableCacheKey) -> None:
        try:
            self._load(table)
        except LakeletError as error:
            _LOG.debug("%s was not prefetched: %s", table, error)
            with self._lock:
                self.failed += 1
                self._failures[table] = self._clock.monotonic()
                while len(self._failures) > _MOST_FAILURES:
                    self._failures.popitem(last=False)
        else:
            with self._lock:
                self.loaded += 1
        finally:
            with self._lock:
                self._pending.discard(table)
