"""The values of the four levels: frozen, shared by all callers.

A value also carries what its loader needs to recognise or use it, `evidence` or `payload`, which nothing here looks at. Counts
that nobody has computed yet are None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_OBJECT_BYTES = 400
_ITEM_BYTES = 120


@dataclass(frozen=True, slots=True)
class Column:
    """A column as reports show it."""

    field_id: int
    name: str
    type: str
    nullable: bool = True
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class TableMetadataCacheValue:
    """Level 1: where a table is, its properties, and which snapshot and schema are current."""

    table_location: str
    metadata_location: str
    properties: Mapping[str, str]
    current_snapshot_id: int | None
    last_modified_time: int
    format_version: int
    table_format: str
    is_partitioned: bool
    current_schema_id: int
    delta_manifest_list: str = ""
    schema_line: str = ""
    evidence: Any = field(default=None, compare=False, repr=False)
    evidence_bytes: int = field(default=0, compare=False, repr=False)

    @property
    def nbytes(self) -> int:
        """The estimated size in memory."""
        texts = sum(len(key) + len(text) + _ITEM_BYTES for key, text in self.properties.items())
        return _OBJECT_BYTES + len(self.table_location) + len(self.metadata_location) + texts + self.evidence_bytes


@dataclass(frozen=True, slots=True)
class SnapshotCacheValue:
    """Level 2: one snapshot with its totals."""

    snapshot_id: int
    schema_id: int
    parent_snapshot_id: int | None
    timestamp_millis: int
    manifest_list_location: str
    summary: Mapping[str, str]
    operation: str
    total_records: int | None = None
    total_data_files: int | None = None
    total_delete_files: int | None = None
    total_position_deletes: int | None = None
    total_equality_deletes: int | None = None
    delta_manifest_list: str = ""
    payload: Any = field(default=None, compare=False, repr=False)

    @property
    def nbytes(self) -> int:
        """The estimated size in memory."""
        texts = sum(len(key) + len(text) + _ITEM_BYTES for key, text in self.summary.items())
        return 3 * _OBJECT_BYTES + len(self.manifest_list_location) + texts


@dataclass(frozen=True, slots=True)
class SchemaCacheValue:
    """Level 3: one schema version."""

    schema_id: int
    columns: tuple[Column, ...]
    partition_columns: tuple[Column, ...]
    field_id_to_column: Mapping[int, Column]
    identifier_field_ids: tuple[int, ...]
    name_to_column: Mapping[str, Column]
    payload: Any = field(default=None, compare=False, repr=False)
    payload_bytes: int = field(default=0, compare=False, repr=False)

    @property
    def nbytes(self) -> int:
        """The estimated size in memory."""
        return _OBJECT_BYTES + len(self.columns) * (_OBJECT_BYTES + 2 * _ITEM_BYTES) + self.payload_bytes


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """One partition of a snapshot: its manifests, counts, and the bounds of its columns by field id."""

    partition_spec: Mapping[str, str | None]
    manifest_files: tuple[str, ...]
    record_count: int
    file_count: int
    data_file_size_bytes: int
    lower_bounds: Mapping[int, str]
    upper_bounds: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class PartitionCacheValue:
    """Level 4: the partitions of a snapshot by path."""

    snapshot_id: int
    partitions: Mapping[str, PartitionMetadata]
    delta_manifest_list: str = ""

    @property
    def nbytes(self) -> int:
        """The estimated size in memory."""
        inside = sum(
            len(path)
            + _ITEM_BYTES * (3 + len(one.partition_spec) + len(one.manifest_files))
            + _ITEM_BYTES * (len(one.lower_bounds) + len(one.upper_bounds))
            for path, one in self.partitions.items()
        )
        return _OBJECT_BYTES + inside


@dataclass(frozen=True, slots=True)
class CompleteTableMetadata:
    """The metadata of a table's current version, level by level; those not asked for, or not there, are None."""

    table_metadata: TableMetadataCacheValue
    snapshot: SnapshotCacheValue | None = None
    schema: SchemaCacheValue | None = None
    partitions: PartitionCacheValue | None = None
