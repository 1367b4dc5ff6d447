"""Iceberg metadata without a cache: read from catalog and files at every call.

No other module of this package opens metadata files, except for the removal of orphan files, and pyiceberg's own
system tables.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.catalog import Catalog
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestEntry, ManifestFile, read_manifest_list
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import Identifier

from lakelet.cache.trace import CacheTrace
from lakelet.iceberg.metadata.manifests import Entries, read_entries
from lakelet.iceberg.metadata.source import IcebergMetadataSource
from lakelet.iceberg.metadata.table_pointer import load_table
from lakelet.storage.metadata_source import KeptValues


class UncachedIcebergMetadata:
    """The source of tables without a cache."""

    def for_queries(self) -> IcebergMetadataSource:
        """The same, with the manifest lists that the library caches anyway."""
        return _QUERIES

    def from_store(self) -> IcebergMetadataSource:
        """The same."""
        return self

    def of_table(self, catalog: str, name: Identifier) -> IcebergMetadataSource:
        """The same for every table."""
        return self

    def traced(self, trace: CacheTrace) -> IcebergMetadataSource:
        """The same: it takes nothing from a cache."""
        return self

    def table(self, catalog: Catalog, name: str | Identifier) -> Table:
        """A table as its catalog has it now."""
        return load_table(catalog, name)

    def metadata(self, io: FileIO, location: str) -> TableMetadata:
        """The parsed metadata file."""
        return FromInputFile.table_metadata(io.new_input(location))

    def manifest_list(self, io: FileIO, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        """The manifests of a snapshot."""
        return tuple(read_manifest_list(io.new_input(snapshot.manifest_list)))

    def manifest(self, io: FileIO, manifest: ManifestFile, statistics: Sequence[int] = ()) -> Entries:
        """The live entries of a manifest as columns, with these statistics."""
        return read_entries(io, manifest, statistics)

    def known_manifest(self, manifest: ManifestFile, statistics: Sequence[int] = ()) -> Entries | None:
        """None: nothing is kept."""
        return None

    def manifest_rows(self, io: FileIO, manifest: ManifestFile) -> tuple[ManifestEntry, ...]:
        """The live entries of a manifest as the library's rows.

        Partition values that are doubles are read once more: pyiceberg's compiled decoder takes them for floats of half the
        size, and gives another number.
        """
        found = tuple(manifest.fetch_manifest_entry(io, discard_deleted=True))
        partitions = [entry.data_file.partition for entry in found]
        width = range(len(partitions[0])) if partitions else range(0)
        places = [place for place in width if any(isinstance(values[place], float) for values in partitions)]
        if places:
            for values, right in zip(partitions, self.manifest(io, manifest).partitions(), strict=True):
                for place in places:
                    values[place] = right[place]
        return found

    def kept(self) -> KeptValues | None:
        """None: nothing is kept."""
        return None


class _LibraryLists(UncachedIcebergMetadata):
    """Manifest lists through pyiceberg's own cache."""

    def manifest_list(self, io: FileIO, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        return tuple(snapshot.manifests(io))


UNCACHED = UncachedIcebergMetadata()
"""The source that asks the catalog and reads the files at every call."""
_QUERIES = _LibraryLists()
