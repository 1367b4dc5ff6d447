"""Changes of a commit to index files: deletion vectors are removed with their data files, new hash indexes replace the old.

new vectors of a compacted bucket       replace all that it had
vectors with marks of an append table   replace the index files that they were read from, and no others
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelet.commit.metadata.manifests import ManifestFiles, read_index_manifest
from lakelet.format.index.hash_index import HASH_INDEX
from lakelet.format.manifest.index_manifest import encode_index_manifest
from lakelet.format.manifest.manifest_file import avro_codec
from lakelet.model.commit_message import CommitMessage
from lakelet.model.manifest import EntryKind, IndexManifestEntry
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome

DELETION_VECTORS = "DELETION_VECTORS"


def read_index_entries(home: TableHome, snapshot: Snapshot) -> list[IndexManifestEntry]:
    """The index files of a snapshot."""
    if snapshot.index_manifest is None:
        return []
    return read_index_manifest(home, snapshot.index_manifest)


def carry_index_manifest(
    home: TableHome,
    latest: Snapshot | None,
    removed: pa.Table,
    files: ManifestFiles,
    *,
    messages: Sequence[CommitMessage] = (),
    replaced: Callable[[pa.Array], npt.NDArray[np.bool_]] | None = None,
) -> str | None:
    """The index manifest of the next snapshot: the same one, or a new one.

    Vectors of removed files are removed, as are hash indexes of partitions that the commit has `replaced`; a bucket's new
    hash index or vectors replace those it had.
    """
    added = [
        IndexManifestEntry(EntryKind.ADD, message.partition, message.bucket, message.new_hash_index)
        for message in messages
        if message.new_hash_index is not None
    ]
    vectors = [
        IndexManifestEntry(EntryKind.ADD, message.partition, message.bucket, message.new_vectors)
        for message in messages
        if message.new_vectors is not None and not message.marked_files
    ]
    marking = [message for message in messages if message.marked_files]
    name = None if latest is None else latest.index_manifest
    if not added and not vectors and not marking and (name is None or (removed.num_rows == 0 and replaced is None)):
        return name
    before = [] if latest is None else read_index_entries(home, latest)
    # A file that only moves to another level keeps its vector.
    moved = {file.name for message in messages if message.deleted_files for file in message.new_files}
    gone = set(removed.column("_FILE_NAME").to_pylist()) - moved
    revised = {(entry.partition, entry.bucket) for entry in vectors}
    stale = {(entry.partition, entry.bucket) for entry in added}
    # Their writers did not know of the overwrite and found all keys in the previous index, which therefore stays.
    relied_on = {(message.partition, message.bucket) for message in messages if message.hash_indexes is not None}
    kept = [
        entry
        for entry in (_without(entry, gone) for entry in before)
        if entry is not None
        and not (entry.file.index_type == DELETION_VECTORS and (entry.partition, entry.bucket) in revised)
    ]
    kept = [*_without_hashes(kept, stale, relied_on, replaced), *added, *vectors]
    after = _marked(kept, marking) if marking else kept
    if after == before:
        return name
    return files.write_index_manifest(encode_index_manifest(after, codec=avro_codec("zstd"))) if after else None


def _marked(entries: Sequence[IndexManifestEntry], messages: Sequence[CommitMessage]) -> list[IndexManifestEntry]:
    """The entries with those of new vectors for the ones that these replace."""
    old = {name for message in messages for name in message.old_vectors or ()}
    # What a commit beside ours has removed from an old index file was taken along when that was read.
    standing = {
        place.data_file for entry in entries if entry.file.name in old for place in entry.file.deletion_vectors or ()
    }
    found = [entry for entry in entries if entry.file.name not in old]
    for message in messages:
        assert message.new_vectors is not None
        new = IndexManifestEntry(EntryKind.ADD, message.partition, message.bucket, message.new_vectors)
        ranges = message.new_vectors.deletion_vectors or ()
        gone = {one.data_file for one in ranges} - standing - set(message.marked_files)
        left = _without(new, gone)
        if left is not None:
            found.append(left)
    return found


def _without_hashes(
    entries: Sequence[IndexManifestEntry],
    stale: Collection[tuple[bytes, int]],
    relied_on: Collection[tuple[bytes, int]],
    replaced: Callable[[pa.Array], npt.NDArray[np.bool_]] | None,
) -> list[IndexManifestEntry]:
    """The entries without the hash indexes of stale buckets and replaced partitions, unless these are relied on."""
    if replaced is None:
        mask = np.zeros(len(entries), bool)
    else:
        mask = replaced(pa.array([entry.partition for entry in entries], pa.binary()))
    kept = []
    for entry, replaces in zip(entries, mask.tolist(), strict=True):
        place = (entry.partition, entry.bucket)
        goes = place in stale or (replaces and place not in relied_on)
        if entry.file.index_type != HASH_INDEX or not goes:
            kept.append(entry)
    return kept


def _without(entry: IndexManifestEntry, gone: set[str]) -> IndexManifestEntry | None:
    vectors = entry.file.deletion_vectors
    if entry.file.index_type != DELETION_VECTORS or vectors is None:
        return entry
    left = tuple(vector for vector in vectors if vector.data_file not in gone)
    if len(left) == len(vectors):
        return entry
    return replace(entry, file=replace(entry.file, deletion_vectors=left, row_count=len(left))) if left else None
