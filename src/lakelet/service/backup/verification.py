"""Compares every file of a backup with its checksum: the mirror's newest snapshot, its schemas, the source's manifests."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lakelet.commit.metadata.schemas import read_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.metadata.version_ids import schema_ids
from lakelet.service.backup.checksums import Checksums
from lakelet.service.backup.file_copy import checksum_at
from lakelet.service.backup.layout import NamedFile, kept_folder, kept_path
from lakelet.service.backup.snapshot_files import data_files, files_of, index_files, statistics_files
from lakelet.storage.home import TableHome

_READERS = 4


@dataclass(frozen=True, slots=True)
class Verified:
    """How many files were compared, their bytes, and those that are missing or damaged, with the reason."""

    files: int
    bytes: int
    problems: tuple[tuple[str, str], ...]


def verify_backup(mirror: TableHome) -> Verified:
    """Read every file of a backup and compare it with its checksum."""
    mirror = mirror.uncached()
    checksums, snapshot = Checksums(mirror), latest_snapshot(mirror)
    named = [NamedFile(f"schema/schema-{number}") for number in schema_ids(mirror)]
    if snapshot is not None:
        files, schema = files_of(mirror, snapshot), read_schema(mirror, snapshot.schema_id)
        named += [*data_files(mirror, schema, files.entries), *index_files(mirror, files.indexes)]
        named += statistics_files(snapshot)
    for info in mirror.store.list_folder(f"{kept_folder(mirror)}/manifest").files:
        named.append(NamedFile(f"manifest/{info.path.rsplit('/', 1)[-1]}"))

    def problem(file: NamedFile) -> tuple[int, str | None]:
        known = checksums.get(file.path)
        if known is None:
            return 0, "has no checksum"
        found = checksum_at(mirror.store, kept_path(mirror, file.path))
        if found is None:
            return 0, "missing"
        if found.size != known.size:
            return found.size, f"damaged: {found.size} bytes instead of {known.size}"
        return found.size, None if found == known else "damaged: its SHA-256 is another"

    with ThreadPoolExecutor(_READERS, "lakelet-verify") as pool:
        outcomes = list(pool.map(problem, named))
    problems = [(file.path, text) for file, (_, text) in zip(named, outcomes, strict=True) if text is not None]
    return Verified(len(named), sum(size for size, _ in outcomes), tuple(problems))
