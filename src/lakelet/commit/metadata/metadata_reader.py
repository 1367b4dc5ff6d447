"""Read many manifest lists and manifests, each once and several at a time.

Used where files are removed: expiry, clean-up after tags, branches and rollbacks, orphan removal. Of a snapshot that is being
removed, parts may be deleted already, since an earlier run stopped in the middle; then what is missing is treated as empty.
What a live snapshot names must exist: were it treated as empty, its files would look unused. Everything is read from the store,
whatever a cache holds: nothing is removed on the word of metadata that is missing or damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.metadata.missing_file import MissingFileError
from lakelet.commit.metadata.source import UNCACHED
from lakelet.errors import NotFoundError
from lakelet.format.manifest.manifest_columns import ENTRY_SCHEMA, IDENTITY_COLUMNS
from lakelet.storage.home import TableHome

T = TypeVar("T")
FILE_COLUMNS = (*IDENTITY_COLUMNS, "_EXTRA_FILES", "_EXTERNAL_PATH", "_FILE_SOURCE")
_READERS = 16


def no_entries() -> pa.Table:
    """An empty table of entries."""
    return pa.schema([field for field in ENTRY_SCHEMA if field.name in FILE_COLUMNS]).empty_table()


@dataclass(slots=True)
class MetadataReader:
    """A reader that caches what it has read.

    `partial` says that files may be missing. Where `only_files` is given, only the entries of files of these names are kept.
    """

    home: TableHome
    partial: bool = False
    only_files: pa.Array | None = None
    _lists: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _entries: dict[str, pa.Table] = field(default_factory=dict)
    _indexes: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def load_lists(self, names: Iterable[str | None]) -> None:
        """Reads these manifest lists."""
        _load(names, self._lists, self._read_list)

    def load_entries(self, manifests: Iterable[str]) -> None:
        """Reads these manifests."""
        _load(manifests, self._entries, self._read_entries)

    def load_indexes(self, names: Iterable[str | None]) -> None:
        """Reads these index manifests."""
        _load(names, self._indexes, self._read_index)

    def manifests(self, *lists: str | None) -> list[str]:
        """The manifests that these lists name, which must have been loaded."""
        return [manifest for name in lists if name is not None for manifest in self._lists[name]]

    def entries(self, manifests: Iterable[str]) -> pa.Table:
        """The entries of manifests that have been loaded, in their order."""
        return pa.concat_tables([no_entries(), *(self._entries[name] for name in manifests)])

    def index_files(self, name: str | None) -> tuple[str, ...]:
        """The index files that an index manifest names, which must have been loaded."""
        return () if name is None else self._indexes[name]

    def _read_list(self, name: str) -> tuple[str, ...]:
        found = self._ask(name, lambda: UNCACHED.manifest_list(self.home, name))
        return () if found is None else tuple(manifest.name for manifest in found)

    def _read_entries(self, name: str) -> pa.Table:
        entries = self._ask(name, lambda: UNCACHED.manifest(self.home, name, FILE_COLUMNS))
        if entries is None:
            return no_entries()
        if self.only_files is None:
            return entries
        return entries.filter(pc.is_in(entries.column("_FILE_NAME"), value_set=self.only_files))

    def _read_index(self, name: str) -> tuple[str, ...]:
        found = self._ask(name, lambda: UNCACHED.index_manifest(self.home, name))
        return () if found is None else tuple(entry.file.name for entry in found)

    def _ask(self, name: str, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except NotFoundError as error:
            if self.partial:
                return None
            where = self.home.where(self.home.paths.manifest(name))
            raise MissingFileError(f"{where} is missing, although a snapshot names it") from error


def _load(names: Iterable[str | None], known: dict[str, T], read: Callable[[str], T]) -> None:
    missing = [name for name in dict.fromkeys(names) if name is not None and name not in known]
    if len(missing) == 1:
        known[missing[0]] = read(missing[0])
    elif missing:
        with ThreadPoolExecutor(min(_READERS, len(missing))) as pool:
            known.update(zip(missing, pool.map(read, missing), strict=True))
