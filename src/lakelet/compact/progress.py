"""Progress reports and cancellation of a compaction."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class CompactionProgress:
    """The progress against the plan. Rows and bytes are of input files; `written_bytes` are of output files.

    The old rows of `looked_up` keys were looked up, for the changelog or because rows supersede them, and `found` of those were
    there; `changelog_rows` were written.
    """

    tasks_done: int
    tasks: int
    rows_done: int
    rows: int
    bytes_done: int
    bytes: int
    written_bytes: int = 0
    looked_up: int = 0
    found: int = 0
    changelog_rows: int = 0


Progress: TypeAlias = Callable[[CompactionProgress], None]
Cancel: TypeAlias = Callable[[], bool] | threading.Event


class CompactionCancelled(BaseException):
    """Unwinds a cancelled compaction; it is never raised to callers of this package."""


class Watch:
    """Counts the progress of all tasks of a run, which may be in threads, and checks for cancellation."""

    def __init__(
        self, tasks: int, rows: int, size: int, progress: Progress | None = None, cancel: Cancel | None = None
    ) -> None:
        self._state = CompactionProgress(0, tasks, 0, rows, 0, size)
        self._progress = progress
        self._cancel = cancel.is_set if isinstance(cancel, threading.Event) else cancel
        self._lock = threading.Lock()

    def check(self) -> None:
        """CompactionCancelled where the caller has cancelled."""
        if self._cancel is not None and self._cancel():
            raise CompactionCancelled

    def advance(self, *, tasks: int = 0, rows: int = 0, size: int = 0, written: int = 0) -> None:
        """Add to the progress, and report it."""
        with self._lock:
            state = self._state
            self._state = replace(
                state,
                tasks_done=state.tasks_done + tasks,
                rows_done=min(state.rows_done + rows, state.rows),
                bytes_done=min(state.bytes_done + size, state.bytes),
                written_bytes=state.written_bytes + written,
            )
            if self._progress is not None:
                self._progress(self._state)

    def count_lookups(self, *, looked_up: int, found: int) -> None:
        """Add to the lookups of old rows, which the next report tells of."""
        with self._lock:
            state = self._state
            self._state = replace(state, looked_up=state.looked_up + looked_up, found=state.found + found)

    def count_changelog(self, *, rows: int) -> None:
        """Add to the rows of the changelog, which the next report tells of."""
        with self._lock:
            self._state = replace(self._state, changelog_rows=self._state.changelog_rows + rows)
