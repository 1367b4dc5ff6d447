"""The partitions of a table that have files, as paths show them."""

from __future__ import annotations

from pyiceberg.manifest import ManifestContent
from pyiceberg.typedef import Record

from lakelet.iceberg.commit.live_files import LiveFiles
from lakelet.iceberg.library_errors import lakelet_errors
from lakelet.iceberg.table import IcebergTable


def partition_names(table: IcebergTable, branch: str | None = None) -> list[str]:
    """The partitions that have files in the newest snapshot of a branch, those of older specs too."""
    metadata = table.metadata
    number = table.snapshot_id(branch)
    snapshot = None if number is None else metadata.snapshot_by_id(number)
    live = LiveFiles(table.library.io)
    found: set[tuple[int, Record]] = set()
    with lakelet_errors(f"table {table.full_name}"):
        for manifest in live.manifests(snapshot):
            if manifest.content == ManifestContent.DATA:
                found |= {(manifest.partition_spec_id, one.data_file.partition) for one in live.entries(manifest)}
        specs, schema = metadata.specs(), metadata.schema()
        return sorted({specs[spec].partition_to_path(values, schema) for spec, values in found})
