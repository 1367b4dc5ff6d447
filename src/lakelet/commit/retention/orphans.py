"""Orphan removal: delete files that nothing refers to, left by crashed writers, lost commits and interrupted clean-ups.

    list files older than the safety age ─ then read who names files, on all branches ─ remove what nobody names

The order matters. A file that is committed between the two steps is seen by the second, which is repeated while commits are
made; one that is committed later still is younger than the safety age, or its commit finds it missing. The age is the
difference of this machine's clock and the store's file times, so that an age of minutes is safe only where nobody is writing.

Only folders whose files Lakelet and Paimon name are searched: manifests, indexes, statistics, buckets of partitions, and stray
names beside snapshots and changelogs. Anything else in the table's folder is left alone, and so are symbolic links and whatever
they lead to. Folders are listed several at a time; the paths found and the names in use are joined as Arrow columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.metadata.metadata_reader import MetadataReader
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.version_ids import listed_ids
from lakelet.commit.retention.empty_folders import remove_empty_folders
from lakelet.commit.retention.file_references import branch_homes, branch_line, read_snapshots, table_holders
from lakelet.commit.retention.unused_files import Held, NamedFiles, delete_many, held_files, held_names, named_by
from lakelet.errors import CorruptionError
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import DATA_FILE_PATH_DIRECTORY, TableOptions
from lakelet.storage.home import TableHome
from lakelet.storage.store import Listing

_LISTERS = 16
_SHOWN = 100
_TRIES = 5
_SNAPSHOT_NAMES = re.compile(r"^(snapshot-.*|LATEST|EARLIEST)$")
_CHANGELOG_NAMES = re.compile(r"^(changelog-.*|LATEST|EARLIEST)$")


@dataclass(frozen=True, slots=True)
class OrphanReport:
    """What was removed, or with `dry_run` would be: how many files of how many bytes, and the first of their paths.

    `leftovers` of them are what interrupted writes left under hidden names. Empty `folders` were removed as well, uncounted.
    """

    count: int
    bytes: int
    paths: tuple[str, ...]
    leftovers: int = 0
    folders: int = 0
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class _Found:
    """Files that may be orphans, as columns, and the data folders that hold no file at all."""

    paths: pa.Array
    sizes: pa.Array
    empty: tuple[str, ...]


class OrphanWork(Protocol):
    """Lists many folders and deletes many files: with threads here, or on other machines."""

    def list_folders(self, folders: Sequence[str]) -> list[Listing]:
        """The files of each folder, in the order of the folders."""
        ...

    def delete(self, paths: Sequence[str]) -> None:
        """Removes the files."""
        ...


def remove_orphan_files(
    home: TableHome, *, older_than_ms: int, dry_run: bool = False, work: OrphanWork | None = None
) -> OrphanReport:
    """Remove files last changed before that time which no snapshot, tag or changelog of any branch names."""
    schema = latest_schema(home)
    hands = work or _Threads(home)
    found = _candidates(home, schema, older_than_ms, hands)
    names = pc.replace_substring_regex(found.paths, "^.*/", "")
    while True:
        newest = _newest_ids(home)
        used = _names_in_use(home)
        # Reading takes a while on a large table. A commit made meanwhile may name an old file.
        if dry_run or _newest_ids(home) == newest:
            break
    orphan = pc.invert(pc.is_in(names, value_set=used))
    paths, sizes = found.paths.filter(orphan), found.sizes.filter(orphan)
    if not dry_run:
        hands.delete(paths.to_pylist())
    leftovers = home.store.remove_leftovers(
        home.paths.root, older_than_ms=older_than_ms, keep=_hidden_in_use(schema, used), dry_run=dry_run
    )
    folders = 0
    if not dry_run:
        buckets = [path.rpartition("/")[0] for path in paths.to_pylist() if "/bucket-" in path]
        folders = remove_empty_folders(home, {*found.empty, *buckets})
    return OrphanReport(
        count=len(paths) + len(leftovers),
        bytes=int(pc.sum(sizes).as_py() or 0) + sum(info.size for info in leftovers),
        paths=(*paths.slice(0, _SHOWN).to_pylist(), *(info.path for info in leftovers))[:_SHOWN],
        leftovers=len(leftovers),
        folders=folders,
        dry_run=dry_run,
    )


def _hidden_in_use(schema: TableSchema, used: pa.Array) -> set[str]:
    """Live names that begin with a dot: other engines let users choose such ones for files and for the folder they are in."""
    folder = TableOptions(schema.options).get(DATA_FILE_PATH_DIRECTORY) or ""
    return {*used.filter(pc.starts_with(used, ".")).to_pylist(), *folder.split("/")}


@dataclass(frozen=True, slots=True)
class _Threads:
    home: TableHome

    def list_folders(self, folders: Sequence[str]) -> list[Listing]:
        with ThreadPoolExecutor(_LISTERS) as pool:
            return list(pool.map(self.home.store.list_folder, folders))

    def delete(self, paths: Sequence[str]) -> None:
        delete_many(self.home, paths)


def _candidates(home: TableHome, schema: TableSchema, older_than_ms: int, work: OrphanWork) -> _Found:
    """The files of all folders in which orphans may be that are older than the safety age."""
    listings: list[Listing] = []
    with ThreadPoolExecutor(_LISTERS) as pool:
        metadata = [f"{home.paths.root}/{name}" for name in ("manifest", "index", "statistics")]
        listings.extend(pool.map(home.store.list_folder, _unlinked(home, metadata)))
        buckets = _bucket_folders(home, schema, pool)
        data = work.list_folders(buckets)
        branches = branch_homes(home)
        snapshots = _unlinked(home, [each.paths.snapshot_folder for each in branches])
        changelogs = _unlinked(home, [each.paths.changelog_folder for each in branches])
        strays = [
            *_strays(pool.map(home.store.list_folder, snapshots), _SNAPSHOT_NAMES),
            *_strays(pool.map(home.store.list_folder, changelogs), _CHANGELOG_NAMES),
        ]
    listings.extend(data)
    listings.extend(strays)
    old = [
        info
        for listing in listings
        for info in listing.files
        if info.modified_ms < older_than_ms and info.path not in listing.links
    ]
    empty = tuple(
        folder for folder, listing in zip(buckets, data, strict=True) if not listing.files and not listing.folders
    )
    return _Found(
        pa.array([info.path for info in old], pa.string()), pa.array([info.size for info in old], pa.int64()), empty
    )


def _bucket_folders(home: TableHome, schema: TableSchema, pool: ThreadPoolExecutor) -> list[str]:
    """The folders of all buckets of all partitions; for a partition without any, its own folder."""
    data_folder = TableOptions(schema.options).get(DATA_FILE_PATH_DIRECTORY)
    level = _unlinked(home, [f"{home.paths.root}/{data_folder}"]) if data_folder else [home.paths.root]
    found: list[str] = []
    for depth in range(len(schema.partition_keys) + 1):
        is_last = depth == len(schema.partition_keys)
        following: list[str] = []
        for folder, listing in zip(level, pool.map(home.store.list_folder, level), strict=True):
            names = [(inside, inside.rsplit("/", 1)[-1]) for inside in listing.folders if inside not in listing.links]
            if depth and not listing.folders and not listing.files:
                found.append(folder)
            following.extend(
                inside for inside, name in names if (name.startswith("bucket-") if is_last else "=" in name)
            )
        level = following
    return [*found, *level]


def _unlinked(home: TableHome, folders: Sequence[str]) -> list[str]:
    """The folders that are the table's own: a symbolic link may lead to any other data."""
    return [folder for folder in folders if not home.store.is_linked(folder)]


