"""Backups as the service runs them: by the names of served tables, after flushes, by hand, and at the start."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from lakelet.catalog.lake import Lake
from lakelet.clock import Clock
from lakelet.cluster.turn import BlockingTurns, NotNow
from lakelet.errors import CorruptionError, LakeletError, NotFoundError, UnavailableError
from lakelet.options import SERVICE_BACKUP_ENABLED, SERVICE_NAME, TableOptions
from lakelet.service.backup.backup_worker import BackupWorker, PostponedError
from lakelet.service.backup.backups import BackedUp, Backups, Scope
from lakelet.service.backup.restoration import unfinished_restorations
from lakelet.service.backup.retry_queue import RetryQueue
from lakelet.service.backup.verification import Verified
from lakelet.service.tables.registry import DATABASE, TableRegistry
from lakelet.service.values import BackupRequest, BackupResult

if TYPE_CHECKING:
    from lakelet.service.tables.served_table import OpenTable

_Result = TypeVar("_Result")
_LOG = logging.getLogger(__name__)


class ServedBackups:
    """The backups of served tables; its methods run in threads, `note` returns at once."""

    def __init__(
        self, lake: Lake, open_backup: Callable[[], Lake], tables: TableRegistry, wal_folder: object, clock: Clock
    ) -> None:
        self._lake = lake
        self._open_backup = open_backup
        self._tables = tables
        self._opened: Backups | None = None
        self._opening = threading.Lock()
        self.worker = BackupWorker(self._pass, RetryQueue(wal_folder), clock)
        # Whose turn it is to copy a table, where other nodes do so, too.
        self.turns: BlockingTurns | None = None

    @property
    def _backups(self) -> Backups:
        """The backup store, opened by the first call that reaches it: the service starts while it is down."""
        with self._opening:
            if self._opened is None:
                self._opened = Backups(self._lake, self._open_backup())
            return self._opened

    def finish_restorations(self) -> None:
        """Go on with recoveries of whole tables that a former process has begun."""
        for table in unfinished_restorations(self._lake):
            try:
                self._backups.recover(table)
            except LakeletError as error:
                _LOG.error("table %s is still to be restored: %s", table, error)

    def start(self) -> None:
        """Begin to copy tables after their flushes."""
        self.worker.start(opened.table.name for opened in self._tables.all() if _is_enabled(opened))

    def stop(self) -> None:
        """End copying; what waits is in the queue."""
        self.worker.stop()

    def note(self, opened: OpenTable) -> None:
        """A served table has been committed to."""
        self.worker.note(opened.table.name)

    def _pass(self, table: str) -> None:
        if isinstance(found := self._in_turn(table, lambda: self._backups.trigger(table)), NotNow):
            # The node whose turn it is may have begun before this one's last commit.
            raise PostponedError(found.seconds)

    def _in_turn(self, table: str, work: Callable[[], _Result]) -> _Result | NotNow:
        return work() if self.turns is None else self.turns.run(f"backup:{table}", work)

    def _done(self, table: str, work: Callable[[], _Result]) -> _Result:
        found = self._in_turn(table, work)
        if isinstance(found, NotNow):
            raise UnavailableError(
                f"another node works on the backup of table {table!r}; try again in {found.seconds:g} s",
                nothing_done=True,
            )
        return found

    def trigger(self, request: BackupRequest) -> BackupResult:
        """Commit buffered rows and copy the table, or what may hold an id or a day."""
        opened = self._tables.open(request.table)
        opened.flush()
        full, scope = opened.table.name, Scope(request.id, request.day)
        done = self._done(full, lambda: self._backups.trigger(full, scope))
        return BackupResult(f"{_files(done.files)} of table {request.table!r} backed up", done.files)

    def recover(self, request: BackupRequest) -> BackupResult:
        """Restore what is missing or damaged; CorruptionError where the backup lacks some of it."""
        full = self._full_name(request.table)
        done = self._done(full, lambda: self._backups.recover(full, Scope(request.id, request.day)))
        self._tables.load_table(full)
        if done.lost:
            path, why = done.lost[0]
            raise CorruptionError(
                f"table {request.table!r}: {_files(len(done.restored))} restored, {len(done.lost)} could not be: {path} is {why}"
            )
        return BackupResult(f"{_files(len(done.restored))} of table {request.table!r} restored", len(done.restored))

    def verify(self, table: str) -> Verified:
        """Compare the files of a table's backup with their checksums."""
        return self._backups.verify(self._full_name(table))

    def list(self) -> list[tuple[str, BackedUp]]:
        """The backups with the names by which their tables are served."""
        return [(self._served_name(one.table), one) for one in self._backups.list()]

    def _full_name(self, name: str) -> str:
        """The table that is, or was, served by a name."""
        try:
            return self._tables.open(name).table.name
        except (NotFoundError, UnavailableError):
            # It may be damaged, and left out for that.
            for served, one in self.list():
                if served == name:
                    return one.table
            raise NotFoundError(f"table {name!r} is not served here and has no backup") from None

    def _served_name(self, full: str) -> str:
        options = TableOptions(self._backups.backup.table(full).options)
        return options.get(SERVICE_NAME) or full.removeprefix(f"{DATABASE}.")


def _is_enabled(opened: OpenTable) -> bool:
    try:
        return TableOptions(opened.schema.options).get(SERVICE_BACKUP_ENABLED)
    except LakeletError:
        return False


def _files(number: int) -> str:
    return "1 file" if number == 1 else f"{number} files"
