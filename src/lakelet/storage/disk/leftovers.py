"""Find and remove the temporary files and folders that interrupted writes leave on a disk.

    .tmp-<uuid>              an object that was being written
    .deleted-<uuid>          a folder that was being deleted
    .<name>.<uuid>.tmp       an object that another of Paimon's writers was writing

Only these exact names are leftovers. Users choose the prefixes of data files and folders, so that a name with such a prefix
alone may be live.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import suppress

from lakelet.storage.store import ObjectInfo

TEMPORARY = ".tmp-"
DELETED = ".deleted-"
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_LEFTOVER = re.compile(rf"\.(?:(?:tmp|deleted)-{_UUID}|.+\.{_UUID}\.tmp)")


def is_leftover(name: str) -> bool:
    """Whether only an interrupted write leaves an object or folder of this name."""
    return _LEFTOVER.fullmatch(name) is not None


def find_leftovers(full: str, folder: str, *, older_than_ms: int, keep: Collection[str]) -> Iterator[ObjectInfo]:
    """The leftovers at any depth below `full` that were last modified before `older_than_ms`, as paths below `folder`.

    Links are neither followed nor leftovers: no write makes one.
    """
    for parent, folders, files in os.walk(full):
        found = [name for name in (*files, *folders) if is_leftover(name) and name not in keep]
        folders[:] = [name for name in folders if name not in found]
        below = os.path.relpath(parent, full).replace(os.sep, "/")
        for name in found:
            leftover = os.path.join(parent, name)
            with suppress(FileNotFoundError):
                status = os.lstat(leftover)
                changed_ms = status.st_ctime_ns // 1_000_000
                if os.path.islink(leftover) or changed_ms >= older_than_ms:
                    continue
                size = _bytes_below(leftover) if os.path.isdir(leftover) else status.st_size
                path = "/".join(part for part in (folder, "" if below == "." else below, name) if part)
                yield ObjectInfo(path, size, changed_ms)


def remove_leftover(full: str) -> None:
    """Remove a leftover; one that was removed concurrently is fine."""
    with suppress(FileNotFoundError):
        shutil.rmtree(full) if os.path.isdir(full) else os.unlink(full)


def _bytes_below(folder: str) -> int:
    size = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            with suppress(FileNotFoundError):
                size += os.lstat(os.path.join(parent, name)).st_size
    return size
