"""The output of `Table.describe` and `Table.files`: a table's schema, newest version and live files."""

from __future__ import annotations

from lakelet.commit.metadata.manifests import live_entries, snapshot_manifests
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.format.manifest.manifest_columns import columns_to_entries
from lakelet.format.partition_folders import PartitionFolders
from lakelet.model.data_file import DataFile
from lakelet.model.default_expressions import default_of
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome
from lakelet.table.read.table_scan import TableScan


def described(name: str, home: TableHome) -> dict[str, object]:
    """A table's name, columns, keys, options and newest snapshot as plain values."""
    schema, snapshot = latest_schema(home), latest_snapshot(home)
    return {
        "name": name,
        "location": home.where(home.paths.root),
        "comment": schema.comment,
        "columns": [
            {
                "name": field.name,
                "type": str(field.type),
                "default": default_of(field, schema),
                "comment": field.description,
            }
            for field in schema.fields
        ],
        "partitioned_by": list(schema.partition_keys),
        "primary_key": list(schema.primary_keys),
        "options": dict(schema.options),
        "schema_id": schema.id,
        "snapshot_id": snapshot.id if snapshot else None,
        "record_count": _record_count(home, schema, snapshot),
    }


def _record_count(home: TableHome, schema: TableSchema, snapshot: Snapshot | None) -> int | None:
    """The rows of the newest snapshot; in a primary-key table those of its files, older ones of a key among them."""
    if snapshot is None:
        return 0
    if schema.primary_keys or snapshot.index_manifest is None:
        return snapshot.total_record_count
    # Snapshots count rows that are marked as deleted.
    return TableScan(home, schema, snapshot, schema.names).count()


def live_data_files(scan: TableScan) -> list[tuple[str, DataFile]]:
    """The live data files of a scan's snapshot with their paths."""
    if scan.snapshot is None:
        return []
    folders = PartitionFolders(scan.home.paths, scan.schema)
    entries = live_entries(scan.home, snapshot_manifests(scan.home, scan.snapshot))
    return [
        (f"{folders.bucket_folder(entry.partition, entry.bucket)}/{entry.file.name}", entry.file)
        for entry in columns_to_entries(entries)
    ]
