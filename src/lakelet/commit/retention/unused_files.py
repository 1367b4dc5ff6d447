"""Remove files that only deleted snapshots name.

Called after the snapshots, tags or branches themselves are deleted: by expiry, rollback, and when a tag or branch is deleted.

    gone ─ what they name ─┐
                           ├─ what only they name ─ data, changelog, index and statistics files, then manifests, then lists
    holders of all branches┘

The snapshot is deleted first and its files after it. A crash between leaves files that nothing names, never a snapshot
without its files, and whoever made a tag of the snapshot meanwhile can check: if the snapshot still exists after the tag was
written, the tag is among the holders read here. Lists are deleted last, so that a second run finds what the first has left.

Entries are handled as Arrow columns. Each list and manifest is read once; of those that are held, only the entries of files
in question are kept, however many there are. What cannot be read ends the removal before anything is removed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.metadata.manifests import drop_removed
from lakelet.commit.metadata.metadata_reader import MetadataReader, no_entries
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.retention.file_references import Holders, Line, table_holders
from lakelet.errors import CorruptionError
from lakelet.format.partition_folders import PartitionFolders
from lakelet.model.data_file import FILE_SOURCE_COMPACT
from lakelet.model.manifest import EntryKind
from lakelet.model.snapshot import Snapshot
from lakelet.storage.disk.links import BehindLinkError
from lakelet.storage.home import TableHome

_LOG = logging.getLogger(__name__)
_TRIES = 5
_BATCH = 1000
_DELETERS = 8


@dataclass(slots=True)
class NamedFiles:
    """Names of metadata and index files, by their folder."""

    lists: set[str] = field(default_factory=set)
    manifests: set[str] = field(default_factory=set)
    indexes: set[str] = field(default_factory=set)
    statistics: set[str] = field(default_factory=set)

    def without(self, other: NamedFiles) -> NamedFiles:
        """The names that the other does not have."""
        return NamedFiles(
            self.lists - other.lists,
            self.manifests - other.manifests,
            self.indexes - other.indexes,
            self.statistics - other.statistics,
        )


@dataclass(frozen=True, slots=True)
class Held:
    """The holders of files. Those of `named_only` are known to have none of the data files in question, and only hold
    metadata.
    """

    holders: Holders
    named_only: tuple[Snapshot, ...] = ()


@dataclass(frozen=True, slots=True)
class RemovedFiles:
    """How many files were removed, and the bucket folders that data files were removed from."""

    count: int
    folders: tuple[str, ...]


def remove_unused(home: TableHome, gone: Sequence[Snapshot]) -> RemovedFiles:
    """Remove the files that these snapshots name and no snapshot, tag or long-lived changelog of any branch does.

    The snapshots must have been deleted before, and may be of any branch, neighbours or not.
    """
    if not gone:
        return RemovedFiles(0, ())
    reader = MetadataReader(home, partial=True)
    named = named_by(reader, gone)
    files = _files_of(reader, gone)
    return remove_but_held(home, named, files, lambda: Held(table_holders(home)))


def remove_but_held(home: TableHome, named: NamedFiles, files: pa.Table, look: Callable[[], Held]) -> RemovedFiles:
    """Remove these files except those that are held when `look` is called."""
    for attempt in range(_TRIES):
        found = look()
        reader = MetadataReader(home, only_files=files.column("_FILE_NAME").combine_chunks())
        try:
            held = held_names(reader, found)
            used = held_files(reader, found.holders)
        except CorruptionError:
            # A holder may have been expired while it was read. Reading again shows it; a broken one stays broken.
            if attempt == _TRIES - 1:
                raise
            continue
        break
    unused = files.filter(pc.invert(pc.is_in(files.column("_FILE_NAME"), value_set=used)))
    return _remove(home, named.without(held), unused)


def named_by(reader: MetadataReader, snapshots: Sequence[Snapshot]) -> NamedFiles:
    """The metadata, index and statistics files that snapshots name."""
    lists = [name for snapshot in snapshots for name in lists_of(snapshot)]
    indexes = [snapshot.index_manifest for snapshot in snapshots]
    reader.load_lists(lists)
    reader.load_indexes(indexes)
    named = NamedFiles(lists=set(lists), manifests=set(reader.manifests(*set(lists))))
    for name in set(indexes) - {None}:
        named.indexes.update(reader.index_files(name))
    # Index manifests are beside manifests and lists, and like lists name other files.
    named.lists.update(name for name in indexes if name is not None)
    named.statistics.update(snapshot.statistics for snapshot in snapshots if snapshot.statistics is not None)
    return named


def lists_of(snapshot: Snapshot) -> list[str]:
    """The manifest lists of a snapshot."""
    names = (snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.changelog_manifest_list)
    return [name for name in names if name is not None]


def additions(entries: pa.Table) -> pa.Table:
    """The entries that add a file."""
    return entries.filter(pc.equal(entries.column("_KIND"), int(EntryKind.ADD)))


def changes_list(changelog: Snapshot) -> str:
    """The manifest list of a long-lived changelog: that of its changelog, or of the snapshot's changes where it has none."""
    return changelog.changelog_manifest_list or changelog.delta_manifest_list


