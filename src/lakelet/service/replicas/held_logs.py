"""The copies of other nodes' logs that this node holds: written as their origins send them, each group durable before the answer.

A copy takes bytes only from the process that has begun it, while this process lives: after a restart, or once the copy is being
adopted, the origin is refused, and begins another one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from lakelet.clock import Clock
from lakelet.cluster.held_copy import HeldCopy, copies_root, create_copy, held_copies
from lakelet.errors import ConflictError, NotFoundError, UnavailableError
from lakelet.format.wal.wal_group import WalKey
from lakelet.realtime.wal.key_file import KeyFile
from lakelet.realtime.wal.wal_file import WalFile
from lakelet.realtime.wal.wal_folder import lock_folder, sync_folder
from lakelet.storage.disk.system_errors import SystemErrors

_PRIVATE = 0o600


@dataclass(slots=True, eq=False)
class _OpenCopy:
    copy: HeldCopy
    # When its origin was last heard of.
    touched: float
    # Of the folder: nobody recovers it by hand while its origin may be told that rows are durable.
    descriptor: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    files: dict[int, WalFile] = field(default_factory=dict)
    is_closed: bool = False

    def close(self) -> None:
        """Take nothing more; what is being written is first."""
        with self.lock:
            self.is_closed = True
            for file in self.files.values():
                file.close()
            self.files.clear()
            if self.descriptor >= 0:
                os.close(self.descriptor)
                self.descriptor = -1


class HeldLogs:
    """The copies below the folder of this node's logs; for any number of threads."""

    def __init__(self, wal_folder: object, clock: Clock) -> None:
        self._root = copies_root(wal_folder)
        self._clock = clock
        self._lock = threading.Lock()
        self._open: dict[tuple[str, str], _OpenCopy] = {}
        # Why no further copies are taken.
        self.refusal: str | None = None
        self.bytes_written = 0
        self.syncs = 0

    def open(self, origin: str, token: str, identity: str, table: str) -> None:
        """Begin an empty copy."""
        self._check_taken()
        with self._lock:
            made = create_copy(self._root, origin, token, identity, table)
            self._open[origin, token] = _OpenCopy(made, self._clock.monotonic(), lock_folder(made.path))

    def append(self, origin: str, token: str, number: int, offset: int, data: bytes, *, durable: bool) -> None:
        """Write bytes of a log behind those that are there; ConflictError where others are expected."""
        self._check_taken()
        held = self._held(origin, token)
        with held.lock:
            self._check_open(held)
            held.touched = self._clock.monotonic()
            file = held.files.get(number)
            size = 0 if file is None else file.size
            if offset != size:
                raise ConflictError(f"copy {token} of node {origin}: log {number} has {size} bytes, found {offset}")
            if file is None:
                held.files[number] = _created(held.copy, number, data)
            else:
                file.append(data)
                if durable:
                    file.sync()
            self.syncs += durable or file is None
            self.bytes_written += len(data)

    def drop_logs(self, origin: str, token: str, through: int, keys: Sequence[WalKey]) -> None:
        """Delete logs that are committed, and keep the names of their writes."""
        held = self._held(origin, token)
        with held.lock:
            self._check_open(held)
            held.touched = self._clock.monotonic()
            if keys:
                names = KeyFile(held.copy.path)
                try:
                    names.keep(list(keys), self._clock.now_ms())
                finally:
                    names.close()
            for number in [one for one in held.files if one <= through]:
                file = held.files.pop(number)
                file.close()
                with suppress(FileNotFoundError):
                    os.unlink(file.path)

    def drop(self, origin: str, token: str) -> None:
        """Delete a copy that counts no longer."""
        with self._lock:
            held = self._open.pop((origin, token), None)
        if held is not None:
            held.close()
            held.copy.delete()

    def close_copy(self, copy: HeldCopy) -> None:
        """Take nothing more for a copy, which is about to be adopted."""
        with self._lock:
            held = self._open.pop((copy.origin, copy.token), None)
        if held is not None:
            held.close()

    def all(self) -> list[tuple[HeldCopy, float | None]]:
        """All copies, and how many seconds ago each was heard of; None for those of an earlier process."""
        with self._lock:
            now = self._clock.monotonic()
            return [
                (copy, None if (held := self._open.get((copy.origin, copy.token))) is None else now - held.touched)
                for copy in held_copies(self._root)
            ]

    @property
    def logs(self) -> int:
        """How many logs are being written."""
        with self._lock:
            return sum(len(held.files) for held in self._open.values())

    def close(self) -> None:
        """Take nothing more."""
        self.refusal = self.refusal or "the node stops"
        with self._lock:
            opened = list(self._open.values())
            self._open.clear()
        for held in opened:
            held.close()

    def _check_taken(self) -> None:
        if self.refusal is not None:
            raise UnavailableError(self.refusal)

    def _held(self, origin: str, token: str) -> _OpenCopy:
        with self._lock:
            found = self._open.get((origin, token))
        if found is None:
            raise NotFoundError(f"no copy {token} of node {origin} is being written here")
        return found

    def _check_open(self, held: _OpenCopy) -> None:
        if held.is_closed:
            raise NotFoundError(f"copy {held.copy.token} of node {held.copy.origin} takes no more")


def _created(copy: HeldCopy, number: int, data: bytes) -> WalFile:
    """A log with its first bytes, the header among them, which are durable before its name appears."""
    path = os.path.join(copy.path, f"wal-{number}.log")
    temporary = f"{path.removesuffix('.log')}.tmp"
    with SystemErrors(path):
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        made = WalFile(path, os.open(temporary, flags, _PRIVATE), 0)
        try:
            made.append(data)
            made.sync()
            os.rename(temporary, path)
            sync_folder(copy.path)
        except BaseException:
            made.close()
            with suppress(OSError):
                os.unlink(temporary)
            raise
    return made
