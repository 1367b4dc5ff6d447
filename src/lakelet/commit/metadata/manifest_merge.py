"""Manifest merging: the policy and its execution, so that commits and plans stay cheap over thousands of commits.

The policy is pure. Every commit leaves one small manifest behind; once `merge-min-count` small ones have gathered at
the end of the list, the newest are merged together with every older neighbour that is no larger than what has been
gathered so far. Sizes then fall from old to new like a binary counter, each entry is rewritten a logarithmic number of
times, and neighbours keep their order, on which removals rely. Manifests full of removals whose additions
are far back are cleared by a full merge, which rewrites just the manifests that hold a removed file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.metadata.manifests import ManifestFiles, cancel, read_entries, read_manifest
from lakelet.format.manifest.manifest_columns import IDENTITY_COLUMNS
from lakelet.model.manifest import EntryKind, ManifestFile
from lakelet.options import (
    MANIFEST_FULL_COMPACTION_THRESHOLD_SIZE,
    MANIFEST_MERGE_MIN_COUNT,
    MANIFEST_TARGET_FILE_SIZE,
    TableOptions,
)
from lakelet.storage.home import TableHome

# Removals are cleared when they are this share of the additions, and at least this many.
_REMOVED_SHARE = 3
_REMOVED_LEAST = 512
_PLACE = "_PLACE"


@dataclass(frozen=True, slots=True)
class MergePolicy:
    """The thresholds of manifest merging."""

    target_bytes: int
    min_count: int
    full_bytes: int

    @staticmethod
    def of(options: TableOptions) -> MergePolicy:
        """The policy a table's options ask for."""
        return MergePolicy(
            options.get(MANIFEST_TARGET_FILE_SIZE),
            options.get(MANIFEST_MERGE_MIN_COUNT),
            options.get(MANIFEST_FULL_COMPACTION_THRESHOLD_SIZE),
        )


def wants_full_merge(manifests: Sequence[ManifestFile], policy: MergePolicy) -> bool:
    """Whether removals have accumulated past the threshold."""
    removed = sum(manifest.deleted_files for manifest in manifests)
    added = sum(manifest.added_files for manifest in manifests)
    removing_bytes = sum(manifest.size for manifest in manifests if manifest.deleted_files)
    piled_up = removed >= _REMOVED_LEAST and removed * _REMOVED_SHARE >= added
    return len(manifests) > 1 and removed > 0 and (piled_up or removing_bytes >= policy.full_bytes)


def merge_start(manifests: Sequence[ManifestFile], policy: MergePolicy) -> int | None:
    """The index of the first manifest to merge; it and all later ones become one. None if no merge is due."""
    small = len(manifests)
    while small > 0 and manifests[small - 1].size < policy.target_bytes:
        small -= 1
    if len(manifests) - small < policy.min_count:
        return None
    start, gathered = len(manifests) - 1, manifests[-1].size
    while start > small and manifests[start - 1].size <= gathered:
        start -= 1
        gathered += manifests[start].size
    if len(manifests) - start >= policy.min_count or len(manifests) - start > len(manifests) // 2:
        return start
    # The newest differ too much in size for a cheap merge; take them all once there are many.
    return small if len(manifests) - small >= 2 * policy.min_count else None


def merge_manifests(
    home: TableHome, manifests: Sequence[ManifestFile], policy: MergePolicy, files: ManifestFiles, threads: int
) -> list[ManifestFile]:
    """The manifests after merging, if any is due."""
    if wants_full_merge(manifests, policy):
        return _merge_fully(home, manifests, files)
    start = merge_start(manifests, policy)
    if start is None:
        return list(manifests)
    entries = read_entries(home, manifests[start:], threads=threads)
    merged = cancel(entries, whole=start == 0)
    return [*manifests[:start], *files.write_entries(merged)]


def needs_packing(manifests: Sequence[ManifestFile], policy: MergePolicy) -> bool:
    """Whether `pack_manifests` is worth running: there are removals, or several small manifests."""
    small = sum(manifest.size < policy.target_bytes // 2 for manifest in manifests)
    return small > 1 or any(manifest.deleted_files for manifest in manifests)


def pack_manifests(
    home: TableHome, manifests: Sequence[ManifestFile], policy: MergePolicy, files: ManifestFiles
) -> list[ManifestFile]:
    """Merge manifests into as few as possible: removals are cancelled out, and small manifests merged with their neighbours."""
    if not needs_packing(manifests, policy):
        return list(manifests)
    return _merge_fully(home, manifests, files, small_bytes=policy.target_bytes // 2)


def _merge_fully(
    home: TableHome, manifests: Sequence[ManifestFile], files: ManifestFiles, *, small_bytes: int = 0
) -> list[ManifestFile]:
    """Rewrite the manifests that remove files, those whose files are removed, and small ones; the others stay as they are."""
    removing = [manifest for manifest in manifests if manifest.deleted_files]
    entries = read_entries(home, removing, columns=IDENTITY_COLUMNS)
    removed = (
        entries.filter(pc.equal(entries.column("_KIND"), int(EntryKind.DELETE))).column("_FILE_NAME").combine_chunks()
    )
    # The new manifests take the places of those they replace, so that files keep their order.
    places: list[ManifestFile | int] = []
    rewritten: list[pa.Table] = []
    for manifest in manifests:
        if not manifest.deleted_files and manifest.size >= small_bytes:
            names = read_manifest(home, manifest, ["_FILE_NAME"]).column("_FILE_NAME")
            if not pc.any(pc.is_in(names, value_set=removed)).as_py():
                places.append(manifest)
                continue
        if not places or isinstance(places[-1], ManifestFile):
            places.append(len(places))
        rewritten.append(_with_place(read_manifest(home, manifest), len(places) - 1))
    merged = cancel(pa.concat_tables(rewritten), whole=True)
    result: list[ManifestFile] = []
    for place in places:
        if isinstance(place, ManifestFile):
            result.append(place)
        else:
            result += files.write_entries(merged.filter(pc.equal(merged.column(_PLACE), place)).drop_columns(_PLACE))
    return result


def _with_place(entries: pa.Table, place: int) -> pa.Table:
    return entries.append_column(_PLACE, pa.repeat(pa.scalar(place, pa.int32()), entries.num_rows))
