"""Read the live files of a snapshot from its manifest list and manifests. Each is read once for all attempts of a commit: they
are immutable, and most of them are shared with the next snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from pyiceberg.table.snapshots import Snapshot

from lakelet.iceberg.metadata.manifests import PATH, REFERENCED
from lakelet.iceberg.metadata.source import IcebergMetadataSource
from lakelet.iceberg.metadata.uncached import UNCACHED

# Manifests that are read at a time; fewer than the second number are read one after the other.
_THREADS = 8
_FEWEST_TOGETHER = 3
# The column of a position delete file that names the data file; its bounds are written in full.
_PATH_COLUMN = 2147483546


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A live file of a snapshot, with the manifest that holds it. A delete file that applies to one data file alone names it."""

    manifest: ManifestFile
    entry: ManifestEntry
    refers_to: str | None = None

    @property
    def file(self) -> DataFile:
        """The manifest's description of the file."""
        return self.entry.data_file

    @property
    def path(self) -> str:
        """Where the file is."""
        return self.file.file_path


class LiveFiles:
    """The files of snapshots of one table."""

    def __init__(self, io: FileIO, source: IcebergMetadataSource = UNCACHED) -> None:
        self._io = io
        self._source = source
        self._lists: dict[str, tuple[ManifestFile, ...]] = {}
        self._entries: dict[str, tuple[ManifestEntry, ...]] = {}
        self._references: dict[str, dict[str, str | None]] = {}

    def manifests(self, snapshot: Snapshot | None) -> tuple[ManifestFile, ...]:
        """The manifests of a snapshot; a branch without one has none."""
        if snapshot is None:
            return ()
        path = snapshot.manifest_list
        if path not in self._lists:
            self._lists[path] = self._source.manifest_list(self._io, snapshot)
        return self._lists[path]

    def entries(self, manifest: ManifestFile) -> tuple[ManifestEntry, ...]:
        """The live entries of a manifest, with the sequence numbers they inherit."""
        path = manifest.manifest_path
        if path not in self._entries:
            self._entries[path] = self._source.manifest_rows(self._io, manifest)
        return self._entries[path]

    def data(
        self, snapshot: Snapshot | None, wanted: Callable[[ManifestFile], bool] = lambda _: True
    ) -> Iterator[LiveFile]:
        """The data files of a snapshot, of the selected manifests."""
        yield from self._files(snapshot, ManifestContent.DATA, wanted)

    def deletes(
        self, snapshot: Snapshot | None, wanted: Callable[[ManifestFile], bool] = lambda _: True
    ) -> Iterator[LiveFile]:
        """The delete files of a snapshot."""
        for found in self._files(snapshot, ManifestContent.DELETES, wanted):
            yield LiveFile(found.manifest, found.entry, self._referred(found))

    def _referred(self, found: LiveFile) -> str | None:
        """The data file that all deletes of an entry refer to, which pyiceberg does not decode."""
        low, high = path_bounds(found.file)
        if low is not None and low == high and found.file.content == DataFileContent.POSITION_DELETES:
            return low.decode()
        path = found.manifest.manifest_path
        if path not in self._references:
            entries = self._source.manifest(self._io, found.manifest)
            self._references[path] = dict(zip(entries.values(PATH), entries.values(REFERENCED), strict=True))
        return self._references[path].get(found.path)

    def _files(
        self, snapshot: Snapshot | None, content: ManifestContent, wanted: Callable[[ManifestFile], bool]
    ) -> Iterator[LiveFile]:
        chosen = [one for one in self.manifests(snapshot) if one.content == content and wanted(one)]
        missing = sum(one.manifest_path not in self._entries for one in chosen)
        if missing < _FEWEST_TOGETHER:
            yield from (LiveFile(manifest, entry) for manifest in chosen for entry in self.entries(manifest))
            return
        # The entries of all of them are held anyway, so that nothing is gained by reading them one after the other.
        with ThreadPoolExecutor(min(_THREADS, missing)) as pool:
            read = list(pool.map(self.entries, chosen))
        for manifest, entries in zip(chosen, read, strict=True):
            yield from (LiveFile(manifest, entry) for entry in entries)


def path_bounds(delete: DataFile) -> tuple[bytes | None, bytes | None]:
    """The bounds of the data file paths in a position delete file; None where it has none."""
    return (delete.lower_bounds or {}).get(_PATH_COLUMN), (delete.upper_bounds or {}).get(_PATH_COLUMN)
