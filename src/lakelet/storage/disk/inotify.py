"""Changes of files as Linux reports them: one inotify instance for the process, and who is told of which inodes.

Place in the data path: below `folder_watch`. The system queues an event before the call that caused it returns, whichever process
made that call. So what was finished before `settle` looks is in the queue, or was taken from it by another thread, which says so
before it reads. One call of the system answers for any number of folders, and nobody waits for events.

What is watched are inodes, not paths. A watch of an inode that is deleted ends; a full queue counts as a change of everything.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
import sys
import termios
import threading
from collections.abc import Collection
from contextlib import suppress
from typing import Protocol

MODIFIED, ATTRIBUTES, WRITTEN = 0x2, 0x4, 0x8
MOVED_FROM, MOVED_TO, CREATED, DELETED = 0x40, 0x80, 0x100, 0x200
SELF_DELETED, SELF_MOVED = 0x400, 0x800
UNMOUNTED, OVERFLOWED, ENDED = 0x2000, 0x4000, 0x8000
FOLDERS_ONLY, NO_LINKS, ADDED_TO_MASK = 0x01000000, 0x02000000, 0x20000000
_EVENT = struct.Struct("=iIII")
_READ_BYTES = 1 << 16
_NOTHING = struct.pack("=i", 0)
# File systems all of whose changes pass through this machine's kernel, by the number that statfs gives: ext2 to ext4, XFS, Btrfs,
# tmpfs, F2FS. One of a network, or one that shows another one's files, may change without an event.
_LOCAL = frozenset({0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0xF2F52010})
_STATFS_BYTES = 256


class Listener(Protocol):
    """Is told of events, with the lock of the instance held."""

    def changed(self, mask: int) -> None:
        """Something of what was asked for has happened; with `OVERFLOWED` perhaps."""
        ...


class Inotify:
    """An inotify instance; any number of threads may use it. It is closed when nothing is watched any more."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self.reset()

    def reset(self) -> None:
        """Start anew: a forked process would take events from its parent."""
        inherited: int | None = getattr(self, "_descriptor", None)
        self._lock = threading.Lock()
        listeners = {one for own in getattr(self, "_listeners", {}).values() for one in own}
        # Those of each watch, with the events that each has asked for.
        self._listeners: dict[int, dict[Listener, int]] = {}
        self._is_reading = False
        self._descriptor: int | None = None
        if inherited is not None:
            with suppress(OSError):
                os.close(inherited)
        for listener in listeners:
            listener.changed(ENDED)

    def add(self, path: str, mask: int, listener: Listener) -> int:
        """Watch an inode for a listener; the number of the watch. OSError where there is no such inode, or no room for another
        watch."""
        with self._lock:
            if self._descriptor is None:
                self._descriptor = self._call(self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
            watch = self._call(
                self._library.inotify_add_watch(self._descriptor, os.fsencode(path), mask | ADDED_TO_MASK | NO_LINKS)
            )
            # Others may have asked for other events of the same inode, and are told of none but those.
            self._listeners.setdefault(watch, {})[listener] = mask
            return watch

    def remove(self, watches: Collection[int], listeners: Collection[Listener]) -> None:
        """End watches of some listeners."""
        with self._lock:
            for watch in watches:
                own = self._listeners.get(watch)
                if own is None:
                    continue
                for listener in listeners:
                    own.pop(listener, None)
                if not own:
                    del self._listeners[watch]
                    # The system may have ended it already.
                    self._library.inotify_rm_watch(self._descriptor, watch)
            if not self._listeners and self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def settle(self) -> None:
        """Tell listeners of everything that has happened before this call."""
        descriptor = self._descriptor
        if descriptor is None:
            return
        try:
            # Bytes that may be changed are not copied, which takes as long as the call.
            waiting = bytearray(_NOTHING)
            fcntl.ioctl(descriptor, termios.FIONREAD, waiting, True)
            if waiting == _NOTHING and not self._is_reading:
                return
        except OSError:
            # It was closed since: whoever did so watches nothing any more.
            pass
        with self._lock:
            # Others see this until those are told whose events are in the queue no longer.
            self._is_reading = True
            try:
                self._read()
            finally:
                self._is_reading = False

    def _read(self) -> None:
        while self._descriptor is not None:
            try:
                data = os.read(self._descriptor, _READ_BYTES)
            except BlockingIOError:
                return
            except BaseException:
                self._tell(None, OVERFLOWED)
                raise
            at = 0
            while at < len(data):
                watch, mask, _, name_bytes = _EVENT.unpack_from(data, at)
                at += _EVENT.size + name_bytes
                self._tell(None if mask & OVERFLOWED else watch, mask)
                if mask & ENDED:
                    self._listeners.pop(watch, None)

    def _tell(self, watch: int | None, mask: int) -> None:
        told = [*self._listeners.values()] if watch is None else [self._listeners.get(watch, {})]
        for own in told:
            for listener, wanted in own.items():
                if mask & (wanted | UNMOUNTED | OVERFLOWED | ENDED):
                    listener.changed(mask)

    def is_local(self, path: str) -> bool:
        """Whether all changes of a path's file system pass through this machine's kernel."""
        found = ctypes.create_string_buffer(_STATFS_BYTES)
        if self._library.statfs(os.fsencode(path), found) != 0:
            return False
        return int(ctypes.c_ulong.from_buffer(found).value) & 0xFFFFFFFF in _LOCAL

    def _call(self, result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result


def _available() -> Inotify | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        made = Inotify()
        made.is_local("/")
    except (OSError, AttributeError):
        # No C library, or one without these calls.
        return None
    os.register_at_fork(after_in_child=made.reset)
    return made


INOTIFY = _available()
"""The instance of this process; None where the system has none."""
