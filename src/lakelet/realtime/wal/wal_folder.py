"""The folder of a table's write-ahead logs: one writer at a time, and the logs that it finds.

    <state folder>/lakelet/wal/<table identity>/LOCK          held by flock(2) while a writer is open; its process id inside
                                                TABLE         where the table of the last writer is (`log_owner`)
                                                wal-N.log     the rows of memtable N
                                                wal-N.tmp     a log that is being created
                                                wal-N.log.damaged   a log that was set aside; nobody reads it
                                                keys.db       names of writes whose log is deleted (`key_file`)
                                                RESERVE       some kilobytes that are given up where the disk is full

A flush frees its log, and needs the next one before: on a disk that is full to the last byte of logs nothing could ever be freed.
So the reserve is given up for the next log, and taken again when a log is deleted.

The system releases the lock when its process dies. After a flush the newest log stays, with a header and no rows: it says which
commit user and which number come next, so that numbers rise for as long as the folder exists.
"""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import suppress

from lakelet.errors import ConflictError, CorruptionError, InvalidError, UnavailableError
from lakelet.format.wal.wal_log import WalContents, WalHeader, encode_wal_header, read_intact, read_wal, read_wal_header
from lakelet.realtime.wal.key_file import KeyFile
from lakelet.realtime.wal.wal_file import WalFile
from lakelet.storage.disk.system_errors import SystemErrors

_NAME = re.compile(r"wal-([0-9]{1,19})\.log")
_LOCK = "LOCK"
_RESERVE = "RESERVE"
_RESERVE_BYTES = 1 << 15
_PRIVATE = 0o600
_HEADER_BYTES = 1 << 16


class WalFolder:
    """The logs of one table, locked for this writer."""

    def __init__(self, path: str, identity: str) -> None:
        self.path = path
        self.identity = identity
        with SystemErrors(path):
            make_folder(path)
        self._lock = lock_folder(path)
        self.keys = KeyFile(path)
        for name in os.listdir(path):
            if name.startswith("wal-") and name.endswith(".tmp"):
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(path, name))
        self._reserve()

    def numbers(self) -> list[int]:
        """The sequence numbers of the logs, ascending."""
        return log_numbers(self.path)

    def log_path(self, number: int) -> str:
        """The path of a log."""
        return os.path.join(self.path, f"wal-{number}.log")

    def read(self, number: int) -> WalContents:
        """A log of this table; InvalidError for one of another table, CorruptionError for a damaged one."""
        path = self.log_path(number)
        found = read_log(path)
        self._check(found.header, number, path)
        return found

    def read_intact(self, number: int) -> WalContents | None:
        """The rows of a damaged log that are before the damage; None where not even its header can be read."""
        path = self.log_path(number)
        with SystemErrors(path), open(path, "rb") as file:
            data = file.read()
        try:
            found = read_intact(data, path=path)
            self._check(found.header, number, path)
        except CorruptionError:
            return None
        return found

    def set_aside(self, number: int) -> str:
        """Rename a damaged log so that nobody takes it for one; its new path."""
        path = self.log_path(number)
        aside, count = f"{path}.damaged", 1
        while os.path.lexists(aside):
            count += 1
            aside = f"{path}.damaged-{count}"
        with SystemErrors(path):
            os.rename(path, aside)
            sync_folder(self.path)
        return aside

    def header(self, number: int) -> WalHeader:
        """The header of a log."""
        path = self.log_path(number)
        with SystemErrors(path), open(path, "rb") as file:
            found, _ = read_wal_header(file.read(_HEADER_BYTES), path=path)
        self._check(found, number, path)
        return found

    def create(self, header: WalHeader) -> WalFile:
        """A new log. Its header is durable before its name appears."""
        try:
            return self._create(header)
        except UnavailableError:
            if not self._give_up_reserve():
                raise
            return self._create(header)

    def _create(self, header: WalHeader) -> WalFile:
        path, data = self.log_path(header.sequence_number), encode_wal_header(header)
        temporary = f"{path.removesuffix('.log')}.tmp"
        with SystemErrors(path):
            flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(temporary, flags, _PRIVATE)
            try:
                file = WalFile(path, descriptor, 0)
                file.append(data)
                file.sync()
                os.rename(temporary, path)
                sync_folder(self.path)
            except BaseException:
                os.close(descriptor)
                with suppress(OSError):
                    os.unlink(temporary)
                raise
        return file

    def remove(self, number: int) -> None:
        """Delete a log whose rows are committed."""
        with SystemErrors(self.log_path(number)), suppress(FileNotFoundError):
            os.unlink(self.log_path(number))
        self._reserve()

    def close(self) -> None:
        """Release the lock; once is enough."""
        self.keys.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _reserve(self) -> None:
        """Take the reserve, unless it is there; a disk that has no room for it now may have some later."""
        path = os.path.join(self.path, _RESERVE)
        if os.path.lexists(path):
            return
        with suppress(OSError):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, _PRIVATE)
            try:
                os.write(descriptor, bytes(_RESERVE_BYTES))
            finally:
                os.close(descriptor)

    def _give_up_reserve(self) -> bool:
        """Make room for the next log; whether there was a reserve."""
        try:
            os.unlink(os.path.join(self.path, _RESERVE))
        except OSError:
            return False
        return True

    def _check(self, header: WalHeader, number: int, path: str) -> None:
        if header.table_identity != self.identity:
            raise InvalidError(
                f"{path} holds rows of another table: expected the identity {self.identity}, found {header.table_identity}"
            )
        if header.sequence_number != number:
            raise CorruptionError(
                f"{path}: the log is number {header.sequence_number}, expected {number} as in its name"
            )


def lock_folder(folder: str) -> int:
    """Lock a folder of logs for this process until the descriptor is closed; ConflictError while somebody else writes it."""
    path = os.path.join(folder, _LOCK)
    with SystemErrors(path):
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _PRIVATE)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.pread(lock, 32, 0).decode(errors="replace").strip()
        os.close(lock)
        raise ConflictError(
            f"{folder} is in use by another writer of this table (process {holder or 'unknown'}): close it, or give this "
            "one a wal_folder of its own"
        ) from error
    # Who holds it is told to people alone; on a full disk nobody is.
    with suppress(OSError):
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
    return lock


def make_folder(path: str) -> None:
    """Make a folder and those above it, each durable: a log is lost with its folder."""
    parent = os.path.dirname(path)
    if parent != path and not os.path.isdir(parent):
        make_folder(parent)
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    sync_folder(parent)


def sync_folder(path: str) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def log_numbers(path: str) -> list[int]:
    """The sequence numbers of the logs in a folder, ascending; none where there is no folder."""
    with SystemErrors(path):
        try:
            names = os.listdir(path)
        except FileNotFoundError:
            return []
    return sorted(int(match[1]) for name in names if (match := _NAME.fullmatch(name)))


def read_log(path: str) -> WalContents:
    """The contents of a log, whatever table it belongs to."""
    with SystemErrors(path), open(path, "rb") as file:
        data = file.read()
    return read_wal(data, path=path)
