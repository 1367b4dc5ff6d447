"""The folder of lookup files: local SST files of this process, limited in bytes, dropped when they were not used for long.

    <root>/<name of the process>/LOCK                        held by flock as long as the process lives
    <root>/<name of the process>/{level}-{sequence}-{uuid}.sst

Lookup files are a cache: they are made of data files, which never change, and may vanish at any moment. A process has a folder of
its own, so that nobody reads what another one writes or deletes; folders of processes that are gone are removed by the next one.
"""

from __future__ import annotations

import fcntl
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


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A lookup file on this machine's disk."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class DiskLimits:
    """How many bytes lookup files may take, and after how many seconds without use they are dropped."""

    most_bytes: int
    retention_seconds: float


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
        self._files: OrderedDict[Hashable, tuple[LocalFile, float]] = OrderedDict()
        self._bytes = 0
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
        with self._lock:
            self._drop_unused(now, limits)
            found = self._files.get(name)
            if found is not None:
                self._files[name] = (found[0], now)
                self._files.move_to_end(name)
                return found[0]
        made, _ = self._flights.load(name, lambda: self._make(name, level, make, limits, clock, ids))
        return made

    def forget(self, name: Hashable, file: LocalFile) -> None:
        """Drop a file that cannot be read, so that the next use makes it anew."""
        with self._lock:
            found = self._files.get(name)
            if found is not None and found[0] == file:
                self._remove(name)

    @property
    def names(self) -> list[str]:
        """The names of all files, the least recently used first."""
        with self._lock:
            return [os.path.basename(file.path) for file, _ in self._files.values()]

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
        made = LocalFile(path, size)
        if size > limits.most_bytes:
            with suppress(OSError):
                os.unlink(path)
            raise InvalidError(
                f"a lookup file takes {size} bytes, more than all of them may: raise option 'lookup.cache-max-disk-size', found "
                f"{limits.most_bytes}"
            )
        with self._lock:
            self._files[name] = (made, clock.monotonic())
            self._bytes += size
            while self._bytes > limits.most_bytes:
                self._remove(next(iter(self._files)))
        return made

    def _drop_unused(self, now: float, limits: DiskLimits) -> None:
        while self._files:
            name, (_, used) = next(iter(self._files.items()))
            if now - used < limits.retention_seconds and self._bytes <= limits.most_bytes:
                return
            self._remove(name)

    def _remove(self, name: Hashable) -> None:
        file, _ = self._files.pop(name)
        self._bytes -= file.size
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
