"""The cache values of Iceberg tables, levels 1 to 3."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.manifest import ManifestContent, ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.types import NestedField

from lakelet.cache.values import Column, SchemaCacheValue, SnapshotCacheValue, TableMetadataCacheValue
from lakelet.errors import NotFoundError
from lakelet.iceberg.library_internals import fields_by_id
from lakelet.iceberg.metadata.table_pointer import TablePointer

TABLE_FORMAT = "iceberg"
_MAIN = "main"


def table_value(pointer: TablePointer, branch: str) -> TableMetadataCacheValue:
    """Level 1 of a table on a branch; NotFoundError where it has no such branch or tag."""
    metadata = pointer.metadata
    snapshot = branch_head(metadata, branch)
    return TableMetadataCacheValue(
        metadata.location,
        pointer.location or "",
        dict(metadata.properties),
        None if snapshot is None else snapshot.snapshot_id,
        metadata.last_updated_ms,
        int(metadata.format_version),
        TABLE_FORMAT,
        bool(metadata.spec().fields),
        metadata.current_schema_id,
        "" if snapshot is None else snapshot.manifest_list,
        pointer.schema_line,
        evidence=pointer,
    )


def branch_head(metadata: TableMetadata, branch: str) -> Snapshot | None:
    """The snapshot of a branch or tag, None for a table without any."""
    if branch == _MAIN:
        return metadata.current_snapshot()
    ref = metadata.refs.get(branch)
    if ref is None:
        raise NotFoundError(
            f"table at {metadata.location} has no branch {branch!r}; there are {', '.join(sorted(metadata.refs)) or 'none'}"
        )
    return metadata.snapshot_by_id(ref.snapshot_id)


def snapshot_value(
    metadata: TableMetadata, snapshot: Snapshot, manifests: Sequence[ManifestFile] | None = None
) -> SnapshotCacheValue:
    """Level 2 of a snapshot. Files are counted by its manifest list, deletes by its summary, which need not have them. Without
    the list files are not counted yet."""
    said = {} if snapshot.summary is None else dict(snapshot.summary.additional_properties)
    listed = manifests or ()
    data = [one for one in listed if one.content == ManifestContent.DATA]
    deletes = [one for one in listed if one.content == ManifestContent.DELETES]
    rows = [_sum(one.added_rows_count, one.existing_rows_count) for one in data]
    counted = None if manifests is None or None in rows else sum(one for one in rows if one is not None)
    return SnapshotCacheValue(
        snapshot.snapshot_id,
        metadata.current_schema_id if snapshot.schema_id is None else snapshot.schema_id,
        snapshot.parent_snapshot_id,
        snapshot.timestamp_ms,
        snapshot.manifest_list,
        said,
        "" if snapshot.summary is None else snapshot.summary.operation.value,
        counted if counted is not None else _number(said.get("total-records")),
        None if manifests is None else _files(data, said.get("total-data-files")),
        None if manifests is None else _files(deletes, said.get("total-delete-files")),
        _number(said.get("total-position-deletes")),
        _number(said.get("total-equality-deletes")),
        snapshot.manifest_list,
        payload=snapshot,
    )


def schema_value(metadata: TableMetadata, schema: Schema) -> SchemaCacheValue:
    """Level 3 of a schema. Partition columns are those that the current spec transforms."""
    every = fields_by_id(schema)
    columns = tuple(_column(one) for one in schema.fields)
    sources = dict.fromkeys(one.source_id for one in metadata.spec().fields)
    return SchemaCacheValue(
        schema.schema_id,
        columns,
        tuple(_column(every[number]) for number in sources if number in every),
        {column.field_id: column for column in columns},
        tuple(schema.identifier_field_ids),
        {column.name: column for column in columns},
        payload=schema,
    )


def _column(field: NestedField) -> Column:
    return Column(field.field_id, field.name, str(field.field_type), not field.required, field.doc)


def _files(manifests: Sequence[ManifestFile], said: str | None) -> int:
    counts = [_sum(one.added_files_count, one.existing_files_count) for one in manifests]
    if None in counts:
        return _number(said) or 0
    return sum(one for one in counts if one is not None)


def _sum(*counts: int | None) -> int | None:
    return None if None in counts else sum(one for one in counts if one is not None)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
