"""The files of a commit as its callbacks see them: manifest entries, read lazily.

Most callbacks need what a commit changed, which is little, and never what was live before it, which may be
hundreds of thousands of files. So neither is read before it is used; then it is read once. A callback that needs only some
columns, of many files, takes `columns` instead of the entries and decodes nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

import pyarrow as pa

from lakelet.commit.metadata.manifests import live_entries, read_entries, read_manifest_list
from lakelet.format.manifest.manifest_columns import columns_to_entries
from lakelet.model.manifest import ManifestEntry
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome

ReadColumns = Callable[[Sequence[str] | None], pa.Table]


class CommitFiles(Sequence[ManifestEntry]):
    """Entries of manifests, read at the first use; errors of the store are raised there."""

    def __init__(self, read: ReadColumns) -> None:
        self._read = read
        self._entries: list[ManifestEntry] | None = None

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Only these columns of the entries, by the names that manifests give them: `_KIND`, `_PARTITION`, `_FILE_NAME`, …"""
        return self._read(names).select(list(names))

    def __len__(self) -> int:
        return len(self._all())

    @overload
    def __getitem__(self, index: int) -> ManifestEntry: ...
    @overload
    def __getitem__(self, index: slice) -> list[ManifestEntry]: ...
    def __getitem__(self, index: int | slice) -> ManifestEntry | list[ManifestEntry]:
        return self._all()[index]

    def _all(self) -> list[ManifestEntry]:
        if self._entries is None:
            self._entries = columns_to_entries(self._read(None))
        return self._entries


def base_files(home: TableHome, snapshot: Snapshot, threads: int = 1) -> CommitFiles:
    """The files that were live before the commit."""

    def read(columns: Sequence[str] | None) -> pa.Table:
        manifests = read_manifest_list(home, snapshot.base_manifest_list)
        return live_entries(home, manifests, columns=columns, threads=threads)

    return CommitFiles(read)


def delta_files(home: TableHome, snapshot: Snapshot, threads: int = 1) -> CommitFiles:
    """The files that the commit added and removed, as in its manifests."""

    def read(columns: Sequence[str] | None) -> pa.Table:
        manifests = read_manifest_list(home, snapshot.delta_manifest_list)
        return read_entries(home, manifests, columns=columns, threads=threads)

    return CommitFiles(read)
