"""Validated pointers: what may change at every moment, such as which snapshot of a table is the newest.

A pointer is checked by its owner, who is given the known one and returns it if it is still right, else another. Under strict
staleness every use checks. Otherwise a checked pointer may be used for a while, and these rules keep it honest:

- A change by this process, or a refresh, makes the table's pointers unchecked: the next use checks. A check that was under way
  meanwhile does not count, for it may have looked before the change.
- A check that began earlier never replaces the result of one that began later.
- No thread is given the result of another's check that is under way: it may have looked before this thread asked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from lakelet.cache.keys import DerivedCacheKey, TableCacheKey
from lakelet.cache.tier import Tier
from lakelet.clock import Clock
from lakelet.options.staleness import STRICT, Staleness

Pointer = TypeVar("Pointer")


@dataclass(frozen=True, slots=True)
class _Checked:
    """A pointer, when its last valid check began (None: it must be checked), and the number of the check that found it."""

    pointer: Any
    began: float | None
    check: int


class PointerCache:
    """The pointers of tables, kept in the first tier."""

    def __init__(self, tier: Tier[Any], clock: Clock) -> None:
        self._tier = tier
        self._clock = clock
        self.staleness: Staleness = STRICT
        # Called before a table is looked up of which this pointer is not known: it may put one back that is to be checked.
        self.on_miss: Callable[[TableCacheKey], None] = lambda _: None
        self.reset()

    def reset(self) -> None:
        """Start anew, with a lock of its own, in a forked process."""
        self._lock = threading.Lock()
        self._changes = 0
        self._checks = 0

    def known(self, table: TableCacheKey, name: str) -> Any | None:
        """The pointer as it was last found, unchecked; None where there is none."""
        found = self._tier.peek(_key(table, name))
        return None if found is None else found.pointer

    def current(
        self,
        table: TableCacheKey,
        name: str,
        check: Callable[[Pointer | None], Pointer | None],
        weigh: Callable[[Pointer], int],
        *,
        fresh: bool,
    ) -> Pointer | None:
        """The pointer, checked now or, unless `fresh`, as recently as the staleness demands; None where there is none.

        What a `fresh` caller finds is kept for others only under strict staleness: those who chose to see an older version
        until a refresh are not shown another because of a commit's check.
        """
        key = _key(table, name)
        known: _Checked | None = self._tier.peek(key)
        if known is None:
            self.on_miss(table)
            known = self._tier.peek(key)
        staleness = self.staleness
        if known is not None and not fresh and self._is_recent(known, staleness):
            self._tier.count_hit(table)
            pointer: Pointer | None = known.pointer
            return pointer
        began = self._clock.monotonic()
        with self._lock:
            changes = self._changes
            self._checks += 1
            number = self._checks
        before = None if known is None else known.pointer
        found = self._checked(table, before, check)
        if staleness.is_strict and found is not None and found is before:
            return found
        if not fresh or staleness.is_strict or known is None or known.began is None:
            self._keep(key, found, weigh, began, changes, number, staleness)
        return found

    def announce(self, table: TableCacheKey, name: str, pointer: Pointer, nbytes: int) -> None:
        """Keep a pointer that a change of this process has made, to be checked at its next use."""
        with self._lock:
            self._changes += 1
            self._checks += 1
            self._tier.put(_key(table, name), _Checked(pointer, None, self._checks), nbytes)

    def offer(self, table: TableCacheKey, name: str, pointer: Pointer, nbytes: int) -> None:
        """Keep a pointer of unknown age, to be checked at its first use, unless there is one."""
        key = _key(table, name)
        with self._lock:
            if self._tier.peek(key) is None:
                self._tier.put(key, _Checked(pointer, None, 0), nbytes)

    def must_check(self, table: TableCacheKey, *, every_branch: bool = False) -> None:
        """Have the next use of the table's pointers check them."""

        def matches(other: TableCacheKey) -> bool:
            return (every_branch and other.on_branch(table.branch) == table) or other == table

        with self._lock:
            self._changes += 1
            # Under strict staleness every use checks anyway, and a change of staleness has all of them checked.
            if not self.staleness.is_strict:
                self._unchecked(matches)

    def must_check_tables(self, tables: Collection[TableCacheKey]) -> None:
        """Have the next use of the pointers of exactly these tables check them."""
        wanted = frozenset(tables)
        with self._lock:
            self._changes += 1
            if wanted and not self.staleness.is_strict:
                self._unchecked(wanted.__contains__)

    def must_check_all(self) -> None:
        """Have the next use of every pointer check it."""
        with self._lock:
            self._changes += 1
            self._unchecked(lambda _: True)

    def _unchecked(self, matches: Callable[[TableCacheKey], bool]) -> None:
        for table in self._tier.tables():
            if not matches(table):
                continue
            for key in self._tier.live_keys(table):
                found = self._tier.peek(key)
                if isinstance(found, _Checked) and found.began is not None:
                    self._tier.replace(key, found, replace(found, began=None))

    def _checked(
        self, table: TableCacheKey, before: Pointer | None, check: Callable[[Pointer | None], Pointer | None]
    ) -> Pointer | None:
        if before is None:
            self._tier.count_miss(table)
            loaded: Pointer | None = self._tier.timed(table, lambda: check(None))
            return loaded
        found = check(before)
        if found is before:
            self._tier.count_hit(table)
        else:
            self._tier.count_miss(table)
        return found

    def _keep(
        self,
        key: DerivedCacheKey,
        found: Pointer | None,
        weigh: Callable[[Pointer], int],
        began: float,
        changes: int,
        number: int,
        staleness: Staleness,
    ) -> None:
        with self._lock:
            now: _Checked | None = self._tier.peek(key)
            if now is not None and now.check > number:
                return
            if found is None:
                self._tier.remove(key)
            elif now is None or now.pointer is not found or not staleness.is_strict:
                checked = began if self._changes == changes else None
                self._tier.put(key, _Checked(found, checked, number), weigh(found))

    def _is_recent(self, known: _Checked, staleness: Staleness) -> bool:
        if known.began is None or staleness.is_strict:
            return False
        return staleness.allows((self._clock.monotonic() - known.began) * 1000)


def _key(table: TableCacheKey, name: str) -> DerivedCacheKey:
    return DerivedCacheKey(table, ("pointer", name))
