"""Single steps of the local store in system calls: read, write, link, fsync, unlink.

Place in the data path: below the local store, which decides their order. Whole files are read and written with the system's own
calls: Python's file objects make four more for each file, and a commit has twenty.
"""

import errno
import os
from contextlib import suppress

from lakelet.errors import AlreadyExistsError, InvalidError

_READ_BYTES = 1 << 20
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})


def link_if_absent(temporary: str, full: str) -> bool:
    """Give a file a second name; False where the name is taken."""
    try:
        os.link(temporary, full, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno in _NO_HARD_LINKS:
            raise InvalidError(
                f"{full}: the file system has no hard links ({error.strerror}), so that a commit cannot be "
                "created atomically; use another file system or S3"
            ) from error
        raise
    return True


def make_folders(folder: str) -> None:
    """Make a folder and those above it."""
    try:
        os.makedirs(folder, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise AlreadyExistsError(f"{folder}: expected a folder, found a file") from error


def read_file(full: str) -> bytes:
    """The bytes of a file, whatever its size becomes meanwhile."""
    descriptor = os.open(full, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        whole = os.read(descriptor, size + 1)
        if size and len(whole) == size:
            # There was room for more: this is the end.
            return whole
        parts = [whole]
        while parts[-1]:
            parts.append(os.read(descriptor, _READ_BYTES))
        return b"".join(parts)
    finally:
        os.close(descriptor)


def write_new_file(full: str, data: bytes, *, synced: bool) -> None:
    """Create a file with these bytes, fsynced if requested; FileExistsError where the name is taken."""
    descriptor = os.open(full, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        if synced:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fsync_path(path: str) -> None:
    """Fsync a file or a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def unlink_quietly(temporary: str) -> None:
    """Remove a temporary, which is hidden and harmless: a failure must not hide the outcome of the call."""
    with suppress(OSError):
        os.unlink(temporary)
