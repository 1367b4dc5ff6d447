"""Copies files between two stores, a few at a time and in bounded memory, and hashes them on the way.

get_range ─ SHA-256 ─ a stream of the other store, aborted where size or hash are not those expected
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lakelet.errors import CorruptionError, NotFoundError
from lakelet.service.backup.checksums import Checksum, Checksums
from lakelet.storage.store import ObjectStore

_CHUNK_BYTES = 8 << 20
_COPIERS = 4
# After so many files they are made durable and their checksums kept, so that a pass that dies goes on from there.
_BATCH_FILES = 64


@dataclass(frozen=True, slots=True)
class CopyJob:
    """A file to copy: its name below the table, its places, and what is known of it."""

    name: str
    source: str
    target: str
    size: int | None = None
    expected: Checksum | None = None


def copy_files(source: ObjectStore, target: ObjectStore, jobs: Sequence[CopyJob], checksums: Checksums | None) -> None:
    """Copy files and make them durable; their checksums are kept, where some are to be."""
    for start in range(0, len(jobs), _BATCH_FILES):
        batch = jobs[start : start + _BATCH_FILES]
        with ThreadPoolExecutor(_COPIERS, "lakelet-backup-copy") as pool:
            found = list(pool.map(lambda job: _copy(source, target, job), batch))
        target.sync([job.target for job in batch])
        if checksums is not None:
            checksums.add({job.name: one for job, one in zip(batch, found, strict=True)})


def checksum_at(store: ObjectStore, path: str) -> Checksum | None:
    """The checksum of a stored file, None where it is missing."""
    info = store.head(path)
    if info is None:
        return None
    digest = hashlib.sha256()
    try:
        for chunk in _chunks(store, path, info.size):
            digest.update(chunk)
    except NotFoundError:
        return None
    return Checksum(info.size, digest.hexdigest())


def _copy(source: ObjectStore, target: ObjectStore, job: CopyJob) -> Checksum:
    info = source.head(job.source)
    if info is None:
        raise NotFoundError(f"{source.location}/{job.source} is missing: it cannot be copied")
    wanted = job.size if job.expected is None else job.expected.size
    if wanted is not None and info.size != wanted:
        raise CorruptionError(
            f"{source.location}/{job.source} is damaged: expected {wanted} bytes, found {info.size}; it was not copied"
        )
    digest = hashlib.sha256()
    if info.size <= _CHUNK_BYTES:
        data = source.get(job.source)
        digest.update(data)
        found = Checksum(len(data), digest.hexdigest())
        _check(source, job, found, wanted)
        target.put(job.target, data, deferred=True)
        return found
    with target.open_output(job.target, deferred=True) as output:
        for chunk in _chunks(source, job.source, info.size):
            digest.update(chunk)
            output.write(chunk)
        found = Checksum(info.size, digest.hexdigest())
        # An error leaves the block, which aborts the file: what was there before stays.
        _check(source, job, found, wanted)
    return found


def _check(source: ObjectStore, job: CopyJob, found: Checksum, size: int | None) -> None:
    if (size is not None and found.size != size) or (job.expected is not None and found != job.expected):
        expected = f"{size} bytes" if job.expected is None else f"SHA-256 {job.expected.sha256}"
        raise CorruptionError(
            f"{source.location}/{job.source} is damaged: expected {expected}, found {found.size} bytes with SHA-256 "
            f"{found.sha256}; it was not copied"
        )


def _chunks(store: ObjectStore, path: str, size: int) -> Iterator[bytes]:
    for start in range(0, size, _CHUNK_BYTES):
        yield store.get_range(path, start, min(_CHUNK_BYTES, size - start))
