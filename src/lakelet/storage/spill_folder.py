"""Spill folders, and the removal of those that killed processes left behind.

    <temporary folder>/lakelet-spill-<user>/<uuid>.lock     held by flock(2) for as long as the process lives
                                            <uuid>/…        its folders

The temporary folder is the one that LAKELET_TMPDIR names, else the system's (TMPDIR). A process removes its folders when it
ends; one that was killed cannot. The next process that spills finds a lock that nobody holds, and removes what belongs to it:
the system releases a lock when its holder dies, so that neither age nor process ids, which are unreliable, are used. It never
touches anything without such a lock, nor follows a link.
"""

import atexit
import fcntl
import os
import shutil
import stat
import tempfile
import threading
from contextlib import suppress

from lakelet.ids import RandomIds

_ids = RandomIds()
_LOCK = ".lock"
_OPEN = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


class SpillFolder(tempfile.TemporaryDirectory[str]):
    """A folder that is removed by `cleanup`, with the object, at the end of the process, or after a kill by the next process."""

    def __init__(self, prefix: str) -> None:
        super().__init__(prefix=prefix, dir=process_folder(), ignore_cleanup_errors=True)


def spill_root() -> str:
    """The temporary folder."""
    return os.environ.get("LAKELET_TMPDIR") or tempfile.gettempdir()


def process_folder() -> str:
    """The folder of this process, made at first use; its contents are removed when the process ends, or by a later one."""
    return _process.folder()


def engine_folder() -> str:
    """The path of DuckDB's spill folder, which DuckDB makes when needed and removes, unless it is killed.

    A temporary folder in which nothing can be made is no reason to refuse queries that need none.
    """
    try:
        parent = process_folder()
    except OSError:
        parent = spill_root()
    return os.path.join(parent, f"lakelet-{_ids.uuid()}")


class _Process:
    """The folders of this process, one below each temporary folder in use, and their locks."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._folders: dict[str, str] = {}
        self._locks: list[int] = []

    def folder(self) -> str:
        root = spill_root()
        with self._guard:
            if not os.path.isdir(self._folders.get(root, "")):
                self._folders[root] = self._made(root)
            return self._folders[root]

    def remove(self) -> None:
        """Removes everything when the process ends."""
        for folder in self._folders.values():
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):
                os.unlink(folder + _LOCK)

    def forget(self) -> None:
        """In a forked child: the folders are the parent's."""
        self._guard = threading.Lock()
        self._folders, self._locks = {}, []

    def _made(self, root: str) -> str:
        shared = _shared_folder(root)
        if shared is None:
            return tempfile.mkdtemp(prefix="lakelet-spill-", dir=root)
        _sweep(shared)
        while True:
            folder = os.path.join(shared, _ids.uuid())
            lock = os.open(folder + _LOCK, _OPEN | os.O_CREAT | os.O_EXCL, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Another process may have removed the lock file before it was locked.
            if _is_at(lock, folder + _LOCK):
                os.mkdir(folder, 0o700)
                self._locks.append(lock)
                return folder
            os.close(lock)


def _shared_folder(root: str) -> str | None:
    """The folder of all processes of this user; None where another user owns that name."""
    path = os.path.join(root, f"lakelet-spill-{os.getuid()}")
    with suppress(FileExistsError):
        os.makedirs(path, 0o700)
    status = os.lstat(path)
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    return path if is_ours else None


def _sweep(shared: str) -> None:
    """Removes the folders whose processes are dead."""
    for entry in os.listdir(shared):
        if not entry.endswith(_LOCK):
            continue
        path = os.path.join(shared, entry)
        with suppress(OSError):
            lock = os.open(path, _OPEN)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(lock, path):
                    # The lock is removed last: as long as anything is left, another process can find it.
                    _remove_tree(path.removesuffix(_LOCK))
                    os.unlink(path)
            finally:
                os.close(lock)


def _remove_tree(folder: str) -> None:
    # A link in its place is not followed: rmtree refuses one.
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


def _is_at(descriptor: int, path: str) -> bool:
    try:
        found, own = os.stat(path, follow_symlinks=False), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)


_process = _Process()
atexit.register(_process.remove)
os.register_at_fork(after_in_child=_process.forget)
