"""The differences that compatibility mode finds between the cache and the store: counted, and logged up to a limit."""

from __future__ import annotations

import logging
import threading

from lakelet.cache.keys import TableCacheKey

_LOG = logging.getLogger(__name__)
_MOST_LOGGED = 100
_MOST_SHOWN = 300


class DifferenceLog:
    """Counts comparisons and differences."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start anew."""
        self._lock = threading.Lock()
        self.comparisons = 0
        self.differences = 0

    def same(self) -> None:
        """Count a comparison that found no difference."""
        with self._lock:
            self.comparisons += 1

    def different(self, table: TableCacheKey, what: str, cached: object, stored: object) -> None:
        """Count a comparison that found one, and log both sides."""
        with self._lock:
            self.comparisons += 1
            self.differences += 1
            number = self.differences
        if number <= _MOST_LOGGED:
            _LOG.error("%s: the cache says of %s: %s; the store: %s", table, what, _short(cached), _short(stored))
        if number == _MOST_LOGGED:
            _LOG.error("further differences are counted and not logged")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
