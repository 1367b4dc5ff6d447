"""How far a compaction has come, told to whoever wants to know, and the wish to stop it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class CompactionProgress:
    """What is done of what was planned. Rows and bytes are of files that go in; `written_bytes` have come out of them."""

    tasks_done: int
    tasks: int
    rows_done: int
    rows: int
    bytes_done: int
    bytes: int
    written_bytes: int = 0


Progress: TypeAlias = Callable[[CompactionProgress], None]
Cancel: TypeAlias = Callable[[], bool] | threading.Event


class CompactionCancelled(BaseException):
    """Unwinds a compaction that is no longer wanted; it never leaves this package."""


class Watch:
    """Counts for all tasks of a run, which may be threads, and looks whether they are to stop."""

    def __init__(
        self, tasks: int, rows: int, size: int, progress: Progress | None = None, cancel: Cancel | None = None
    ) -> None:
        self._state = CompactionProgress(0, tasks, 0, rows, 0, size)
        self._progress = progress
        self._cancel = cancel.is_set if isinstance(cancel, threading.Event) else cancel
        self._lock = threading.Lock()

    def check(self) -> None:
        """CompactionCancelled where the caller wants no more."""
        if self._cancel is not None and self._cancel():
            raise CompactionCancelled

    def advance(self, *, tasks: int = 0, rows: int = 0, size: int = 0, written: int = 0) -> None:
        """Notes what was done, and tells it."""
        with self._lock:
            state = self._state
            self._state = CompactionProgress(
                state.tasks_done + tasks,
                state.tasks,
                min(state.rows_done + rows, state.rows),
                state.rows,
                min(state.bytes_done + size, state.bytes),
                state.bytes,
                state.written_bytes + written,
            )
            if self._progress is not None:
                self._progress(self._state)
