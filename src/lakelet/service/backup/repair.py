"""Repairs a table whose files are missing or damaged, from its backup: the table stays what it is, no commit is made.

    newest snapshot ─ manifest lists ─ manifests ─ data, index and statistics files

Each is compared with what names it and with its checksum in the backup, by size first, then by SHA-256; where it is not the same
it is replaced by the backup's copy, whose own checksum is compared before anything is overwritten. Only files that the newest
snapshot names are looked at: a row that was deleted or has expired is in none of them that could bring it back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lakelet.commit.metadata.manifests import snapshot_manifests
from lakelet.commit.metadata.schemas import read_schema
from lakelet.commit.metadata.snapshots import read_snapshot
from lakelet.commit.metadata.stored import schema_bytes
from lakelet.commit.metadata.version_ids import latest_id, schema_ids
from lakelet.errors import CorruptionError, LakeletError, NotFoundError
from lakelet.events import TableReplaced, publish
from lakelet.model.snapshot import Snapshot
from lakelet.service.backup.checksums import Checksum, Checksums
from lakelet.service.backup.file_copy import CopyJob, checksum_at, copy_files
from lakelet.service.backup.layout import NamedFile, kept_path, own_path
from lakelet.service.backup.snapshot_files import (
    Bucket,
    data_files,
    files_of,
    index_files,
    list_files,
    manifest_files,
    statistics_files,
)
from lakelet.service.backup.table_files import copy_identity, copy_schemas
from lakelet.storage.home import TableHome

_READERS = 4


@dataclass(frozen=True, slots=True)
class Repaired:
    """The files that were restored, and those that are missing or damaged and are not in the backup, with the reason."""

    restored: tuple[str, ...]
    lost: tuple[tuple[str, str], ...] = ()
    files: int = 0


def repair_table(primary: TableHome, backup: TableHome, buckets: Callable[[], Collection[Bucket] | None]) -> Repaired:
    """Restore what is missing or damaged of a table's newest snapshot; of some buckets, once metadata can be read."""
    run = _Repair(primary.uncached(), backup.uncached())
    snapshot = run.snapshot()
    run.check(list_files(snapshot))
    if not run.lost:
        run.check(manifest_files(snapshot_manifests(run.primary, snapshot)))
    if not run.lost:
        files = files_of(run.primary, snapshot).within(buckets())
        schema = read_schema(run.primary, snapshot.schema_id)
        run.check(
            [
                *data_files(run.primary, schema, files.entries),
                *index_files(run.primary, files.indexes),
                *statistics_files(snapshot),
            ]
        )
    if run.restored:
        # What is known of its metadata may be of the damaged files.
        publish(TableReplaced(primary.table_name, primary.paths.branch))
    return Repaired(tuple(run.restored), tuple(run.lost), run.files)


class _Repair:
    """One repair, and what it has found so far."""

    def __init__(self, primary: TableHome, backup: TableHome) -> None:
        self.primary, self.backup = primary, backup
        self.restored: list[str] = []
        self.lost: list[tuple[str, str]] = []
        self.files = 0
        self._checksums = Checksums(backup)

    def snapshot(self) -> Snapshot:
        """The newest snapshot, of a table whose identity and schemas are there; one that cannot be read is restored."""
        copy_identity(self.backup, self.primary)
        self._schemas()
        number = latest_id(self.primary)
        assert number is not None
        try:
            return read_snapshot(self.primary, number)
        except CorruptionError:
            name = f"snapshot/snapshot-{number}"
            try:
                data = self.backup.store.get(kept_path(self.backup, name))
            except NotFoundError:
                raise CorruptionError(
                    f"{self.primary.where(self.primary.paths.snapshot(number))} cannot be read, and the backup has no copy of it"
                ) from None
            self.primary.store.put(self.primary.paths.snapshot(number), data)
            self.restored.append(name)
            return read_snapshot(self.primary, number)

    def check(self, files: Sequence[NamedFile]) -> None:
        """Compare files with what is known of them, and restore those that are not the same."""
        self.files += len(files)
        with ThreadPoolExecutor(_READERS, "lakelet-repair") as pool:
            problems = list(pool.map(self._problem, files))
        for file, problem in zip(files, problems, strict=True):
            if problem is None:
                continue
            known = self._checksums.get(file.path)
            if known is None or (file.size is not None and known.size != file.size):
                self.lost.append((file.path, f"{problem}, and not in the backup"))
                continue
            kept, own = kept_path(self.backup, file.path), own_path(self.primary, file.path)
            try:
                copy_files(
                    self.backup.store, self.primary.store, [CopyJob(file.path, kept, own, file.size, known)], None
                )
            except (NotFoundError, CorruptionError) as error:
                self.lost.append((file.path, f"{problem}, and its copy cannot be used: {error}"))
                continue
            self.restored.append(file.path)

    def _problem(self, file: NamedFile) -> str | None:
        path, known = own_path(self.primary, file.path), self._checksums.get(file.path)
        info = self.primary.store.head(path)
        if info is None:
            return "missing"
        size = file.size if file.size is not None else None if known is None else known.size
        if size is not None and info.size != size:
            return f"damaged: {info.size} bytes instead of {size}"
        return None if known is None or self._same(path, known) else "damaged: its SHA-256 is another"

    def _same(self, path: str, known: Checksum) -> bool:
        return checksum_at(self.primary.store, path) == known

    def _schemas(self) -> None:
        """Schemas that are missing, or cannot be read."""
        before = set(schema_ids(self.primary))
        for number in sorted(before & set(schema_ids(self.backup))):
            try:
                read_schema(self.primary, number)
            except LakeletError:
                data = schema_bytes(self.backup, number)
                self.primary.store.put(self.primary.paths.schema(number), data)
                self.restored.append(f"schema/schema-{number}")
        missing = {f"schema/schema-{number}" for number in schema_ids(self.backup) if number not in before}
        there = {f"schema/schema-{number}" for number in before}
        copy_schemas(self.backup, self.primary, there)
        self.restored.extend(sorted(missing))