def _tells_by_data(changelog: Snapshot) -> bool:
    return changelog.changelog_manifest_list is None


def _without_compacted(entries: pa.Table) -> pa.Table:
    """The entries of files with new rows; those of unknown source may be."""
    is_compacted = pc.equal(entries.column("_FILE_SOURCE"), FILE_SOURCE_COMPACT)
    return entries.filter(pc.invert(pc.fill_null(is_compacted, False)))


def held_names(reader: MetadataReader, held: Held) -> NamedFiles:
    """The metadata, index and statistics files that are held."""
    whole = [snapshot for line in held.holders.lines for snapshot in line.snapshots]
    named = named_by(reader, [*whole, *held.named_only])
    # The rest of what a long-lived changelog names was deleted with its snapshot. Java keeps the base list of one that tells
    # its changes by data files; here it may be deleted.
    lists = {changes_list(changelog) for changelog in held.holders.changelogs}
    bases = {changelog.base_manifest_list for changelog in held.holders.changelogs if _tells_by_data(changelog)}
    reader.load_lists(lists)
    loose = MetadataReader(reader.home, partial=True)
    loose.load_lists(bases)
    named.lists |= lists | bases
    named.manifests.update(reader.manifests(*lists), loose.manifests(*bases))
    return named


def _files_of(reader: MetadataReader, gone: Sequence[Snapshot]) -> pa.Table:
    """The data and changelog files of snapshots whose lists have been read, each file once."""
    tables = [no_entries()]
    for line in _lines(reader, sorted(gone, key=lambda snapshot: snapshot.id)):
        tables.extend(_line_tables(reader, line))
    return distinct_files(pa.concat_tables(tables))


def distinct_files(entries: pa.Table) -> pa.Table:
    """One entry per file name."""
    if entries.num_rows == 0:
        return entries
    encoded = entries.column("_FILE_NAME").combine_chunks().dictionary_encode().indices
    numbered = pa.table({"file": encoded, "row": pa.array(np.arange(entries.num_rows))})
    firsts = numbered.group_by("file", use_threads=False).aggregate([("row", "min")]).column("row_min")
    return entries.take(firsts)


def _lines(reader: MetadataReader, snapshots: Sequence[Snapshot]) -> Iterator[Line]:
    """Group snapshots, ordered by id, into lines.

    One that names the changes of the one before it as part of its base was made on top of it. After a merge of manifests
    this cannot be seen; a new line then costs more reading and gives the same files.
    """
    line: list[Snapshot] = []
    for snapshot in snapshots:
        if line:
            changes = set(reader.manifests(line[-1].delta_manifest_list))
            if not changes or not changes <= set(reader.manifests(snapshot.base_manifest_list)):
                yield Line(tuple(line))
                line = []
        line.append(snapshot)
    if line:
        yield Line(tuple(line))


def _line_tables(reader: MetadataReader, line: Line) -> Iterator[pa.Table]:
    """The entries of all files that a line holds: those of its first snapshot, and what each later one adds."""
    first, *later = line.snapshots
    changes = reader.manifests(*(snapshot.delta_manifest_list for snapshot in later))
    changes += reader.manifests(*(snapshot.changelog_manifest_list for snapshot in line.snapshots))
    whole = reader.manifests(first.base_manifest_list, first.delta_manifest_list)
    reader.load_entries([*whole, *changes])
    yield drop_removed(reader.entries(whole))
    yield additions(reader.entries(changes))


