"""Write the manifests and the manifest list of a snapshot for one commit attempt; nothing is visible before the commit.

metadata/<attempt>-m0.avro …              added files: one manifest for each spec, with that spec's partition values
                                          manifests with removed files: the others are EXISTING, keep sequence numbers and
                                          snapshot, removed ones are DELETED
                                          merged small manifests
metadata/snap-<snapshot>-0-<attempt>.avro the list of all manifests, inherited ones unchanged

Every path is recorded before it is written to, so that `remove` leaves nothing of an attempt behind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, cast

from pyiceberg.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest_list,
)
from pyiceberg.table import TableProperties
from pyiceberg.table.snapshots import Snapshot

from lakelet.errors import InvalidError
from lakelet.iceberg.commit.change import Change
from lakelet.iceberg.commit.partition_keys import partition_key
from lakelet.iceberg.commit.removal import remove_paths
from lakelet.iceberg.commit.snapshot.live_files import LiveFiles
from lakelet.iceberg.commit.snapshot.manifest_merge import ManifestSize, merge_groups
from lakelet.iceberg.commit.snapshot.manifest_writer import rolling_manifests
from lakelet.iceberg.commit.snapshot.summary import summary_of
from lakelet.iceberg.commit.table_settings import flag_property, number_property
from lakelet.iceberg.table import IcebergTable
from lakelet.iceberg.trust.table_classes import locations

_MERGE_BY_DEFAULT = True


class SnapshotFiles:
    """The manifests and the manifest list of one attempt."""

    def __init__(self, table: IcebergTable, live: LiveFiles, *, attempt: str, snapshot_id: int) -> None:
        if table.metadata.format_version > 2:
            raise InvalidError(
                f"table {table.full_name} has format version {table.metadata.format_version}: only versions 1 and 2 are written"
            )
        self.snapshot_id = snapshot_id
        self._table = table
        self._metadata = table.metadata
        self._io = table.library.io
        self._locations = locations(
            f"table {table.full_name}", table.location, table.metadata.properties, table.library.io.properties
        )
        self._live = live
        self._attempt = attempt
        self._paths: list[str] = []
        properties = self._metadata.properties
        self._target_bytes = number_property(
            properties,
            TableProperties.MANIFEST_TARGET_SIZE_BYTES,
            TableProperties.MANIFEST_TARGET_SIZE_BYTES_DEFAULT,
            least=1,
        )

    def write(self, change: Change, parent: Snapshot | None, properties: dict[str, str], time_ms: int) -> Snapshot:
        """Writes all of them and returns the uncommitted snapshot."""
        manifests = [
            *self._added(change.added, ManifestContent.DATA),
            *self._added(change.added_deletes, ManifestContent.DELETES),
            *self._kept(change, parent),
        ]
        version = self._metadata.format_version
        number = self._metadata.next_sequence_number()
        path = self._path(f"snap-{self.snapshot_id}-0-{self._attempt}.avro")
        with write_manifest_list(
            version,
            self._io.new_output(path),
            self.snapshot_id,
            parent.snapshot_id if parent is not None else None,
            number,
            cast(Any, self._compression),
        ) as writer:
            writer.add_manifests(manifests)
        return Snapshot.model_validate(
            {
                "snapshot-id": self.snapshot_id,
                "parent-snapshot-id": parent.snapshot_id if parent is not None else None,
                "sequence-number": number,
                "timestamp-ms": max(time_ms, self._metadata.last_updated_ms),
                "manifest-list": path,
                "summary": summary_of(self._metadata, parent, change, properties),
                "schema-id": self._metadata.current_schema_id,
            }
        )

    def remove(self) -> None:
        """Removes them, for the snapshot was not committed."""
        remove_paths(self._io, self._paths)
        self._paths = []

    def _added(self, files: Sequence[DataFile], content: ManifestContent) -> list[ManifestFile]:
        by_spec: dict[int, list[ManifestEntry]] = defaultdict(list)
        for file in files:
            by_spec[file.spec_id].append(
                ManifestEntry.from_args(
                    status=ManifestEntryStatus.ADDED,
                    snapshot_id=self.snapshot_id,
                    sequence_number=None,
                    file_sequence_number=None,
                    data_file=file,
                )
            )
        return [made for spec_id in sorted(by_spec) for made in self._manifests(spec_id, content, by_spec[spec_id])]

    def _kept(self, change: Change, parent: Snapshot | None) -> list[ManifestFile]:
        gone: dict[str, set[str]] = defaultdict(set)
        for file in (*change.removed, *change.removed_deletes):
            gone[file.manifest.manifest_path].add(file.path)
        moved = set(change.rewritten_manifests)
        made: list[ManifestFile] = []
        small: list[ManifestFile] = []
        collected: list[ManifestFile] = []
        for manifest in self._live.manifests(parent):
            path = manifest.manifest_path
            if path in gone:
                made += self._without(manifest, gone[path])
            elif path in moved:
                collected.append(manifest)
            elif not (manifest.has_added_files() or manifest.has_existing_files()):
                # It only lists what earlier snapshots removed.
                continue
            elif manifest.content == ManifestContent.DATA:
                small.append(manifest)
            else:
                made.append(manifest)
        return [*self._clustered(collected), *self._merged(small), *made]

    def _without(self, manifest: ManifestFile, gone: set[str]) -> list[ManifestFile]:
        entries = [
            self._again(
                entry,
                ManifestEntryStatus.DELETED if entry.data_file.file_path in gone else ManifestEntryStatus.EXISTING,
            )
            for entry in self._live.entries(manifest)
        ]
        return self._manifests(manifest.partition_spec_id, manifest.content, entries)

    def _merged(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        properties = self._metadata.properties
        if not flag_property(properties, TableProperties.MANIFEST_MERGE_ENABLED, _MERGE_BY_DEFAULT):
            return manifests
        sizes = [
            ManifestSize(
                manifest.partition_spec_id,
                manifest.manifest_length,
                (manifest.added_files_count or 0) + (manifest.existing_files_count or 0),
            )
            for manifest in manifests
        ]
        fewest = number_property(
            properties,
            TableProperties.MANIFEST_MIN_MERGE_COUNT,
            TableProperties.MANIFEST_MIN_MERGE_COUNT_DEFAULT,
            least=1,
        )
        made: list[ManifestFile] = []
        merged: set[int] = set()
        for group in merge_groups(sizes, fewest, self._target_bytes):
            made += self._together([manifests[place] for place in group])
            merged.update(group)
        return made + [manifest for place, manifest in enumerate(manifests) if place not in merged]

    def _clustered(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        """Rewrites the files of these manifests into new ones, clustered by partition."""
        groups: dict[tuple[int, ManifestContent], list[ManifestFile]] = defaultdict(list)
        for manifest in manifests:
            groups[manifest.partition_spec_id, manifest.content].append(manifest)
        return [made for group in groups.values() for made in self._together(group)]

    def _together(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        entries = [
            self._again(entry, ManifestEntryStatus.EXISTING)
            for manifest in manifests
            for entry in self._live.entries(manifest)
        ]
        entries.sort(key=lambda entry: repr(partition_key(entry.data_file.partition)))
        return self._manifests(manifests[0].partition_spec_id, manifests[0].content, entries)

    def _again(self, entry: ManifestEntry, status: ManifestEntryStatus) -> ManifestEntry:
        return ManifestEntry.from_args(
            status=status,
            snapshot_id=self.snapshot_id if status == ManifestEntryStatus.DELETED else entry.snapshot_id,
            sequence_number=entry.sequence_number,
            file_sequence_number=entry.file_sequence_number,
            data_file=entry.data_file,
        )

    def _manifests(
        self, spec_id: int, content: ManifestContent, entries: Iterable[ManifestEntry]
    ) -> list[ManifestFile]:
        return rolling_manifests(
            self._metadata,
            spec_id,
            entries,
            open_output=lambda: self._io.new_output(self._path(f"{self._attempt}-m{len(self._paths)}.avro")),
            snapshot_id=self.snapshot_id,
            compression=self._compression,
            target_bytes=self._target_bytes,
            content=content,
        )

    def _path(self, name: str) -> str:
        path = self._locations.new_metadata_location(name)
        self._paths.append(path)
        return path

    @property
    def _compression(self) -> str:
        return self._metadata.properties.get(
            TableProperties.WRITE_AVRO_COMPRESSION, TableProperties.WRITE_AVRO_COMPRESSION_DEFAULT
        )
