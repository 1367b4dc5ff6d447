"""The folder of lookup files: local SST files of this process, limited in bytes, dropped when they were not used for long.

    <root>/<name of the process>/LOCK                        held by flock as long as the process lives
    <root>/<name of the process>/{level}-{sequence}-{uuid}.sst

Lookup files are a cache: they are made of data files, which never change, and may vanish at any moment. A process has a folder of
its own, so that nobody reads what another one writes or deletes; folders of processes that are gone are removed by the next one.
A limit on bytes is one of a table: files of one never make those of another go, whatever the limits of the two are. A file that
is unused for long is dropped after the time of the table that used it last, whichever table is read then.
"""

from __future__ import annotations

import fcntl
import math
import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lakelet.cache.process_fork import reset_in_children
from lakelet.cache.single_flight import SingleFlight
from lakelet.clock import Clock
from lakelet.errors import InvalidError, UnavailableError
from lakelet.ids import Ids

_LOCK = "LOCK"
_UUID_CHARACTERS = 8
_TRIES = 5


@dataclass(slots=True, eq=False)
class LocalFile:
    """A lookup file on this machine's disk. Who reads it without asking the folder sets `used`, and looks if it `is_dropped`."""

    path: str
    size: int
    owner: Hashable
    used: float
    retention_seconds: float
    is_dropped: bool = False


@dataclass(frozen=True, slots=True)
class DiskLimits:
    """How many bytes the lookup files of a table may take, and after how many seconds without use they are dropped."""

    most_bytes: int
    retention_seconds: float
    owner: Hashable = None


