"""The files that a snapshot names: data, index and statistics files, and the manifests that name those."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.index_changes import read_index_entries
from lakelet.commit.metadata.manifests import live_entries, snapshot_manifests
from lakelet.errors import InvalidError
from lakelet.format.manifest.manifest_columns import ENTRY_SCHEMA, columns_to_entries
from lakelet.format.partition_folders import PartitionFolders
from lakelet.model.manifest import IndexManifestEntry, ManifestEntry, ManifestFile
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.service.backup.layout import NamedFile
from lakelet.storage.home import TableHome

Bucket = tuple[bytes, int]
"""A partition, as the bytes of its row, and a bucket in it."""


@dataclass(frozen=True, slots=True)
class SnapshotFiles:
    """The live files of a snapshot: entries of data files, in columns, and of index files."""

    entries: pa.Table
    indexes: tuple[IndexManifestEntry, ...]

    def within(self, buckets: Collection[Bucket] | None) -> SnapshotFiles:
        """Those of some buckets; of all for None."""
        if buckets is None:
            return self
        return SnapshotFiles(
            self.entries.filter(_mask(self.entries, buckets)),
            tuple(one for one in self.indexes if is_within(one, buckets)),
        )


NO_FILES = SnapshotFiles(ENTRY_SCHEMA.empty_table(), ())


def files_of(home: TableHome, snapshot: Snapshot | None) -> SnapshotFiles:
    """The live files of a snapshot; none where there is none."""
    if snapshot is None:
        return NO_FILES
    entries = live_entries(home, snapshot_manifests(home, snapshot))
    return SnapshotFiles(entries, live_indexes(home, snapshot))


def live_indexes(home: TableHome, snapshot: Snapshot | None) -> tuple[IndexManifestEntry, ...]:
    """The index files of a snapshot; none where there is none."""
    return () if snapshot is None else tuple(read_index_entries(home, snapshot))


def is_within(entry: IndexManifestEntry, buckets: Collection[Bucket] | None) -> bool:
    """Whether an index file is of some buckets; of all for None."""
    return buckets is None or (entry.partition, entry.bucket) in buckets


def missing_entries(entries: pa.Table, others: pa.Table) -> pa.Table:
    """The entries whose files, on their levels, are not among others."""
    return entries.filter(pc.invert(pc.is_in(file_identities(entries), value_set=file_identities(others))))


def data_files(home: TableHome, schema: TableSchema, entries: pa.Table) -> list[NamedFile]:
    """The data files of entries with the files that belong to them, each once. InvalidError for files outside the table."""
    folders, found = PartitionFolders(home.paths, schema), {}
    for entry in columns_to_entries(entries):
        folder = folders.bucket_folder(entry.partition, entry.bucket).removeprefix(f"{home.paths.root}/")
        _check_inside(home, entry)
        found[f"{folder}/{entry.file.name}"] = NamedFile(f"{folder}/{entry.file.name}", entry.file.size)
        for name in entry.file.extra_files:
            found[f"{folder}/{name}"] = NamedFile(f"{folder}/{name}")
    return list(found.values())


def index_files(home: TableHome, indexes: Collection[IndexManifestEntry]) -> list[NamedFile]:
    """The index files of entries, each once."""
    for one in indexes:
        if one.file.external_path is not None:
            raise InvalidError(f"{home.where(home.paths.root)}: {one.file.external_path} is outside of the table")
    return list({one.file.name: NamedFile(f"index/{one.file.name}", one.file.size) for one in indexes}.values())


def statistics_files(snapshot: Snapshot) -> list[NamedFile]:
    """The file of statistics of a snapshot, if it has one."""
    return [] if snapshot.statistics is None else [NamedFile(f"statistics/{snapshot.statistics}")]


def list_files(snapshot: Snapshot) -> list[NamedFile]:
    """The manifest lists and the index manifest of a snapshot."""
    found = [
        NamedFile(f"manifest/{snapshot.base_manifest_list}", snapshot.base_manifest_list_size),
        NamedFile(f"manifest/{snapshot.delta_manifest_list}", snapshot.delta_manifest_list_size),
    ]
    if snapshot.index_manifest is not None:
        found.append(NamedFile(f"manifest/{snapshot.index_manifest}"))
    return found


def manifest_files(manifests: Collection[ManifestFile]) -> list[NamedFile]:
    """Manifests as files of the table."""
    return [NamedFile(f"manifest/{one.name}", one.size) for one in manifests]


def _check_inside(home: TableHome, entry: ManifestEntry) -> None:
    if entry.file.external_path is not None:
        raise InvalidError(
            f"{home.where(home.paths.root)}: {entry.file.external_path} is outside of the table, which so cannot be backed up"
        )


def file_identities(entries: pa.Table) -> pa.Array:
    """A text for each entry: names of files are unique in a table, and a file may change its level."""
    names, levels = (entries.column(name).combine_chunks() for name in ("_FILE_NAME", "_LEVEL"))
    return pc.binary_join_element_wise(names, pc.cast(levels, pa.string()), "/")


def _mask(entries: pa.Table, buckets: Collection[Bucket]) -> pa.Array:
    places = zip(entries.column("_PARTITION").to_pylist(), entries.column("_BUCKET").to_pylist(), strict=True)
    return pa.array([place in buckets for place in places], pa.bool_())
