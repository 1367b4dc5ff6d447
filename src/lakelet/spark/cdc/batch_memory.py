"""What a query learned from earlier batches: expressions, layouts of events, and whether events are poison.

An expression over names belongs to no frame, and building those of a batch takes thousands of calls into the JVM, which cost
more than the batch itself where it is small. What is built depends on layouts and schemas, of which a query sees few. The text
of a layout may be longer than its event, so that events of a known one are kept without it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Built = TypeVar("Built")
_MOST = 512
_WARY = 8


class BatchMemory:
    """Values by key, and the texts of layouts by the hash of their group; all are forgotten where there are too many."""

    def __init__(self) -> None:
        self._built: dict[Hashable, Any] = {}
        self._layouts: dict[int, str | None] = {}
        self._wary = 0

    def once(self, key: Hashable, build: Callable[[], Built]) -> Built:
        """The value of the key, built at its first use."""
        found: Built | None = self._built.get(key)
        if found is None:
            if len(self._built) >= _MOST:
                self._built.clear()
            found = self._built[key] = build()
        return found

    @property
    def layouts(self) -> dict[int, str | None]:
        """The layouts that are known, by hash."""
        return dict(self._layouts)

    def learn(self, layouts: dict[int, str | None]) -> None:
        """Keeps the layouts of a batch."""
        if len(self._layouts) + len(layouts) > _MOST:
            self._layouts.clear()
        self._layouts |= layouts

    @property
    def expects_poison(self) -> bool:
        """Whether one of the last batches had events with values that do not fit."""
        return self._wary > 0

    def ended(self, *, poison: bool) -> None:
        """A batch ended, with such events or without."""
        self._wary = _WARY if poison else max(0, self._wary - 1)
