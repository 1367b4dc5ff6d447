"""The threads that flush sealed memtables: files of several at the same time, their commits in the order of the logs.

    memtable 7   write files ───────────── commit ─ log deleted
    memtable 8   write files ── its turn ────────── commit ─ log deleted

A flush that fails keeps the memtable and its log, and is tried again after a pause that doubles up to half a minute; those behind
it wait. Rows of a table that was dropped, or replaced by another one, stay in the log, which takes no further ones then. The log
is deleted after the commit, and after the names of its writes are kept (`key_file`); if that fails, the next
writer finds the commit in the table and deletes it then.
"""

from __future__ import annotations

import logging
import threading

from lakelet.commit.dropped_table import TableDroppedError
from lakelet.errors import InternalError, LakeletError, UnavailableError
from lakelet.realtime.flush import Ahead, TableReplacedError, flush_memtable
from lakelet.realtime.memtable import Memtable, MemtableState
from lakelet.realtime.memtables import Memtables
from lakelet.realtime.wal.log_copy import LogCopy
from lakelet.realtime.wal.log_writer import LogWriter
from lakelet.realtime.wal.wal_folder import WalFolder
from lakelet.storage.home import TableHome

_LOG = logging.getLogger(__name__)
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 30.0


class _StoppedError(Exception):
    """The writer is closed: a flush whose turn has not come leaves its rows to the log."""


class FlushWorker:
    """Some threads for a writer's memtables."""

    def __init__(
        self,
        home: TableHome,
        identity: str,
        user: str,
        folder: WalFolder,
        memtables: Memtables,
        log: LogWriter,
        flushes: int,
        copy: LogCopy | None = None,
    ) -> None:
        self._home = home
        self._identity = identity
        self._user = user
        self._folder = folder
        self._memtables = memtables
        self._log = log
        self._copy = copy
        self._stopped = False
        self._hurries = 0
        self.flushed = 0
        self.failures = 0
        self.failures_in_a_row = 0
        self.last_error: LakeletError | None = None
        self.last_snapshot: int | None = None
        self._threads = [
            threading.Thread(target=self._run, name=f"lakelet-flush-{number}", daemon=True) for number in range(flushes)
        ]
        for thread in self._threads:
            thread.start()

    def hurry(self) -> None:
        """Try a flush that has failed again at once."""
        with self._memtables.changed:
            self._hurries += 1
            self._memtables.changed.notify_all()

    def wait_for(self, sequence_number: int) -> None:
        """Wait until all memtables up to a number are committed; the error of the next flush that fails."""
        changed = self._memtables.changed
        with changed:
            self._hurries, before = self._hurries + 1, self.failures
            changed.notify_all()
            changed.wait_for(
                lambda: self._memtables.is_flushed(sequence_number) or self.failures > before or self._stopped
            )
            if not self._memtables.is_flushed(sequence_number):
                error = self.last_error
                raise UnavailableError(
                    f"{self._folder.path}: the rows are in the log, but their flush failed: {error or 'the writer was closed'}"
                ) from error

    def stop(self) -> None:
        """Let commits that are running finish, and start no other."""
        with self._memtables.changed:
            self._stopped = True
            self._memtables.changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        changed = self._memtables.changed
        while True:
            with changed:
                changed.wait_for(lambda: self._stopped or self._memtables.next_sealed() is not None)
                memtable = self._memtables.next_sealed()
                if self._stopped or memtable is None:
                    return
                memtable.is_taken = True
            if not self._flush(memtable):
                return

    def _flush(self, memtable: Memtable) -> bool:
        """Flush a memtable, as often as it takes; False where the writer was closed before."""
        while True:
            with self._memtables.changed:
                if self._stopped:
                    memtable.state = MemtableState.IMMUTABLE
                    return False
                memtable.state = MemtableState.FLUSHING
                rows = self._memtables.rows_before(memtable)
            try:
                ahead = Ahead(lambda: self._wait_for_turn(memtable), rows) if rows else None
                made = flush_memtable(self._home, self._identity, self._user, memtable, ahead)
                memtable.committed_in = None if made is None else made.id
                self._wait_for_turn(memtable)
                # Before the log can be deleted. A failure repeats the flush, which finds its commit.
                self._folder.keys.keep(memtable.write_keys.values(), self._home.clock.now_ms())
            except _StoppedError:
                continue
            except Exception as error:
                self._failed(memtable, error)
                continue
            self._finished(memtable, None if made is None else made.id)
            return True

    def _wait_for_turn(self, memtable: Memtable) -> None:
        changed = self._memtables.changed
        with changed:
            changed.wait_for(lambda: self._stopped or self._memtables.is_oldest(memtable))
            if not self._memtables.is_oldest(memtable):
                raise _StoppedError

    def _finished(self, memtable: Memtable, snapshot: int | None) -> None:
        with self._memtables.changed:
            self.flushed += 1
            self.failures_in_a_row = 0
            self.last_error = self._log.late = self._log.gone = None
            self.last_snapshot = snapshot if snapshot is not None else self.last_snapshot
            self._memtables.drop_oldest(snapshot)
        try:
            self._folder.remove(memtable.sequence_number)
        except LakeletError as error:
            _LOG.warning("a log whose rows are committed stays until the next writer opens: %s", error)
        if self._copy is not None:
            self._copy.committed(memtable.sequence_number, list(memtable.write_keys.values()))

    def _failed(self, memtable: Memtable, error: Exception) -> None:
        known = error if isinstance(error, LakeletError) else InternalError(f"{type(error).__name__}: {error}")
        _LOG.warning("memtable %d could not be flushed, its rows stay in the log: %s", memtable.sequence_number, error)
        changed = self._memtables.changed
        with changed:
            memtable.state = MemtableState.IMMUTABLE
            self.failures += 1
            self.failures_in_a_row += 1
            self.last_error = self._log.late = known
            self._log.gone = known if isinstance(known, (TableDroppedError, TableReplacedError)) else None
            hurries = self._hurries
            changed.notify_all()
            pause = min(_FIRST_PAUSE_SECONDS * 2 ** min(self.failures_in_a_row - 1, 20), _LONGEST_PAUSE_SECONDS)
            changed.wait_for(lambda: self._stopped or self._hurries != hurries, pause)
