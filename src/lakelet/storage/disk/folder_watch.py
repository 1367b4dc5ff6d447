"""Whether anything in some folders of a local disk has changed since a moment, without looking into them.

    moment ── look into the folders ── … ── is_unchanged(moment): what was found is still so

Place in the data path: beside the local store, for those who ask the same question again and again and must not miss a change by
any process. What is noticed: a name that comes, goes or changes in one of the folders, and every step of the paths that lead to
them that is moved, deleted or, where it is a symbolic link, replaced. What is not: another file system that is mounted over one
of these steps while the folders are watched.

It is only offered where the kernel of this machine sees every change (`inotify`); who gets none looks every time.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from lakelet.storage.disk.inotify import (
    ATTRIBUTES,
    CREATED,
    DELETED,
    FOLDERS_ONLY,
    INOTIFY,
    MODIFIED,
    MOVED_FROM,
    MOVED_TO,
    SELF_DELETED,
    SELF_MOVED,
    WRITTEN,
    Inotify,
    Listener,
)

_ENTRIES = MODIFIED | ATTRIBUTES | WRITTEN | MOVED_FROM | MOVED_TO | CREATED | DELETED
_PLACE = SELF_DELETED | SELF_MOVED
_MOST_LINKS = 40

_Step = tuple[str, int, int, bool]
"""A step of a path: where it is, its device and inode, and whether it is a symbolic link."""


class _Way:
    """Listens for changes of the steps of paths, each of which means that they may lead elsewhere."""

    def __init__(self) -> None:
        self.is_lost = False

    def changed(self, _: int) -> None:
        """Any event will do, one that was perhaps lost as well."""
        self.is_lost = True


class LocalFolderWatch:
    """Watches folders until it is closed; for any number of threads."""

    def __init__(self, inotify: Inotify, folders: Sequence[str]) -> None:
        self._inotify = inotify
        self._changes = 0
        self._way = _Way()
        self._watches: set[int] = set()
        try:
            self._watch(folders)
        except BaseException:
            self.close()
            raise

    def _watch(self, folders: Sequence[str]) -> None:
        steps = [step for folder in folders for step in _steps(folder)]
        for path, _, _, is_link in steps:
            # Attributes of a folder would be those of all names in it.
            self._add(path, _PLACE | ATTRIBUTES if is_link else _PLACE | FOLDERS_ONLY, self._way)
        for folder in folders:
            self._add(os.path.realpath(folder), _ENTRIES | FOLDERS_ONLY, self)
        # A step that was exchanged before it was watched leads elsewhere now; one that is from now on is noticed.
        if [step for folder in folders for step in _steps(folder)] != steps:
            raise FileNotFoundError(f"{folders[0]} was moved")

    def _add(self, path: str, mask: int, listener: Listener) -> None:
        self._watches.add(self._inotify.add(path, mask, listener))

    def changed(self, _: int) -> None:
        """Count an event; the instance calls this with its lock held."""
        self._changes += 1

    @property
    def is_lost(self) -> bool:
        """Whether one of the paths may lead elsewhere, so that another watch is needed."""
        return self._way.is_lost

    def moment(self) -> int:
        """A name for this moment."""
        self._inotify.settle()
        return self._changes

    def is_unchanged(self, moment: int) -> bool:
        """Whether nothing that was finished between that moment and this call has changed any of the folders."""
        self._inotify.settle()
        return self._changes == moment and not self._way.is_lost

    def close(self) -> None:
        """End the watch; once is enough."""
        self._way.is_lost = True
        self._inotify.remove(self._watches, (self, self._way))
        self._watches = set()


def watch_folders(folders: Sequence[str]) -> LocalFolderWatch | None:
    """A watch of folders that are there; None where it cannot be had."""
    if INOTIFY is None or not all(map(INOTIFY.is_local, folders)):
        return None
    try:
        return LocalFolderWatch(INOTIFY, folders)
    except (OSError, RecursionError):
        # A folder that is not there, or the limits of the system on watches.
        return None


def _steps(path: str) -> list[_Step]:
    """Every name on the way to a folder, those that symbolic links lead over included."""
    found: list[_Step] = []
    waiting, at, links = path.split("/")[::-1], "", 0
    while waiting:
        name = waiting.pop()
        if name in ("", "."):
            continue
        if name == "..":
            at = at.rpartition("/")[0]
            continue
        step = f"{at}/{name}"
        status = os.lstat(step)
        is_link = stat.S_ISLNK(status.st_mode)
        found.append((step, status.st_dev, status.st_ino, is_link))
        if not is_link:
            at = step
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(f"{path}: too many symbolic links")
        target = os.readlink(step)
        waiting += target.split("/")[::-1]
        at = "" if target.startswith("/") else at
    return found
