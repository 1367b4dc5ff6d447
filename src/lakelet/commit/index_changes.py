"""What becomes of index files when data files go: their deletion vectors go with them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from lakelet.commit.manifests import ManifestFiles, get_named
from lakelet.format.index_manifest import decode_index_manifest, encode_index_manifest
from lakelet.format.manifest import avro_codec
from lakelet.model.manifest import IndexManifestEntry
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome

DELETION_VECTORS = "DELETION_VECTORS"


def read_index_entries(home: TableHome, snapshot: Snapshot) -> list[IndexManifestEntry]:
    """The index files of a snapshot."""
    if snapshot.index_manifest is None:
        return []
    path = home.paths.manifest(snapshot.index_manifest)
    return decode_index_manifest(get_named(home, path), path=home.where(path))


def carry_index_manifest(
    home: TableHome, latest: Snapshot | None, removed: pa.Table, files: ManifestFiles
) -> str | None:
    """The index manifest of the next snapshot: the same one, or a new one without the vectors of removed files."""
    if latest is None or latest.index_manifest is None or removed.num_rows == 0:
        return None if latest is None else latest.index_manifest
    gone = set(removed.column("_FILE_NAME").to_pylist())
    before = read_index_entries(home, latest)
    after = [entry for entry in (_without(entry, gone) for entry in before) if entry is not None]
    if after == before:
        return latest.index_manifest
    return files.write_index_manifest(encode_index_manifest(after, codec=avro_codec("zstd"))) if after else None


def _without(entry: IndexManifestEntry, gone: set[str]) -> IndexManifestEntry | None:
    vectors = entry.file.deletion_vectors
    if entry.file.index_type != DELETION_VECTORS or vectors is None:
        return entry
    left = tuple(vector for vector in vectors if vector.data_file not in gone)
    if len(left) == len(vectors):
        return entry
    return replace(entry, file=replace(entry.file, deletion_vectors=left, row_count=len(left))) if left else None
