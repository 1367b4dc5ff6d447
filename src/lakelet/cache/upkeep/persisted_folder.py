"""The folder of a persisted cache on the local disk: a file a table and one with the query history, for each warehouse.

    <folder>/<digest of the warehouse>/history
                                       <digest of the table>

Files are replaced by renaming, so that a reader sees the old bytes or the new ones, and the later of two writers wins: whatever a
file says is checked before it is used, so that neither order does harm. A file that cannot be read, written or understood costs a
warning and nothing else. Others must not be able to write into the folder: what is cached decides which rows a query sees.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Sequence
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from lakelet.cache.upkeep.persisted_file import Piece, decode_file, encode_file
from lakelet.errors import CorruptionError
from lakelet.ids import Ids

_LOG = logging.getLogger(__name__)
_TEMPORARY = ".tmp"
_HISTORY = "history"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class PersistedFolder:
    """The files of one warehouse."""

    def __init__(self, folder: str, warehouse: str, ids: Ids) -> None:
        self._root = Path(os.path.abspath(os.path.expanduser(folder)))
        self._warehouse = warehouse
        self._folder = self._root / _digest(warehouse)
        self._ids = ids
        self._usable: bool | None = None

    def read_table(self, table: str) -> list[Piece] | None:
        """The pieces of a table, None where there are none that can be used."""
        return self._read(_digest(table), table)

    def write_table(self, table: str, pieces: Sequence[Piece]) -> bool:
        """Replace the pieces of a table; whether that was possible."""
        return self._write(_digest(table), table, pieces)

    def remove_table(self, table: str) -> None:
        """Remove the file of a table."""
        if self._is_usable(make=False):
            self._remove(self._folder / _digest(table))

    def read_history(self) -> list[Piece] | None:
        """The pieces of the query history."""
        return self._read(_HISTORY, _HISTORY)

    def write_history(self, pieces: Sequence[Piece]) -> bool:
        """Replace the query history."""
        return self._write(_HISTORY, _HISTORY, pieces)

    def limit(self, max_bytes: int) -> None:
        """Remove the files that were written longest ago until the others are within the limit, and what crashed writers left."""
        if not self._is_usable(make=False):
            return
        found: list[tuple[int, int, Path]] = []
        for path in self._listed():
            try:
                info = path.stat(follow_symlinks=False)
            except OSError:
                continue
            found.append((info.st_mtime_ns, info.st_size, path))
        newest = max((written for written, *_ in found), default=0)
        total = 0
        for written, size, path in sorted(found, reverse=True):
            total += size
            # A temporary of an hour before the newest file was left by a process that is gone.
            if total > max_bytes or (path.suffix == _TEMPORARY and written < newest - 3_600_000_000_000):
                self._remove(path)

    def _listed(self) -> list[Path]:
        try:
            return [path for path in self._folder.iterdir() if path.is_file() and path.name != _HISTORY]
        except OSError:
            return []

    def _read(self, name: str, about: str) -> list[Piece] | None:
        path = self._folder / name
        if not self._is_usable(make=False):
            return None
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            _LOG.warning("persisted cache %s cannot be read: %s", path, error)
            return None
        try:
            return decode_file(data, self._about(about))
        except CorruptionError as error:
            _LOG.warning("persisted cache %s is discarded: %s", path, error)
            self._remove(path)
            return None

    def _write(self, name: str, about: str, pieces: Sequence[Piece]) -> bool:
        if not self._is_usable(make=True):
            return False
        path = self._folder / name
        temporary = self._folder / f"{name}-{self._ids.uuid()}{_TEMPORARY}"
        try:
            # No sync: a file that a power cut has torn fails its checksum.
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.writelines(encode_file(self._about(about), pieces))
            os.replace(temporary, path)
        except OSError as error:
            _LOG.warning("persisted cache %s cannot be written: %s", path, error)
            self._remove(temporary)
            return False
        return True

    def _about(self, name: str) -> str:
        # Another release may decode manifests to other columns.
        return f"{self._warehouse}\n{name}\n{_release()}"

    def _remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            _LOG.warning("persisted cache %s cannot be removed: %s", path, error)

    def _is_usable(self, *, make: bool) -> bool:
        """Whether the folder is there, or was made, and only this user can write into it."""
        if self._usable is not None:
            return self._usable
        try:
            if make:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._usable = _is_private(self._folder)
        except FileNotFoundError:
            return False
        except OSError as error:
            _LOG.warning("the cache is not persisted: %s", error)
            self._usable = False
        return self._usable


def _is_private(folder: Path) -> bool:
    # Of the folder that we make ourselves: whoever can write above it can at most take it away.
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode):
        reason = "is not a folder"
    elif hasattr(os, "geteuid") and info.st_uid != os.geteuid():
        reason = "belongs to another user"
    elif info.st_mode & _OTHERS_WRITE:
        reason = "can be written by other users"
    else:
        return True
    _LOG.warning("the cache is not persisted: %s %s", folder, reason)
    return False


def _release() -> str:
    try:
        return f"lakelet {version('lakelet')}"
    except PackageNotFoundError:
        return "lakelet"


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()
