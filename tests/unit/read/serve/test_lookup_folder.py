"""The folder of lookup files: limits of several tables, and another process that starts at the same moment."""

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
from tests.crash.warehouse import SteppingClock


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


def test_a_limit_is_one_of_a_table(tmp_path: Path) -> None:
    """Files of a table with a small limit, or with a large one, never make those of another go."""
    folder, clock, ids = LookupFolder(str(tmp_path)), SystemClock(), RandomIds()
    small, large = DiskLimits(9, 60.0, "small"), DiskLimits(1000, 60.0, "large")
    kept = [folder.file(("large", number), 0, written, large, clock, ids) for number in range(10)]
    first, second, third = (folder.file(("small", number), 0, written, small, clock, ids) for number in range(3))
    assert [file.is_dropped for file in (first, second, third)] == [True, False, False]
    assert not any(file.is_dropped for file in kept)
    assert all(Path(file.path).exists() for file in (*kept, second, third))
    assert not Path(first.path).exists()
    # A limit that was lowered holds from the next use on.
    assert folder.file(("small", 2), 0, written, DiskLimits(4, 60.0, "small"), clock, ids) is third
    assert second.is_dropped
    assert len(folder.names) == 11


def test_a_file_goes_after_the_time_of_its_own_table(tmp_path: Path) -> None:
    """Whichever table is read; `used`, which readers set without asking the folder, counts."""
    folder, clock, ids = LookupFolder(str(tmp_path)), SteppingClock(), RandomIds()
    brief, lasting = DiskLimits(100, 60.0, "brief"), DiskLimits(100, 3600.0, "lasting")
    stays, read, goes = (
        folder.file(name, 0, written, limits, clock, ids) for name, limits in ((1, lasting), (2, brief), (3, brief))
    )
    clock.sleep(50)
    read.used = clock.monotonic()
    clock.sleep(11)
    assert clock.monotonic() >= folder.next_sweep
    folder.file(1, 0, written, lasting, clock, ids)
    assert [file.is_dropped for file in (stays, read, goes)] == [False, False, True]
    clock.sleep(60)
    folder.sweep(clock.monotonic())
    assert [file.is_dropped for file in (stays, read)] == [False, True]
    assert folder.file(2, 0, written, brief, clock, ids) is not read


def test_files_of_a_folder_that_starts_anew_are_dropped(tmp_path: Path) -> None:
    """A forked process does not read on in files of its parent."""
    folder = LookupFolder(str(tmp_path))
    file = file_of(folder)
    folder.reset()
    assert file.is_dropped