class LookupFolder:
    """The lookup files of this process below one root. Any number of threads may use it. `loads` are loads of their blocks."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.reset()
        reset_in_children(self)

    def reset(self) -> None:
        """Start anew: a forked process has a folder of its own."""
        self._lock = threading.Lock()
        self._flights: SingleFlight[LocalFile] = SingleFlight()
        self.loads: SingleFlight[Any] = SingleFlight()
        for file in getattr(self, "_files", {}).values():
            # Readers that a forked process has open read files of its parent.
            file.is_dropped = True
        self._files: OrderedDict[Hashable, LocalFile] = OrderedDict()
        self._bytes: dict[Hashable, int] = {}
        self.next_sweep = math.inf
        self._sequence = 0
        self._path: str | None = None
        held: int | None = getattr(self, "_held", None)
        if held is not None:
            # The lock is the parent's, who still has it.
            os.close(held)
        self._held: int | None = None

    def file(
        self,
        name: Hashable,
        level: int,
        make: Callable[[str], int],
        limits: DiskLimits,
        clock: Clock,
        ids: Ids,
    ) -> LocalFile:
        """The lookup file of this name; where there is none, `make` writes it to a path and says how many bytes it has."""
        now = clock.monotonic()
        if now >= self.next_sweep:
            self.sweep(now)
        with self._lock:
            self._shrink(limits)
            found = self._files.get(name)
            if found is not None:
                found.used, found.retention_seconds = now, limits.retention_seconds
                self.next_sweep = min(self.next_sweep, now + limits.retention_seconds)
                self._files.move_to_end(name)
                return found
        made, _ = self._flights.load(name, lambda: self._make(name, level, make, limits, clock, ids))
        return made

    def holds(self, name: Hashable) -> bool:
        """Whether there is a file of this name."""
        with self._lock:
            return name in self._files

    def forget(self, name: Hashable, file: LocalFile) -> None:
        """Drop a file that cannot be read, so that the next use makes it anew."""
        with self._lock:
            if self._files.get(name) is file:
                self._remove(name)

    def sweep(self, now: float) -> None:
        """Drop files of any table that were not used for as long as their tables say. `next_sweep` is when to do so again."""
        with self._lock:
            for name in [name for name, file in self._files.items() if now - file.used >= file.retention_seconds]:
                self._remove(name)
            self.next_sweep = min(
                (file.used + file.retention_seconds for file in self._files.values()), default=math.inf
            )

    def bytes_of(self, owner: Hashable) -> int:
        """The bytes of all files of a table."""
        return self._bytes.get(owner, 0)

    @property
    def names(self) -> list[str]:
        """The names of all files, the least recently used first."""
        with self._lock:
            return [os.path.basename(file.path) for file in sorted(self._files.values(), key=lambda file: file.used)]

    def _make(
        self,
        name: Hashable,
        level: int,
        make: Callable[[str], int],
        limits: DiskLimits,
        clock: Clock,
        ids: Ids,
    ) -> LocalFile:
        try:
            with self._lock:
                folder = self._own_folder(ids)
                self._sequence += 1
                unique = ids.uuid().replace("-", "")[-_UUID_CHARACTERS:]
                path = os.path.join(folder, f"{level}-{self._sequence:05d}-{unique}.sst")
            unfinished = f"{path}.tmp"
            try:
                size = make(unfinished)
                os.replace(unfinished, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(unfinished)
                raise
        except OSError as error:
            raise UnavailableError(f"a lookup file cannot be written below {self.root}: {error}") from error
        if size > limits.most_bytes:
            with suppress(OSError):
                os.unlink(path)
            raise InvalidError(
                f"a lookup file takes {size} bytes, more than all of its table may: raise option "
                f"'lookup.cache-max-disk-size', found {limits.most_bytes}"
            )
        with self._lock:
            made = LocalFile(path, size, limits.owner, clock.monotonic(), limits.retention_seconds)
            if name in self._files:
                # Another thread made it between our look and our flight.
                self._remove(name)
            self._files[name] = made
            self._bytes[made.owner] = self._bytes.get(made.owner, 0) + size
            self.next_sweep = min(self.next_sweep, made.used + made.retention_seconds)
            self._shrink(limits)
        return made

    def _shrink(self, limits: DiskLimits) -> None:
        """Drop files of a table, the least recently used first, until they are within its limit."""
        while self._bytes.get(limits.owner, 0) > limits.most_bytes:
            own = [(name, file) for name, file in self._files.items() if file.owner == limits.owner]
            # Of files used at one moment, the one that the folder was asked for longest ago goes first.
            self._remove(min(own, key=lambda pair: pair[1].used)[0])

    def _remove(self, name: Hashable) -> None:
        file = self._files.pop(name)
        file.is_dropped = True
        self._bytes[file.owner] -= file.size
        if not self._bytes[file.owner]:
            del self._bytes[file.owner]
        with suppress(OSError):
            os.unlink(file.path)

    def _own_folder(self, ids: Ids) -> str:
        """The folder of this process, made if it is not there, and again if somebody removed it."""
        if self._path is not None and os.path.exists(os.path.join(self._path, _LOCK)):
            return self._path
        os.makedirs(self.root, mode=0o700, exist_ok=True)
        self._remove_abandoned()
        for attempt in range(_TRIES):
            path = os.path.join(self.root, f"{os.getpid()}-{ids.uuid()}")
            os.makedirs(path, mode=0o700, exist_ok=True)
            try:
                held = _locked(os.path.join(path, _LOCK))
            except OSError:
                if attempt == _TRIES - 1:
                    raise
                continue
            break
        if self._held is not None:
            os.close(self._held)
        self._path, self._held = path, held
        return path

    def _remove_abandoned(self) -> None:
        """Remove the folders whose processes are gone. One without a lock file is just being made."""
        for name in os.listdir(self.root):
            folder = os.path.join(self.root, name)
            if os.path.islink(folder) or not os.path.isdir(folder):
                continue
            try:
                held = os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_NOFOLLOW)
            except OSError:
                continue
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            except OSError:
                pass
            finally:
                os.close(held)


def _locked(path: str) -> int:
    """The descriptor of a lock file that this process holds; OSError where another one took its folder for an abandoned one."""
    held = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(held), os.stat(path)):
            raise FileNotFoundError(path)
    except OSError:
        os.close(held)
        raise
    return held


_FOLDERS: dict[str, LookupFolder] = {}
_FOLDERS_LOCK = threading.Lock()


def lookup_folder(root: str) -> LookupFolder:
    """The lookup files of this process below a root."""
    with _FOLDERS_LOCK:
        return _FOLDERS.setdefault(root, LookupFolder(root))
