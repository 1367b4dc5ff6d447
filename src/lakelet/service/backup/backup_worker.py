"""Copies tables to the backup store after their flushes, in a thread of its own: no write waits for it or fails with it.

flush ── note(table) ── a file in the queue ── a pass ─┬─ done: the file is removed
                                                       └─ failed: tried again after 1, 2, 4, … seconds, at most five minutes
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace

from lakelet.clock import Clock
from lakelet.errors import LakeletError, NotFoundError
from lakelet.service.backup.retry_queue import RetryQueue, WaitingTable

_LOG = logging.getLogger(__name__)
_LONGEST_WAIT_SECONDS = 300.0
_STOP_SECONDS = 10.0


class PostponedError(Exception):
    """Another node copies the table now: the pass is run in some seconds, and has not failed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"another node copies the table; tried again in {seconds:g} s")
        self.seconds = seconds


class BackupWorker:
    """A thread that runs passes; `note` is for any thread, and returns at once."""

    def __init__(self, run_pass: Callable[[str], object], queue: RetryQueue, clock: Clock) -> None:
        self._run_pass = run_pass
        self._queue = queue
        self._clock = clock
        self._changed = threading.Condition()
        self._noted: set[str] = set()
        self._waiting: dict[str, WaitingTable] = {}
        self._due: dict[str, float] = {}
        self._running: str | None = None
        self._stopped = False
        self._thread: threading.Thread | None = None
        # Totals for the metrics.
        self.passes = 0
        self.failed_passes = 0

    def start(self, tables: Iterable[str]) -> None:
        """Begin with what a former process has left, and with tables that may have been written since their last pass."""
        for waiting in self._queue.load():
            self._waiting[waiting.table] = waiting
            self._due[waiting.table] = 0.0
        self._noted.update(tables)
        self._thread = threading.Thread(target=self._run, name="lakelet-backup", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End after the pass that runs, or in the middle of a long one: the next start goes on."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)

    def note(self, table: str) -> None:
        """A table has a new snapshot."""
        with self._changed:
            self._noted.add(table)
            self._changed.notify_all()

    def failing(self) -> dict[str, str]:
        """The tables whose last pass failed, and why."""
        with self._changed:
            return {name: one.error for name, one in self._waiting.items() if one.error}

    @property
    def waiting(self) -> int:
        """How many tables wait for a pass."""
        with self._changed:
            return len(self._noted | set(self._waiting))

    def settle(self, timeout_seconds: float) -> bool:
        """Wait until nothing waits and nothing runs; whether that was within the time."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._noted and not self._waiting and self._running is None, timeout_seconds
            )

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._stopped:
                    return
                noted, self._noted = self._noted, set()
                now = self._clock.monotonic()
                for name in noted:
                    self._waiting.setdefault(name, WaitingTable(name, self._clock.now_ms()))
                    # A table that failed keeps its turn: its next flush does not make the store answer.
                    self._due.setdefault(name, now)
                ready = [name for name in self._waiting if self._due[name] <= now]
                if not ready and not noted:
                    soonest = min((self._due[name] - now for name in self._waiting), default=None)
                    self._changed.wait(soonest)
                    continue
                kept = [self._waiting[name] for name in noted]
                self._running = ready[0] if ready else None
            for waiting in kept:
                self._keep(waiting)
            for name in ready:
                if not self._is_stopped():
                    self._pass(name)
            with self._changed:
                self._running = None
                self._changed.notify_all()

    def _is_stopped(self) -> bool:
        with self._changed:
            return self._stopped

    def _pass(self, name: str) -> None:
        with self._changed:
            self._noted.discard(name)
            self._running = name
        try:
            self._run_pass(name)
        except PostponedError as postponed:
            with self._changed:
                self._due[name] = self._clock.monotonic() + postponed.seconds
            return
        except NotFoundError as error:
            # Dropped since: nothing is left to copy.
            _LOG.info("table %s is not backed up: %s", name, error)
        except Exception as error:
            self._failed(name, error)
            return
        self.passes += 1
        try:
            self._queue.remove(name)
        except LakeletError as error:
            _LOG.warning("the backup queue: %s", error)
        with self._changed:
            self._waiting.pop(name, None)
            self._due.pop(name, None)

    def _failed(self, name: str, error: Exception) -> None:
        self.failed_passes += 1
        _LOG.warning("table %s is not backed up, and will be tried again: %s", name, error)
        with self._changed:
            known = self._waiting[name]
            waiting = self._waiting[name] = replace(known, attempts=known.attempts + 1, error=str(error) or repr(error))
            seconds = min(2.0 ** min(known.attempts, 20), _LONGEST_WAIT_SECONDS)
            self._due[name] = self._clock.monotonic() + seconds
        self._keep(waiting)

    def _keep(self, waiting: WaitingTable) -> None:
        try:
            self._queue.put(waiting)
        except (LakeletError, OSError) as error:
            # The next start looks at every table.
            _LOG.warning("the backup queue: %s", error)
