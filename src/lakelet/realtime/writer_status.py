"""What a writer tells about itself: its memtables, flushes, errors and syncs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemtableStatus:
    """One memtable of a writer."""

    sequence_number: int
    state: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class WriterStatus:
    """What a writer holds and has done: memtables from the oldest on, flushes, and the error of the last one if it failed."""

    wal_folder: str
    commit_user: str
    memtables: tuple[MemtableStatus, ...]
    flushed_memtables: int
    failed_flushes: int
    last_error: str | None
    last_snapshot_id: int | None
    syncs: int
    closed: bool