def _strays(listings: Iterable[Listing], known: re.Pattern[str]) -> Sequence[Listing]:
    """The files of folders except those whose names belong there."""
    return [
        replace(listing, files=tuple(info for info in listing.files if not known.match(info.path.rsplit("/", 1)[-1])))
        for listing in listings
    ]


def _newest_ids(home: TableHome) -> dict[str, int]:
    """The newest snapshot of each branch."""
    return {branch.paths.branch: max(listed_ids(branch), default=0) for branch in branch_homes(home)}


def _names_in_use(home: TableHome) -> pa.Array:
    """The names of all files that anything of the table refers to."""
    for attempt in range(_TRIES):
        holders = table_holders(home)
        reader = MetadataReader(home)
        try:
            named = held_names(reader, Held(holders))
            used = held_files(reader, holders, extra=True)
        except CorruptionError:
            # A snapshot may have been expired while it was read; one that is broken stays so, and nothing is removed.
            if attempt == _TRIES - 1:
                raise
            continue
        break
    loose = MetadataReader(home, partial=True)
    strays = [snapshot for branch in branch_homes(home) for snapshot in _out_of_line(branch)]
    others = named_by(loose, strays)
    loose.load_entries(others.manifests)
    entries = loose.entries(others.manifests)
    names = [*_metadata_names(named), *_metadata_names(others)]
    return pa.concat_arrays([used, entries.column("_FILE_NAME").combine_chunks(), pa.array(names, pa.string())])


def _out_of_line(home: TableHome) -> list[Snapshot]:
    """Snapshot files outside the live line. Expiry decides about them; the files that they name stay."""
    live = {snapshot.id for snapshot in branch_line(home).snapshots}
    found = read_snapshots(home, sorted(listed_ids(home) - live))
    return [snapshot for snapshot in found if snapshot is not None]


def _metadata_names(named: NamedFiles) -> set[str]:
    return named.lists | named.manifests | named.indexes | named.statistics
