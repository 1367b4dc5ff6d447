"""A disk that is full: the files below a folder may have so many bytes together, and a write beyond them is an ENOSPC."""

import errno
import os
from pathlib import Path

import pytest


class SmallDisk:
    """Bounds the bytes that `os.write` and `os.pwrite` put into files below a folder."""

    def __init__(self, folder: Path, size: int, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.size = folder, size
        write, pwrite = os.write, os.pwrite

        def bounded_write(descriptor: int, data: bytes) -> int:
            self._check(descriptor, os.fstat(descriptor).st_size + len(data))
            return write(descriptor, data)

        def bounded_pwrite(descriptor: int, data: bytes, at: int) -> int:
            self._check(descriptor, at + len(data))
            return pwrite(descriptor, data, at)

        patch.setattr(os, "write", bounded_write)
        patch.setattr(os, "pwrite", bounded_pwrite)

    @property
    def used(self) -> int:
        """The bytes of all files."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def _check(self, descriptor: int, end: int) -> None:
        info = os.fstat(descriptor)
        is_here = any(
            path.is_file() and path.stat().st_ino == info.st_ino and path.stat().st_dev == info.st_dev
            for path in self.folder.rglob("*")
        )
        if is_here and self.used - info.st_size + max(end, info.st_size) > self.size:
            raise OSError(errno.ENOSPC, "No space left on device")
