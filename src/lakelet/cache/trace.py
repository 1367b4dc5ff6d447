"""A trace of what one query took from the cache and what from the store, for EXPLAIN."""

from __future__ import annotations

import threading


class CacheTrace:
    """Counts the reads of one table in one query; its planning may use several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}

    def note(self, what: str) -> None:
        """Count one read."""
        with self._lock:
            self._counts[what] = self._counts.get(what, 0) + 1

    def count(self, what: str) -> int:
        """The number of such reads."""
        return self._counts.get(what, 0)

    def summary(self) -> str:
        """What was taken from where, in one line."""
        if not self._counts:
            return "not used"
        if self.count("pointer changed"):
            pointer = "pointer checked and read anew"
        elif self.count("pointer checked"):
            pointer = "pointer checked"
        else:
            pointer = "pointer kept" if self.count("pointer kept") else "version looked up"
        plan = "plan kept" if self.count("plan kept") or not self.count("plan made") else "plan made"
        if plan == "plan made" and self.count("plan continued"):
            plan = "plan continued"
        kept, read = self.count("manifest kept"), self.count("manifest read")
        return f"{pointer}, manifests: {kept} from the cache, {read} read, {plan}"
