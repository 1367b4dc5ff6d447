"""Snapshots by id, by time and in their order, and the hints that point to them.

Snapshots are read through `commit/metadata/source`; which ids exist is determined in `commit/metadata/version_ids`.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from lakelet.clock import shown_time
from lakelet.commit.metadata.source import metadata
from lakelet.commit.metadata.version_ids import read_hint, snapshot_ids
from lakelet.errors import NotFoundError
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome

_READERS = 16
_LARGEST_GROUP = 64


def read_snapshot(home: TableHome, number: int) -> Snapshot:
    """The snapshot of that id; NotFoundError with the ids that exist."""
    found = metadata(home).snapshot(home, number)
    if found is not None:
        return found
    ids = snapshot_ids(home)
    there = f"snapshots {ids[0]} to {ids[-1]} exist" if ids else "the table has no snapshot"
    raise NotFoundError(f"snapshot {number} is not in {home.where(home.paths.snapshot_folder)}: {there}")


def try_snapshot(home: TableHome, number: int) -> Snapshot | None:
    """The snapshot of that id, or None."""
    return metadata(home).snapshot(home, number)


def latest_snapshot(home: TableHome) -> Snapshot | None:
    """The newest snapshot, None for a table without any."""
    return metadata(home).latest_snapshot(home)


def snapshots_backwards(home: TableHome, newest: int) -> Iterator[Snapshot]:
    """Snapshots from `newest` down to the oldest that exists, read in ever larger groups as the search goes on."""
    size = 1
    while newest > 0:
        numbers = range(newest, max(newest - size, 0), -1)
        with ThreadPoolExecutor(min(size, _READERS)) as pool:
            for found in pool.map(partial(try_snapshot, home), numbers) if size > 1 else [try_snapshot(home, newest)]:
                if found is None:
                    return
                yield found
        newest, size = newest - size, min(size * 2, _LARGEST_GROUP)


def snapshot_at(home: TableHome, time_ms: int) -> Snapshot:
    """The newest snapshot made at or before `time_ms`."""
    ids = snapshot_ids(home)
    low, high = 0, len(ids)
    while low < high:
        middle = (low + high) // 2
        if read_snapshot(home, ids[middle]).time_ms <= time_ms:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        oldest = (
            f"the oldest snapshot, {ids[0]}, was made at {shown_time(read_snapshot(home, ids[0]).time_ms)}"
            if ids
            else "it has none"
        )
        raise NotFoundError(
            f"no snapshot of {home.where(home.paths.branch_root)} was made at or before {shown_time(time_ms)}: {oldest}"
        )
    return read_snapshot(home, ids[low - 1])


def snapshot_is_gone(home: TableHome, snapshot: Snapshot) -> bool:
    """Whether the snapshot has been expired, or another has its id; one that a tag keeps has no snapshot file but still its
    manifest lists."""
    lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
    if all(home.store.head(home.paths.manifest(name)) is not None for name in lists):
        return False
    found = try_snapshot(home, snapshot.id)
    return found is None or found.delta_manifest_list != snapshot.delta_manifest_list


def write_latest_hint(home: TableHome, number: int) -> None:
    """Point `LATEST` to the snapshot, and `EARLIEST` to the first one ever."""
    write_hint(home, home.paths.latest_hint, number)
    if number == 1:
        write_hint(home, home.paths.earliest_hint, 1)


def write_hint(home: TableHome, path: str, number: int) -> None:
    """Write a hint without waiting for the disk: one that a crash leaves empty, torn or old is no worse than a wrong one, which
    every reader detects, and the next commit writes it anew."""
    home.store.put(path, str(number).encode(), deferred=True)


def continues_the_line(home: TableHome, number: int) -> bool:
    """Whether a snapshot just created follows the live ones, rather than filling a gap left by expiry or rollback.

    Its predecessor exists, as the caller knows; nothing newer may exist beyond a gap. A hint to a newer one costs a listing: it
    may be wrong.
    """
    hint = read_hint(home, home.paths.latest_hint)
    if number > 1 and hint is not None and hint <= number:
        return True
    return number in snapshot_ids(home)
