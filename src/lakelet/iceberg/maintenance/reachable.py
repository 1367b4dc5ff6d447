"""All files that a table's metadata references, by kind."""

from __future__ import annotations

from collections.abc import Iterable

from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestFile
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from lakelet.iceberg.metadata.manifests import PATH
from lakelet.iceberg.metadata.source import IcebergMetadataSource


def manifests_of(source: IcebergMetadataSource, io: FileIO, snapshots: Iterable[Snapshot]) -> dict[str, ManifestFile]:
    """The manifests of snapshots, by path."""
    found: dict[str, ManifestFile] = {}
    for snapshot in snapshots:
        for manifest in source.manifest_list(io, snapshot):
            found[manifest.manifest_path] = manifest
    return found


def files_of(source: IcebergMetadataSource, io: FileIO, manifests: Iterable[ManifestFile]) -> set[str]:
    """The data and delete files that manifests hold as live."""
    found: set[str] = set()
    for manifest in manifests:
        found.update(source.manifest(io, manifest).values(PATH))
    return found


def metadata_files(metadata: TableMetadata, location: str) -> set[str]:
    """The metadata file, those before it, and statistics."""
    found = {location, *(entry.metadata_file for entry in metadata.metadata_log)}
    found.update(one.statistics_path for one in metadata.statistics)
    found.update(one.statistics_path for one in metadata.partition_statistics)
    return found
