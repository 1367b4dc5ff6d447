"""Group commit: rows of many threads go into the log with one write and one sync, then into the active memtable.

    put ── its rows queue up ── whoever finds nobody at work writes all that has queued up: log, sync, memtable ── all return
                                                                                     meanwhile others queue up

The next sync starts when the last one returns; there is no timer. Whoever was at work wakes those whose rows are written, and one
of those that have queued up, who goes on: nobody else is woken. Before that one writes, threads that have just been woken and are
about to queue up get the interpreter, as long as the queue grows. Rows of one put are a group of the log, of which a replay takes
all or none, however many puts one write has. Rows are in memory, and visible, after they are durable. A full
memtable is sealed and another one opened with a log of its own; while there are too many, whoever is at work waits, and so do all
others.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from lakelet.errors import InvalidError, LakeletError, OutcomeUnknownError, UnavailableError
from lakelet.format.wal.wal_log import WalHeader
from lakelet.model.schema import TableSchema
from lakelet.realtime.memtable import Memtable
from lakelet.realtime.memtables import Memtables, SeenKeys
from lakelet.realtime.row_encoder import EncodedRows
from lakelet.realtime.schema_digest import schema_digest
from lakelet.realtime.settings import ALWAYS, INTERVAL, RowWriterSettings
from lakelet.realtime.wal.log_copy import LogCopy, LogPart, LogsAdoptedError
from lakelet.realtime.wal.wal_file import WalFile
from lakelet.realtime.wal.wal_folder import WalFolder
from lakelet.storage.home import TableHome

_LOG = logging.getLogger(__name__)
# A table that was dropped comes back, if at all, by hand.
_GONE_SECONDS = 30.0
_GATHERING_SHARE = 0.25
_SYNCS_REMEMBERED = 8
# The next group gets a new log.
_ADOPTED_SECONDS = 1.0


@dataclass(slots=True, eq=False)
class _Work:
    """Rows to be written, or, without any, a memtable to be sealed; with `seen`, only if that is still so."""

    rows: EncodedRows | None
    schema: TableSchema | None
    seen: SeenKeys | None = None
    done: bool = False
    outdated: bool = False
    sealed: int = 0
    error: BaseException | None = None
    # Held by whoever waits; released once the work is done, or is to be done by its own thread, which `leads` then.
    turn: threading.Lock | None = None
    leads: bool = False

    def finish(self, error: BaseException | None = None) -> None:
        self.done, self.error = True, error

    def wake(self) -> None:
        turn, self.turn = self.turn, None
        if turn is not None:
            turn.release()


class LogWriter:
    """Writes rows into the log and the active memtable; any number of threads."""

    def __init__(
        self,
        home: TableHome,
        folder: WalFolder,
        settings: RowWriterSettings,
        memtables: Memtables,
        log: WalFile,
        user: str,
        copy: LogCopy | None = None,
    ) -> None:
        """With a `copy` rows are acknowledged once they are durable there, too."""
        self._home = home
        self._folder = folder
        self._settings = settings
        self._memtables = memtables
        self._log = log
        self._user = user
        self._copy = copy
        # Whether another node commits the logs up to the active one.
        self._is_adopted = False
        self._waiting: list[_Work] = []
        self._busy = False
        # How many calls the last group was of.
        self._crowd = 0
        # How long syncs take, the last ones foremost.
        self._sync_seconds = 0.0
        self._closed = False
        self._process = os.getpid()
        self._syncs = 0
        self._stop = threading.Event()
        self.late: LakeletError | None = None
        # Why rows of this table cannot be committed: it was dropped, or is another one.
        self.gone: LakeletError | None = None
        self._syncer: threading.Thread | None = None
        if settings.sync == INTERVAL:
            self._syncer = threading.Thread(target=self._sync_in_intervals, name="lakelet-wal-sync", daemon=True)
            self._syncer.start()

    @property
    def syncs(self) -> int:
        """How often a log with rows was synced."""
        return self._syncs + self._log.syncs

    def write(self, rows: EncodedRows, schema: TableSchema, seen: SeenKeys | None = None) -> bool:
        """Write rows and return when they are durable and visible. False, and nothing is written, where the memtables have a
        newer schema already, or keys have other values than were seen."""
        work = _Work(rows, schema, seen)
        self._submit(work)
        return not work.outdated

    def seal(self) -> int:
        """Seal the active memtable, unless it is empty; the number up to which memtables are sealed now. While there is no room
        for another one, this waits; rows go on into the active one meanwhile."""
        wanted: int | None = None
        while True:
            work = _Work(None, None)
            self._submit(work)
            if not work.outdated or (wanted is not None and work.sealed >= wanted):
                return work.sealed
            wanted = wanted or work.sealed + 1
            self._wait_for_room()

    def check_usable(self) -> None:
        """InvalidError after `close`, and in a forked process, which shares files but no threads with its parent."""
        if self._closed:
            raise InvalidError("the writer is closed")
        self.check_process()

    def _check_there(self) -> None:
        if self.gone is not None:
            raise UnavailableError(
                f"{self._folder.path} takes no rows, for those in it cannot be committed: {self.gone}",
                retry_after_seconds=_GONE_SECONDS,
            ) from self.gone

    def check_process(self) -> None:
        """InvalidError in a forked process."""
        if os.getpid() != self._process:
            raise InvalidError("the writer belongs to another process: open one of its own in a forked process")

    def refuse(self) -> None:
        """Take no further rows; those that wait are written first. Memtables can still be sealed."""
        with self._memtables.changed:
            self._closed = True
            self._memtables.changed.wait_for(lambda: not self._busy and not self._waiting)

    def close(self) -> None:
        """Close the log."""
        self._stop.set()
        if self._syncer is not None:
            self._syncer.join()
        self._log.close()

    def _submit(self, work: _Work) -> None:
        turn: threading.Lock | None = None
        with self._memtables.changed:
            if work.rows is not None:
                if self._closed:
                    raise InvalidError("the writer is closed")
                if self.gone is not None:
                    self._check_there()
            self._waiting.append(work)
            if self._busy:
                work.turn = turn = threading.Lock()
                turn.acquire()
            else:
                self._busy = work.leads = True
        try:
            if turn is not None:
                turn.acquire()
            if work.leads:
                self._lead(work)
        except BaseException:
            self._withdraw(work)
            raise
        if work.error is not None:
            raise work.error

    def _withdraw(self, work: _Work) -> None:
        """Take back work whose thread was interrupted; what others have begun to write they finish."""
        with self._memtables.changed:
            work.turn = None
            if work in self._waiting:
                self._waiting.remove(work)
            if work.leads:
                self._hand_over(work)

    def _lead(self, own: _Work) -> None:
        """Write all that has queued up, `own` among it."""
        batch: list[_Work] = []
        try:
            if self._crowd > 1:
                self._gather()
            with self._memtables.changed:
                batch, self._waiting = self._waiting, []
            self._crowd = len(batch)
            self._run(batch)
        finally:
            with self._memtables.changed:
                for work in batch:
                    if not work.done:
                        work.finish(UnavailableError("the write of these rows was interrupted; they may be in the log"))
                    work.wake()
                if own in batch:
                    self._hand_over(own)

    def _gather(self) -> None:
        """Let others queue up as long as more of them do, for a part of the time that a sync takes at most: where a sync is quick
        they had better prepare the next group meanwhile."""
        clock, queued = self._home.clock, 0
        until = clock.monotonic() + self._sync_seconds * _GATHERING_SHARE
        while queued < len(self._waiting):
            queued = len(self._waiting)
            clock.sleep(0)
            if clock.monotonic() >= until:
                return

    def _hand_over(self, own: _Work) -> None:
        """Let the first of those that wait lead the next group; with nobody there, the next one to come will."""
        own.leads = False
        if self._waiting:
            self._waiting[0].leads = True
            self._waiting[0].wake()
        else:
            self._busy = False
            if self._closed:
                # Only `refuse` waits for it. Threads that flush wait for the same condition, and would be woken by every put.
                self._memtables.changed.notify_all()

    def _run(self, batch: Sequence[_Work]) -> None:
        group: Sequence[_Work] = batch
        if not self._is_plain(batch):
            group = []
            for work in batch:
                try:
                    group = self._add(work, group)
                except LakeletError as error:
                    work.finish(error)
        self._write(group)
        active = self._memtables.active
        if active.memory_size >= self._settings.flush_bytes and len(self._memtables.all) < self._settings.memtables:
            try:
                self._roll(active.schema)
            except LakeletError as error:
                # The rows are written; the next ones will need the new memtable, and tell.
                _LOG.warning("no new memtable could be opened: %s", error)

    def _is_plain(self, batch: Sequence[_Work]) -> bool:
        """Whether all of it are rows of the active memtable's schema without conditions, for which it has room."""
        active, size = self._memtables.active, 0
        for work in batch:
            if work.rows is None or work.seen is not None or work.rows.schema_id != active.schema.id:
                return False
            size += len(work.rows.records)
        return not active.folds and active.memory_size + size < self._settings.flush_bytes

    def _add(self, work: _Work, group: list[_Work]) -> list[_Work]:
        """Add work to the group that is written together; the group from then on."""
        if work.rows is None or work.schema is None:
            self._write(group)
            active = self._memtables.active
            work.sealed = active.sequence_number - 1
            if len(active):
                with self._memtables.changed:
                    work.outdated = not self._has_room()
                if not work.outdated:
                    work.sealed += 1
                    self._roll(active.schema)
            work.finish()
            return []
        newest = self._memtables.active.schema
        if work.schema.id < newest.id:
            work.outdated = True
            work.finish()
            return group
        if work.seen is not None:
            if any(not one.rows.keys_are_apart(work.seen.keys) for one in group if one.rows is not None):
                self._write(group)
                group = []
            with self._memtables.changed:
                if not self._memtables.is_unchanged(work.seen):
                    work.outdated = True
                    work.finish()
                    return group
        if self._memtables.active.folds:
            group = self._after_deletions(work.rows, work.schema, group)
        waits = sum(len(one.rows.records) for one in group if one.rows is not None)
        full = self._memtables.active.memory_size + waits >= self._settings.flush_bytes
        if full or work.schema.id > newest.id:
            self._write(group)
            group = []
            if self._memtables.active.memory_size >= self._settings.flush_bytes or work.schema.id > newest.id:
                self._roll(work.schema)
        return [*group, work]

    def _after_deletions(self, rows: EncodedRows, schema: TableSchema, group: list[_Work]) -> list[_Work]:
        """Open another memtable before rows whose keys the active one deletes: folded together they would be an insertion, and
        what older files have of the key would come back. The group from then on."""
        if any(one.rows is not None and one.rows.deletes for one in group):
            self._write(group)
            group = []
        if not rows.deletes and not self._memtables.active.deleted.isdisjoint(rows.keys):
            self._write(group)
            group = []
            self._roll(schema)
        return group

    def _write(self, group: Sequence[_Work]) -> None:
        """Log first, then memory."""
        group = [work for work in group if not work.done]
        rows = [work.rows for work in group if work.rows is not None]
        if not rows:
            return
        data = b"".join([one.logged for one in rows])
        try:
            began = self._home.clock.monotonic()
            if self._copy is not None:
                self._log_twice(self._copy, data)
            else:
                self._log.append(data)
                if self._settings.sync == ALWAYS:
                    self._log.sync()
            if self._settings.sync == ALWAYS:
                self._sync_seconds += (self._home.clock.monotonic() - began - self._sync_seconds) / _SYNCS_REMEMBERED
        except LakeletError as error:
            for work in group:
                work.finish(error)
            return
        with self._memtables.changed:
            active = self._memtables.active
            for one in rows:
                one.apply_to(active)
                if one.write_keys:
                    active.note(one.write_keys)
            for work in group:
                work.finish()

    def _log_twice(self, copy: LogCopy, data: bytes) -> None:
        """Write a group into the log and into its copy on another node, at the same time. After an error it is in neither, except
        that the outcome is unknown where the copy may have it."""
        self._prepare(copy)
        log, number = self._log, self._memtables.active.sequence_number
        begin = log.size
        log.append(data)
        copy.send(LogPart(number, log.path, begin), data)
        try:
            if self._settings.sync == ALWAYS:
                log.sync()
            copy.wait(self._uncommitted)
        except BaseException as error:
            copy.abandon()
            # Before anybody is told: the request may come again, and is another group then.
            log.withdraw(begin)
            self._is_adopted |= isinstance(error, LogsAdoptedError)
            if isinstance(error, UnavailableError | LogsAdoptedError):
                raise OutcomeUnknownError(
                    f"{log.path}: the rows could not be written to a second node: {error}; they may be committed or not"
                ) from error
            raise

    def _prepare(self, copy: LogCopy) -> None:
        """See to it that there is a copy. Where another node commits the logs so far, rows that followed in the active one would
        be taken for committed: they get a new one."""
        try:
            if not self._is_adopted:
                copy.prepare(self._uncommitted)
                return
            self._roll(self._memtables.active.schema)
            self._is_adopted = False
            copy.prepare(self._uncommitted)
        except LogsAdoptedError as error:
            self._is_adopted = True
            raise UnavailableError(f"{self._folder.path}: {error}", retry_after_seconds=_ADOPTED_SECONDS) from error

    def _uncommitted(self) -> list[LogPart]:
        """The logs whose rows are not known to be committed, with all that was appended."""
        with self._memtables.changed:
            numbers = [memtable.sequence_number for memtable in self._memtables.all]
        found = []
        for number in numbers[:-1]:
            path = self._folder.log_path(number)
            with suppress(FileNotFoundError):
                found.append(LogPart(number, path, os.path.getsize(path)))
        return [*found, LogPart(numbers[-1], self._log.path, self._log.size)]

    def _roll(self, schema: TableSchema) -> None:
        """Open another memtable with a log of its own, as soon as there is room for it."""
        self._wait_for_room()
        changed = self._memtables.changed
        before = self._memtables.active
        number = before.sequence_number + 1
        header = WalHeader(self._folder.identity, schema.id, number, self._user, schema_digest(schema))
        log = self._folder.create(header)
        old, self._log = self._log, log
        if self._settings.sync == INTERVAL:
            self._sync_quietly(old)
        self._syncs += old.syncs
        old.close()
        with changed:
            self._memtables.seal(Memtable(number, schema, self._home.clock.now_ms()))

    def _has_room(self) -> bool:
        return len(self._memtables.all) < self._settings.memtables

    def _wait_for_room(self) -> None:
        """Wait until another memtable may be opened; UnavailableError, and nothing is done, where none becomes free in time."""
        with self._memtables.changed:
            if not self._memtables.changed.wait_for(self._has_room, self._settings.wait_seconds):
                reason = f"; the last flush failed: {self.late}" if self.late is not None else ""
                raise UnavailableError(
                    f"{self._settings.memtables} memtables are full or being flushed, and none became free within "
                    f"{self._settings.wait_seconds:g} seconds (option 'memtable.wait-timeout'){reason}",
                    retry_after_seconds=max(1.0, self._settings.wait_seconds),
                ) from self.late

    def _sync_in_intervals(self) -> None:
        while not self._stop.wait(self._settings.sync_interval_seconds):
            self._sync_quietly(self._log)

    def _sync_quietly(self, log: WalFile) -> None:
        """A failed sync breaks the log, which the next put is told."""
        if log.broken:
            return
        try:
            log.sync()
        except LakeletError as error:
            _LOG.warning("a write-ahead log could not be synced: %s", error)
