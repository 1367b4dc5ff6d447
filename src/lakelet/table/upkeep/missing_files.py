"""Remove data files from the table that the newest snapshot names but the store lacks: a repair after manual deletion.

    newest snapshot ─ list the folders of its files ─ what is missing ─ commit that removes them from the table

A table that lost a file cannot be read as a whole; without it, its other rows can. The rows of the file are lost either way,
which is why nobody but a person asks for this. The folders are listed after the snapshot was read, and the commit conflicts
where others have removed a file meanwhile, so that files removed by compaction and expiry are not mistaken for lost ones.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.metadata.manifests import live_entries, snapshot_manifests
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.format.manifest.manifest_columns import columns_to_entries
from lakelet.format.partition_folders import PartitionFolders
from lakelet.model.commit_message import CommitMessage
from lakelet.model.data_file import DataFile
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome
from lakelet.table.change.looked_up_change import LookedUpChange, Prepared
from lakelet.table.write.table_commit import TableCommit

_LISTERS = 16


@dataclass(frozen=True, slots=True)
class MissingFiles:
    """The paths of the missing files, and the snapshot without them; None with `dry_run` or without any."""

    paths: tuple[str, ...]
    snapshot: Snapshot | None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class _Lost:
    paths: tuple[str, ...]
    messages: tuple[CommitMessage, ...]


def drop_missing_files(home: TableHome, *, dry_run: bool = False) -> MissingFiles:
    """Remove the missing files from the table, in one commit."""
    schema = latest_schema(home)
    found = _Lost((), ())

    def prepare(newest: TableSchema, snapshot: Snapshot | None) -> Prepared:
        nonlocal found
        found = _Lost((), ()) if snapshot is None else _lost(home, newest, snapshot)
        return Prepared(found.messages)

    if dry_run:
        prepare(schema, latest_snapshot(home))
        return MissingFiles(found.paths, None, dry_run=True)
    snapshot = LookedUpChange(home, TableCommit.of(home, None, None, schema), prepare).run()
    return MissingFiles(found.paths, snapshot if found.paths else None)


def _lost(home: TableHome, schema: TableSchema, snapshot: Snapshot) -> _Lost:
    entries = live_entries(home, snapshot_manifests(home, snapshot))
    folders = PartitionFolders(home.paths, schema)
    places = entries.group_by(["_PARTITION", "_BUCKET"]).aggregate([]).to_pylist()
    listed = [folders.bucket_folder(place["_PARTITION"], place["_BUCKET"]) for place in places]
    with ThreadPoolExecutor(_LISTERS) as pool:
        listings = list(pool.map(home.store.list_folder, listed))
    there = pa.array([info.path.rsplit("/", 1)[-1] for listing in listings for info in listing.files], pa.string())
    gone = entries.filter(pc.invert(pc.is_in(entries.column("_FILE_NAME"), value_set=there)))
    paths: list[str] = []
    files: dict[tuple[bytes, int, int], list[DataFile]] = {}
    for entry in columns_to_entries(gone):
        if entry.file.external_path is None:
            folder = folders.bucket_folder(entry.partition, entry.bucket)
            paths.append(home.where(f"{folder}/{entry.file.name}"))
            files.setdefault((entry.partition, entry.bucket, entry.total_buckets), []).append(entry.file)
    messages = [CommitMessage(*place, (), tuple(lost), snapshot.id) for place, lost in files.items()]
    return _Lost(tuple(paths), tuple(messages))
