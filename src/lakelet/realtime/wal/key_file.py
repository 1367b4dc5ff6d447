"""The names of writes whose log is deleted: `keys.db` in the folder of logs, an SQLite database that is made with the first one.

    keys    number    INTEGER PRIMARY KEY   rises with every name, so that the oldest ones are the first
            name      BLOB UNIQUE           as in the log (`format/wal/wal_group`)
            time_ms   INTEGER               when the write was made
            note      BLOB                  what its writer wants to know about it

A memtable's names are kept here after its commit and before its log is deleted: a crash in between leaves the log, from which
they are kept again. Names are valid for a day, and the newest million of them at most: so is the file bounded. Memory holds a few
pages of it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakelet.errors import CorruptionError, UnavailableError
from lakelet.format.wal.wal_group import WalKey

if TYPE_CHECKING:
    import sqlite3

    from lakelet.clock import Clock

VALID_MS = 24 * 60 * 60 * 1000
MOST_KEYS = 1_000_000
_NAME = "keys.db"
_PRIVATE = 0o600
_CACHE_KIBIBYTES = 1024
_TABLE = "CREATE TABLE IF NOT EXISTS keys (number INTEGER PRIMARY KEY, name BLOB UNIQUE, time_ms INTEGER, note BLOB)"
# A log that was kept before may be kept again: an older name never replaces a newer one.
_KEEP = """
INSERT INTO keys (name, time_ms, note) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE
SET number = (SELECT max(number) + 1 FROM keys), time_ms = excluded.time_ms, note = excluded.note
WHERE excluded.time_ms > keys.time_ms
"""
_FIND = "SELECT name, time_ms, note FROM keys WHERE name IN ({})"
_ASKED_TOGETHER = 500
_NEXT = "SELECT number, name, time_ms, note FROM keys WHERE number > ? AND time_ms > ? ORDER BY number LIMIT ?"
_READ_TOGETHER = 20_000
_FIRST_VALID = "SELECT number FROM keys WHERE time_ms > ? ORDER BY number LIMIT 1"


class KeyFile:
    """The names of committed writes; for any number of threads of the process that holds the folder's lock."""

    def __init__(self, folder: str, most_keys: int = MOST_KEYS) -> None:
        self._path = os.path.join(folder, _NAME)
        self._most_keys = most_keys
        self._lock = threading.Lock()
        self._writes = threading.Lock()
        # Looking waits for no transaction: SQLite's own log lets one connection read while the other writes.
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None

    def keep(self, keys: Collection[WalKey], now_ms: int) -> None:
        """Keep names, durably when it returns, and forget those that are not valid any more."""
        if not keys:
            return
        with self._writes, self._errors():
            if self._writer is None:
                self._writer = self._connected()
            with self._writer as transaction:
                transaction.executemany(_KEEP, [(key.name, key.time_ms, key.note) for key in keys])
                (last,) = transaction.execute("SELECT max(number) FROM keys").fetchone()
                valid = transaction.execute(_FIRST_VALID, (now_ms - VALID_MS,)).fetchone()
                first = last + 1 if valid is None else valid[0]
                transaction.execute("DELETE FROM keys WHERE number < ?", (max(first, last - self._most_keys + 1),))

    def find(self, names: Sequence[bytes], now_ms: int) -> dict[bytes, WalKey]:
        """Those of some names that are kept and valid."""
        found: list[tuple[bytes, int, bytes]] = []
        with self._lock, self._errors():
            if self._reader is None:
                if not os.path.exists(self._path):
                    return {}
                self._reader = self._connected()
            for first in range(0, len(names), _ASKED_TOGETHER):
                asked = names[first : first + _ASKED_TOGETHER]
                found += self._reader.execute(_FIND.format(", ".join("?" * len(asked))), asked).fetchall()
        return {name: WalKey(name, time_ms, note) for name, time_ms, note in found if is_valid(time_ms, now_ms)}

    def valid(self, now_ms: int) -> Iterator[list[WalKey]]:
        """All names that are valid, the oldest first, in parts."""
        last = -1
        while True:
            with self._lock, self._errors():
                if self._reader is None:
                    if not os.path.exists(self._path):
                        return
                    self._reader = self._connected()
                found = self._reader.execute(_NEXT, (last, now_ms - VALID_MS, _READ_TOGETHER)).fetchall()
            if not found:
                return
            last = found[-1][0]
            yield [WalKey(name, time_ms, note) for _, name, time_ms, note in found]

    def close(self) -> None:
        """Close the file; once is enough."""
        with self._lock, self._writes:
            for one in (self._reader, self._writer):
                if one is not None:
                    one.close()
            self._reader = self._writer = None

    def _connected(self) -> sqlite3.Connection:
        import sqlite3  # noqa: PLC0415 - most writers name no writes.

        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _PRIVATE))
        folder = os.open(os.path.dirname(self._path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        made = sqlite3.connect(self._path, check_same_thread=False, timeout=60.0)
        made.execute("PRAGMA journal_mode = WAL")
        made.execute("PRAGMA synchronous = FULL")
        made.execute(f"PRAGMA cache_size = -{_CACHE_KIBIBYTES}")
        made.execute(_TABLE)
        return made

    @contextmanager
    def _errors(self) -> Iterator[None]:
        import sqlite3  # noqa: PLC0415 - as above.

        try:
            yield
        except (sqlite3.OperationalError, OSError) as error:
            raise UnavailableError(f"{self._path}: the names of writes cannot be kept or looked up: {error}") from error
        except sqlite3.DatabaseError as error:
            raise CorruptionError(
                f"{self._path}: expected the names of writes, found: {error}. Rows are not in it; without the file a write that "
                "is repeated is written again"
            ) from error


def is_valid(time_ms: int, now_ms: int) -> bool:
    """Whether a name of that time still stands for its write."""
    return time_ms > now_ms - VALID_MS


def kept_keys(folder: str, clock: Clock) -> Iterator[list[WalKey]]:
    """The names in a folder of logs that are valid now, in parts; for whoever does not have the file open."""
    file = KeyFile(folder)
    try:
        yield from file.valid(clock.now_ms())
    finally:
        file.close()
