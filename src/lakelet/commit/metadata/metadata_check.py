"""Check that the metadata of a table's versions is intact: each named file exists, decodes, and agrees with what names it.

    snapshots and tags ─ schemas ─ manifest lists ─ manifests ─ the entries of all live files
                       └ index manifests ─ index files
                       └ statistics

Every file is read once, however many versions name it. Nothing is raised for a damaged one: it is reported, and the check
goes on without it. `heads` are versions whose files are also checked together: the newest of each branch, tags, and the one
asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.index_changes import DELETION_VECTORS
from lakelet.commit.metadata.manifests import drop_removed
from lakelet.commit.metadata.schemas import read_schema
from lakelet.commit.metadata.statistics import read_statistics
from lakelet.commit.metadata.stored import manifest_bytes
from lakelet.errors import LakeletError, NotFoundError
from lakelet.format.index import deletion_vectors
from lakelet.format.index.hash_index import HASH_INDEX, decode_hash_index
from lakelet.format.manifest.index_manifest import decode_index_manifest
from lakelet.format.manifest.manifest_columns import ENTRY_SCHEMA
from lakelet.format.manifest.manifest_file import decode_manifest, decode_manifest_list
from lakelet.format.partition_folders import PartitionFolders
from lakelet.model.damage import Damage
from lakelet.model.data_file import DeletionVectorRange
from lakelet.model.manifest import EntryKind, IndexManifestEntry, ManifestFile
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome


@dataclass(frozen=True, slots=True)
class CheckedVersion:
    """A snapshot or tag, by the path of its file; the newest of a line is a head."""

    home: TableHome
    path: str
    snapshot: Snapshot
    is_head: bool


@dataclass(slots=True)
class MetadataCheck:
    """Checks versions one after the other, and collects the entries of the data files that they hold."""

    home: TableHome
    folders: PartitionFolders
    quick: bool = False
    damages: list[Damage] = field(default_factory=list)
    read: int = 0
    _lists: dict[str, tuple[ManifestFile, ...] | None] = field(default_factory=dict)
    _manifests: dict[str, pa.Table | None] = field(default_factory=dict)
    _indexes: set[tuple[str, bool]] = field(default_factory=set)
    _index_manifests: dict[str, list[IndexManifestEntry] | None] = field(default_factory=dict)
    _others: set[str] = field(default_factory=set)
    _added: dict[str, int] = field(default_factory=dict)

    def check(self, version: CheckedVersion) -> pa.Table:
        """The entries of files that a version holds, or, where it is no head, of those that it adds."""
        snapshot = version.snapshot
        self._check_schema(version)
        delta = self._entries(snapshot, snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)
        base = self._entries(snapshot, snapshot.base_manifest_list, snapshot.base_manifest_list_size)
        if delta is not None:
            self._note_added(snapshot, delta)
        self._check_counts(version, base, delta)
        self._check_statistics(version)
        parts = [part for part in (base, delta) if part is not None]
        if not version.is_head:
            self._check_indexes(version, ENTRY_SCHEMA.empty_table())
            return _additions(delta) if delta is not None else ENTRY_SCHEMA.empty_table()
        live = drop_removed(pa.concat_tables([ENTRY_SCHEMA.empty_table(), *parts]).combine_chunks())
        self._check_indexes(version, live)
        return live

    def added_by(self, name: str) -> int | None:
        """The oldest of the checked snapshots that added a file, None where it was added before all of them."""
        return self._added.get(name)

    def note(self, kind: str, path: str, problem: str, snapshot: int | None = None, **held: object) -> None:
        """Report a damaged file."""
        self.damages.append(Damage(kind, path, problem, snapshot=snapshot, **held))  # type: ignore[arg-type]

    def _check_schema(self, version: CheckedVersion) -> None:
        path = version.home.paths.schema(version.snapshot.schema_id)
        if path in self._others:
            return
        self._others.add(path)
        self.read += 1
        try:
            read_schema(version.home, version.snapshot.schema_id)
        except LakeletError as error:
            self.note("schema", path, _told(error), version.snapshot.id)

    def _check_statistics(self, version: CheckedVersion) -> None:
        name = version.snapshot.statistics
        if name is None or name in self._others:
            return
        self._others.add(name)
        self.read += 1
        try:
            read_statistics(version.home, version.snapshot)
        except LakeletError as error:
            path = version.home.paths.statistics(name)
            problem = "is missing" if version.home.store.head(path) is None else f"cannot be read: {error}"
            self.note("statistics", path, problem, version.snapshot.id)

    def _entries(self, snapshot: Snapshot, name: str, size: int | None) -> pa.Table | None:
        """The entries of all manifests of a list; None where one of them is damaged."""
        if name not in self._lists:
            self._lists[name] = self._read_list(snapshot, name, size)
        manifests = self._lists[name]
        if manifests is None:
            return None
        for manifest in manifests:
            if manifest.name not in self._manifests:
                self._manifests[manifest.name] = self._read_manifest(snapshot, manifest)
        found = [self._manifests[manifest.name] for manifest in manifests]
        whole = [one for one in found if one is not None]
        entries = pa.concat_tables([ENTRY_SCHEMA.empty_table(), *whole])
        return entries if len(whole) == len(found) else None

    def _read_list(self, snapshot: Snapshot, name: str, size: int | None) -> tuple[ManifestFile, ...] | None:
        path = self.home.paths.manifest(name)
        self.read += 1
        try:
            data = manifest_bytes(self.home, name)
            if size is not None and len(data) != size:
                self.note("manifest list", path, f"has {len(data)} bytes; its snapshot says {size}", snapshot.id)
                return None
            return tuple(decode_manifest_list(data, path=self.home.where(path)))
        except LakeletError as error:
            rows = snapshot.delta_record_count if name == snapshot.delta_manifest_list else snapshot.total_record_count
            self.note("manifest list", path, _told(error), snapshot.id, rows=rows)
            return None

    def _read_manifest(self, snapshot: Snapshot, manifest: ManifestFile) -> pa.Table | None:
        path = self.home.paths.manifest(manifest.name)
        self.read += 1
        problem: str | None = None
        try:
            data = manifest_bytes(self.home, manifest.name)
            entries = decode_manifest(data, path=self.home.where(path))
            added = int(pc.sum(pc.equal(entries.column("_KIND"), int(EntryKind.ADD))).as_py() or 0)
            counts = (added, entries.num_rows - added)
            if len(data) != manifest.size:
                problem = f"has {len(data)} bytes; its list says {manifest.size}"
            elif counts != (manifest.added_files, manifest.deleted_files):
                problem = (
                    f"adds {counts[0]} and removes {counts[1]} files; its list says {manifest.added_files} and "
                    f"{manifest.deleted_files}"
                )
            if problem is None:
                return entries.select(ENTRY_SCHEMA.names)
        except LakeletError as error:
            problem = _told(error)
        bucket = manifest.min_bucket if manifest.min_bucket == manifest.max_bucket else None
        named = f"{problem}; it names {manifest.added_files} added and {manifest.deleted_files} removed files"
        self.note("manifest", path, named, snapshot.id, partition=self._one_partition(manifest), bucket=bucket)
        return None

    def _one_partition(self, manifest: ManifestFile) -> str | None:
        stats = manifest.partition_stats
        if stats.min_values != stats.max_values:
            return None
        try:
            return self.folders.partition_path(stats.min_values)
        except LakeletError:
            return None

    def _note_added(self, snapshot: Snapshot, delta: pa.Table) -> None:
        for name in _additions(delta).column("_FILE_NAME").to_pylist():
            self._added[name] = min(snapshot.id, self._added.get(name, snapshot.id))

    def _check_counts(self, version: CheckedVersion, base: pa.Table | None, delta: pa.Table | None) -> None:
        """Check that the row counts of a snapshot, changed and total, are those of its entries."""
        snapshot = version.snapshot
        if delta is not None and snapshot.delta_record_count not in (None, _rows(delta)):
            problem = f"says that it changes {snapshot.delta_record_count} rows; its manifests say {_rows(delta)}"
            self.note("snapshot", version.path, problem, snapshot.id)
        if version.is_head and base is not None and delta is not None:
            whole = _rows(base) + _rows(delta)
            if snapshot.total_record_count not in (None, whole):
                problem = f"says that it holds {snapshot.total_record_count} rows; its manifests say {whole}"
                self.note("snapshot", version.path, problem, snapshot.id)

    def _check_indexes(self, version: CheckedVersion, live: pa.Table) -> None:
        name = version.snapshot.index_manifest
        if name is None:
            return
        path = self.home.paths.manifest(name)
        if name not in self._index_manifests:
            self.read += 1
            try:
                data = manifest_bytes(self.home, name)
                self._index_manifests[name] = decode_index_manifest(data, path=self.home.where(path))
            except LakeletError as error:
                self._index_manifests[name] = None
                self.note("index manifest", path, _told(error), version.snapshot.id)
        entries = self._index_manifests[name] or []
        counts = dict(zip(live.column("_FILE_NAME").to_pylist(), live.column("_ROW_COUNT").to_pylist(), strict=True))
        for entry in entries:
            # Vectors are compared with the rows of their files once these are known.
            seen = (entry.file.name, bool(counts))
            if seen in self._indexes or entry.file.external_path is not None:
                continue
            self._indexes.add(seen)
            self.read += 1
            problem = self._index_problem(entry, counts)
            if problem is not None:
                self.note(
                    "index file",
                    self.home.paths.index(entry.file.name),
                    problem,
                    version.snapshot.id,
                    partition=self.folders.partition_path(entry.partition),
                    bucket=entry.bucket,
                    rows=_spoken_of(entry),
                )

    def _index_problem(self, entry: IndexManifestEntry, counts: dict[str, int]) -> str | None:
        path = self.home.paths.index(entry.file.name)
        info = self.home.store.head(path)
        if info is None:
            return "is missing"
        if info.size != entry.file.size:
            return f"has {info.size} bytes; its index manifest says {entry.file.size}"
        if self.quick:
            return None
        try:
            data, where = self.home.store.get(path), self.home.where(path)
            if entry.file.index_type == HASH_INDEX:
                decode_hash_index(data, path=where, expected=entry.file.row_count)
            if entry.file.index_type == DELETION_VECTORS:
                return _vector_problem(data, where, entry.file.deletion_vectors or (), counts)
        except LakeletError as error:
            return _told(error)
        return None


def _vector_problem(
    data: bytes, where: str, vectors: Sequence[DeletionVectorRange], counts: dict[str, int]
) -> str | None:
    for vector in vectors:
        end = vector.offset + vector.length + deletion_vectors.READ_SLACK
        positions = deletion_vectors.decode(data[vector.offset : end], path=where, cardinality=vector.cardinality)
        rows = counts.get(vector.data_file)
        if rows is not None and len(positions) and int(positions[-1]) >= rows:
            return f"deletes row {int(positions[-1])} of {vector.data_file}, which has {rows}"
    return None


def _spoken_of(entry: IndexManifestEntry) -> int:
    if entry.file.index_type == DELETION_VECTORS:
        return sum(vector.cardinality or 0 for vector in entry.file.deletion_vectors or ())
    return entry.file.row_count


def _additions(entries: pa.Table) -> pa.Table:
    return entries.filter(pc.equal(entries.column("_KIND"), int(EntryKind.ADD)))


def _rows(entries: pa.Table) -> int:
    """The rows that entries add, less those that they remove."""
    added = _additions(entries)
    return 2 * int(pc.sum(added.column("_ROW_COUNT")).as_py() or 0) - int(
        pc.sum(entries.column("_ROW_COUNT")).as_py() or 0
    )


def _told(error: LakeletError) -> str:
    return "is missing" if isinstance(error, NotFoundError) else f"cannot be read: {error}"
