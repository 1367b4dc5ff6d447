"""`$manifests` and `$table_indexes`: the metadata files of a version."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakelet.commit.index_changes import read_index_entries
from lakelet.commit.metadata.manifests import read_manifest_list, snapshot_manifests
from lakelet.model.data_file import DeletionVectorRange
from lakelet.sql.system.built_rows import required, table_of
from lakelet.sql.system.live_files import texts_of_partitions
from lakelet.sql.system.version import Version
from lakelet.table import Table

MANIFESTS = pa.schema(
    [
        required("file_name", pa.string()),
        required("file_size", pa.int64()),
        required("num_added_files", pa.int64()),
        required("num_deleted_files", pa.int64()),
        required("schema_id", pa.int64()),
        pa.field("min_partition_stats", pa.string()),
        pa.field("max_partition_stats", pa.string()),
        pa.field("min_row_id", pa.int64()),
        pa.field("max_row_id", pa.int64()),
    ]
)
VECTOR_RANGE = pa.struct(
    [
        required("f0", pa.string()),
        required("f1", pa.int32()),
        required("f2", pa.int32()),
        pa.field("_CARDINALITY", pa.int64()),
    ]
)
TABLE_INDEXES = pa.schema(
    [
        pa.field("partition", pa.string()),
        required("bucket", pa.int32()),
        required("index_type", pa.string()),
        required("file_name", pa.string()),
        required("file_size", pa.int64()),
        required("row_count", pa.int64()),
        pa.field("dv_ranges", pa.list_(VECTOR_RANGE)),
    ]
)


def manifests(table: Table, version: Version) -> pa.Table:
    """The manifests of data files, oldest first, then those of changelog files."""
    shown = version.of(table)
    if shown.snapshot is None:
        return table_of(MANIFESTS, [])
    found = snapshot_manifests(shown.home, shown.snapshot)
    if shown.snapshot.changelog_manifest_list is not None:
        found += read_manifest_list(shown.home, shown.snapshot.changelog_manifest_list)
    bounds = [
        texts_of_partitions(pa.array(rows, pa.binary()), shown.schema).to_pylist()
        for rows in (
            [manifest.partition_stats.min_values for manifest in found],
            [manifest.partition_stats.max_values for manifest in found],
        )
    ]
    rows = [
        (
            manifest.name,
            manifest.size,
            manifest.added_files,
            manifest.deleted_files,
            manifest.schema_id,
            low,
            high,
            manifest.min_row_id,
            manifest.max_row_id,
        )
        for manifest, low, high in zip(found, *bounds, strict=True)
    ]
    return table_of(MANIFESTS, rows)


def table_indexes(table: Table, version: Version) -> pa.Table:
    """The index files: hash indexes, and deletion vectors with the range of each in the file."""
    shown = version.of(table)
    entries = [] if shown.snapshot is None else read_index_entries(shown.home, shown.snapshot)
    partitions = texts_of_partitions(pa.array([entry.partition for entry in entries], pa.binary()), shown.schema)
    rows = [
        (
            partition,
            entry.bucket,
            entry.file.index_type,
            entry.file.name,
            entry.file.size,
            entry.file.row_count,
            _ranges(entry.file.deletion_vectors),
        )
        for entry, partition in zip(entries, partitions.to_pylist(), strict=True)
    ]
    return table_of(TABLE_INDEXES, rows)


def _ranges(vectors: Sequence[DeletionVectorRange] | None) -> list[dict[str, object]] | None:
    if vectors is None:
        return None
    return [
        {"f0": one.data_file, "f1": one.offset, "f2": one.length, "_CARDINALITY": one.cardinality} for one in vectors
    ]
