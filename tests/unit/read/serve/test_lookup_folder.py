"""The folder of lookup files where another process starts at the same moment."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakelet.clock import SystemClock
from lakelet.ids import RandomIds
from lakelet.read.serve import lookup_folder
from lakelet.read.serve.lookup_folder import DiskLimits, LocalFile, LookupFolder


def written(path: str) -> int:
    return Path(path).write_bytes(b"rows")


def file_of(folder: LookupFolder) -> LocalFile:
    return folder.file("name", 0, written, DiskLimits(100, 60.0), SystemClock(), RandomIds())


def removed(path: str) -> None:
    shutil.rmtree(path)


def held(_: str) -> None:
    raise BlockingIOError


@pytest.mark.parametrize("other", [removed, held])
def test_a_new_folder_that_looks_abandoned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: Callable[[str], None]
) -> None:
    """Another process comes between the making of the lock file and its lock, and takes it for one that was left behind."""
    locks: list[int] = []

    def flock(descriptor: int, operation: int) -> None:
        locks.append(descriptor)
        if len(locks) == 1:
            other(os.path.dirname(os.readlink(f"/proc/self/fd/{descriptor}")))
        fcntl.flock(descriptor, operation)

    class Locks:
        LOCK_EX, LOCK_NB = fcntl.LOCK_EX, fcntl.LOCK_NB

        def __getattr__(self, name: str) -> Any:
            return flock if name == "flock" else getattr(fcntl, name)

    monkeypatch.setattr(lookup_folder, "fcntl", Locks())
    file = file_of(LookupFolder(str(tmp_path)))
    assert Path(file.path).read_bytes() == b"rows"
    assert len(locks) > 1
