"""The files that the snapshots, tags and changelogs of a table name, one by one: the reference for tests of clean-up."""

import re

from lakelet.commit.index_changes import read_index_entries
from lakelet.commit.metadata.manifests import live_entries, read_entries, read_manifest_list, snapshot_manifests
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.format.manifest.manifest_columns import columns_to_entries
from lakelet.format.metadata.snapshot_json import decode_snapshot
from lakelet.format.partition_folders import PartitionFolders
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome

_KEPT = re.compile(r"/(snapshot-\d+|tag-[^/]+)$")
_WATCHED = re.compile(r"/(manifest|index|statistics|bucket-[^/]+)/[^/]+$")


def kept_snapshots(home: TableHome) -> list[Snapshot]:
    """All snapshots and tags of all branches."""
    paths = [info.path for info in home.store.list(home.paths.root) if _KEPT.search(info.path)]
    return [decode_snapshot(home.store.get(path), path=path) for path in paths]


def named_files(home: TableHome) -> set[str]:
    """The paths of all files that they name."""
    named: set[str] = set()
    folders = PartitionFolders(home.paths, latest_schema(home))
    for snapshot in kept_snapshots(home):
        lists = [snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.changelog_manifest_list]
        manifests = [manifest for name in lists if name for manifest in read_manifest_list(home, name)]
        metadata = [*filter(None, [*lists, snapshot.index_manifest]), *(manifest.name for manifest in manifests)]
        named.update(home.paths.manifest(name) for name in metadata)
        named.update(home.paths.index(entry.file.name) for entry in read_index_entries(home, snapshot))
        if snapshot.statistics:
            named.add(home.paths.statistics(snapshot.statistics))
        entries = columns_to_entries(live_entries(home, snapshot_manifests(home, snapshot)))
        if snapshot.changelog_manifest_list:
            changes = read_entries(home, read_manifest_list(home, snapshot.changelog_manifest_list))
            entries += columns_to_entries(changes)
        for entry in entries:
            folder = folders.bucket_folder(entry.partition, entry.bucket)
            named.update(f"{folder}/{name}" for name in (entry.file.name, *entry.file.extra_files))
    return named


def stored_files(home: TableHome) -> set[str]:
    """The paths of all files that are there, of the kinds that snapshots name."""
    return {info.path for info in home.store.list(home.paths.root) if _WATCHED.search(info.path)}
