"""The entries of a snapshot's manifests for a plan, kept between plans where the table's metadata source keeps values.

The first plan of a snapshot with a condition reads only the manifests that may match. A second one, or the first one of a
snapshot whose predecessor was kept, reads all and keeps them; of these only manifests that were not read before are decoded, and
after an append the columns of the predecessor are continued.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestContent, ManifestFile
from pyiceberg.table.snapshots import Snapshot

from lakelet.iceberg.metadata import manifests as fields
from lakelet.iceberg.metadata.manifests import STATISTICS, Entries
from lakelet.iceberg.metadata.source import IcebergMetadataSource
from lakelet.iceberg.scan.continued_entries import continued, new_places
from lakelet.iceberg.scan.delete_index import DeleteIndex, PlacedDelete
from lakelet.iceberg.scan.file_errors import reading
from lakelet.iceberg.scan.live_entries import LiveEntries
from lakelet.storage.metadata_source import KeptValues

BOUNDS = (fields.LOWER, fields.UPPER)
_WORKERS = 8
# The memory of an entry without statistics, and of a delete file.
_ENTRY_BYTES = 400
_DELETE_BYTES = 1200
_MARKER_BYTES = 200


@dataclass(frozen=True, slots=True)
class SnapshotEntries:
    """The data files of a snapshot, of all manifests or of those that may match, and its delete files."""

    live: LiveEntries
    deletes: DeleteIndex
    files_total: int
    manifests_total: int
    # The manifests of `live` by their names and what entries inherit.
    manifests: tuple[tuple[object, ...], ...] = ()

    @property
    def nbytes(self) -> int:
        """The size in memory."""
        return self.live.nbytes + _DELETE_BYTES * self.deletes.count + _MARKER_BYTES * len(self.manifests)


@dataclass(frozen=True, slots=True)
class EntriesReader:
    """Reads the entries of snapshots of one table; `table` names it in errors, `placed` says to what delete files apply."""

    io: FileIO
    source: IcebergMetadataSource
    table: str
    placed: Callable[[Entries], Sequence[PlacedDelete]]

    def read(
        self, snapshot: Snapshot, may_match: Callable[[ManifestFile], bool] | None, *, statistics: bool
    ) -> SnapshotEntries:
        """The entries of a snapshot. With `may_match` a plan needs only those of manifests for which it holds."""
        kept = self.source.kept()
        wanted = STATISTICS if statistics else ()
        if kept is None:
            return self._made(snapshot, self._listed(snapshot), may_match, wanted)
        for with_statistics in (True,) if statistics else (False, True):
            found: SnapshotEntries | None = kept.get(_name(snapshot, with_statistics))
            if found is not None:
                return found
        listed = self._listed(snapshot)
        if not _worth_keeping(kept, snapshot, listed, selective=may_match is not None, statistics=statistics):
            return self._made(snapshot, listed, may_match, wanted)
        before = kept.get(("planned", statistics))
        known = None if before is None else kept.get(("live entries", before, statistics))
        made = self._made(snapshot, listed, None, wanted, known)
        kept.put(_name(snapshot, statistics), made, made.nbytes)
        kept.put(("planned", statistics), snapshot.manifest_list, _MARKER_BYTES)
        return made

    def _listed(self, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        with reading(snapshot.manifest_list, self.table):
            return self.source.manifest_list(self.io, snapshot)

    def _made(
        self,
        snapshot: Snapshot,
        listed: Sequence[ManifestFile],
        may_match: Callable[[ManifestFile], bool] | None,
        statistics: Sequence[int],
        before: SnapshotEntries | None = None,
    ) -> SnapshotEntries:
        data = [one for one in listed if one.content == ManifestContent.DATA]
        chosen = [one for one in data if one.has_added_files() or one.has_existing_files()]
        if may_match is not None:
            chosen = [one for one in chosen if may_match(one)]
        index = DeleteIndex()
        for entries in self._entries([one for one in listed if one.content == ManifestContent.DELETES], BOUNDS):
            for delete in self.placed(entries):
                index.add(delete)
        names = tuple((one.manifest_path, one.sequence_number, one.partition_spec_id) for one in chosen)
        total = sum((one.added_files_count or 0) + (one.existing_files_count or 0) for one in data)
        return SnapshotEntries(self._live(chosen, names, statistics, before), index, total, len(data), names)

    def _live(
        self,
        chosen: Sequence[ManifestFile],
        names: tuple[tuple[object, ...], ...],
        statistics: Sequence[int],
        before: SnapshotEntries | None,
    ) -> LiveEntries:
        added = None if before is None else new_places(names, before.manifests)
        if before is None or added is None:
            return LiveEntries.of(self._entries(chosen, statistics), statistics=bool(statistics))
        places, first = added
        entries = self._entries([chosen[place] for place in places], statistics)
        return continued(before.live, LiveEntries.of(entries, statistics=bool(statistics)), new_first=first)

    def _entries(self, manifests: Sequence[ManifestFile], statistics: Sequence[int]) -> list[Entries]:
        found = [self.source.known_manifest(one, statistics) for one in manifests]
        missing = [place for place, one in enumerate(found) if one is None]
        if len(missing) > 1:
            with ThreadPoolExecutor(min(_WORKERS, len(missing))) as pool:
                read = list(pool.map(lambda place: self._read(manifests[place], statistics), missing))
        else:
            read = [self._read(manifests[place], statistics) for place in missing]
        for place, entries in zip(missing, read, strict=True):
            found[place] = entries
        return [one for one in found if one is not None]

    def _read(self, manifest: ManifestFile, statistics: Sequence[int]) -> Entries:
        with reading(manifest.manifest_path, self.table):
            return self.source.manifest(self.io, manifest, statistics)


def _worth_keeping(
    kept: KeptValues, snapshot: Snapshot, listed: Sequence[ManifestFile], *, selective: bool, statistics: bool
) -> bool:
    files = sum((one.added_files_count or 0) + (one.existing_files_count or 0) for one in listed)
    if files * _ENTRY_BYTES > kept.max_bytes:
        return False
    if not selective or kept.get(("planned", statistics)) is not None:
        return True
    asked = ("asked for", *_name(snapshot, statistics))
    if kept.get(asked) is not None:
        return True
    kept.put(asked, True, _MARKER_BYTES)
    return False


def _name(snapshot: Snapshot, statistics: bool) -> tuple[object, ...]:
    return ("live entries", snapshot.manifest_list, statistics)
