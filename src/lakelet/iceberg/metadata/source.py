"""The source of the metadata of Iceberg tables: a cache that a table brings, or its files, read at every call.

It corresponds to that of native tables (`storage/metadata_source`), with Iceberg's kinds of metadata. The **pointer** is the
metadata location that a catalog has for a table: loading a table resolves the newest. Everything else is a **value** that
never changes under its path: a metadata file, the manifest list of a snapshot, a manifest. A source serves any number of tables,
and `of_table` says of which one the values are; they are shared and immutable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pyiceberg.catalog import Catalog
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestEntry, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import Identifier

from lakelet.cache.trace import CacheTrace
from lakelet.iceberg.metadata.manifests import Entries
from lakelet.storage.metadata_source import KeptValues


class IcebergMetadataSource(Protocol):
    """Loads the metadata of Iceberg tables; safe to share between threads. A missing file is a
    FileNotFoundError, as the library raises it."""

    def for_queries(self) -> IcebergMetadataSource:
        """The same source for queries: the pointer may be as old as the source's owner allows."""
        ...

    def from_store(self) -> IcebergMetadataSource:
        """The source that reads the files at every call, for those who remove files on the word of metadata."""
        ...

    def of_table(self, catalog: str, name: Identifier) -> IcebergMetadataSource:
        """The same source for the metadata of one table of a catalog."""
        ...

    def traced(self, trace: CacheTrace) -> IcebergMetadataSource:
        """The same source, which notes what it takes from where."""
        ...

    def table(self, catalog: Catalog, name: str | Identifier) -> Table:
        """A table at the metadata location that its catalog has now."""
        ...

    def metadata(self, io: FileIO, location: str) -> TableMetadata:
        """The parsed metadata file."""
        ...

    def manifest_list(self, io: FileIO, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        """The manifests of a snapshot."""
        ...

    def manifest(self, io: FileIO, manifest: ManifestFile, statistics: Sequence[int] = ()) -> Entries:
        """The live entries of a manifest as columns, with these statistics."""
        ...

    def known_manifest(self, manifest: ManifestFile, statistics: Sequence[int] = ()) -> Entries | None:
        """The same where nothing has to be read for it, else None."""
        ...

    def manifest_rows(self, io: FileIO, manifest: ManifestFile) -> tuple[ManifestEntry, ...]:
        """The live entries of a manifest as the library's rows, for a commit that writes them again."""
        ...

    def kept(self) -> KeptValues | None:
        """Where values computed from the table's metadata are kept; None where they are not."""
        ...