def held_files(reader: MetadataReader, holders: Holders, *, extra: bool = False) -> pa.Array:
    """The names of files that are held, among those that the reader looks for; with the files beside them if `extra`."""
    if reader.only_files is not None and len(reader.only_files) == 0:
        return pa.array([], pa.string())
    tables = [no_entries()]
    for line in holders.lines:
        tables.extend(_line_tables(reader, line))
    for changelog in holders.changelogs:
        changes = reader.manifests(changes_list(changelog))
        reader.load_entries(changes)
        added = additions(reader.entries(changes))
        tables.append(_without_compacted(added) if _tells_by_data(changelog) else added)
    entries = pa.concat_tables(tables).combine_chunks()
    names = entries.column("_FILE_NAME").combine_chunks()
    if extra:
        names = pa.concat_arrays([names, entries.column("_EXTRA_FILES").combine_chunks().flatten()])
    return pc.unique(names)


def _remove(home: TableHome, named: NamedFiles, files: pa.Table) -> RemovedFiles:
    """Remove files in an order in which those that name others are removed after these."""
    data, folders = data_paths(home, files)
    first = [*data, *map(home.paths.index, named.indexes), *map(home.paths.statistics, named.statistics)]
    manifests = [home.paths.manifest(name) for name in sorted(named.manifests)]
    lists = [home.paths.manifest(name) for name in sorted(named.lists)]
    for paths in (first, manifests, lists):
        delete_many(home, paths)
    return RemovedFiles(len(first) + len(manifests) + len(lists), tuple(folders))


def data_paths(home: TableHome, entries: pa.Table) -> tuple[list[str], list[str]]:
    """The paths of the entries' files and of the files beside them, and their bucket folders.

    Files outside the table's folder are left out: the store does not reach them.
    """
    outside = entries.num_rows - entries.column("_EXTERNAL_PATH").null_count
    if outside:
        _LOG.warning("%d data files outside %s are left in place", outside, home.where(home.paths.root))
        entries = entries.filter(pc.is_null(entries.column("_EXTERNAL_PATH")))
    if entries.num_rows == 0:
        return [], []
    entries = entries.combine_chunks()
    folders = PartitionFolders(home.paths, latest_schema(home))
    pairs = entries.select(["_PARTITION", "_BUCKET"]).append_column("row", pa.array(np.arange(entries.num_rows)))
    groups = pairs.group_by(["_PARTITION", "_BUCKET"], use_threads=False).aggregate([("row", "list")])
    places = zip(groups.column("_PARTITION").to_pylist(), groups.column("_BUCKET").to_pylist(), strict=True)
    names = [folders.bucket_folder(partition, bucket) for partition, bucket in places]
    rows = groups.column("row_list").combine_chunks()
    of_rows, parents = rows.flatten(), rows.value_parent_indices()
    folder = pa.array(names, pa.string()).take(parents)
    found = entries.take(of_rows)
    paths = pc.binary_join_element_wise(folder, found.column("_FILE_NAME").combine_chunks(), "/").to_pylist()
    extra = found.column("_EXTRA_FILES").combine_chunks()
    beside = folder.take(extra.value_parent_indices())
    return paths + pc.binary_join_element_wise(beside, extra.flatten(), "/").to_pylist(), names


def delete_many(home: TableHome, paths: Iterable[str]) -> None:
    """Delete many files, a batch per call and several calls at a time; those behind a symbolic link stay."""
    ordered = sorted(paths)
    batches = [ordered[start : start + _BATCH] for start in range(0, len(ordered), _BATCH)]
    if len(batches) <= 1:
        for batch in batches:
            _delete(home, batch)
        return
    with ThreadPoolExecutor(min(_DELETERS, len(batches))) as pool:
        list(pool.map(partial(_delete, home), batches))


def _delete(home: TableHome, paths: Sequence[str]) -> None:
    try:
        home.store.delete(paths)
    except BehindLinkError as error:
        # Nothing names the files any longer; whoever made the link knows whose they are.
        _LOG.warning("%s", error)
