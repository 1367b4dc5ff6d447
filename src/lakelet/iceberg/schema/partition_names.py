"""List the partitions of a table that have files, spelled as in paths."""

from __future__ import annotations

from pyiceberg.manifest import ManifestContent
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record

from lakelet.iceberg.catalog.library_errors import lakelet_errors
from lakelet.iceberg.commit.snapshot.live_files import LiveFiles
from lakelet.iceberg.table import IcebergTable
from lakelet.iceberg.transforms.transform import human_string, partition_path


def partition_names(table: IcebergTable, branch: str | None = None) -> list[str]:
    """The partitions that have files in the newest snapshot of a branch, those of older specs too."""
    metadata = table.metadata
    number = table.snapshot_id(branch)
    snapshot = None if number is None else metadata.snapshot_by_id(number)
    live = LiveFiles(table.library.io, table.source)
    found: set[tuple[int, Record]] = set()
    with lakelet_errors(f"table {table.full_name}"):
        for manifest in live.manifests(snapshot):
            if manifest.content == ManifestContent.DATA:
                found |= {(manifest.partition_spec_id, one.data_file.partition) for one in live.entries(manifest)}
        specs, schema = metadata.specs(), metadata.schema()
        return sorted({_path(specs[spec], schema, values) for spec, values in found})


def _path(spec: PartitionSpec, schema: Schema, values: Record) -> str:
    kinds = [one.field_type for one in spec.partition_type(schema).fields]
    texts = [human_string(one.transform, kinds[at], values[at]) for at, one in enumerate(spec.fields)]
    return partition_path(spec, texts)
