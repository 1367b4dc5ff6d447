"""The cache values of native tables.

table location       the table's folder              format version     of its schema files
metadata location    the newest snapshot's file,     table format       "paimon"
                     before the first the schema's   properties         the table's options
parent               the snapshot before it          manifest list      the delta manifest list
summary              counts and properties           operation          the commit kind, in lower case
identifier fields    the primary key                 delete files       index files with deletion vectors
position deletes     rows in deletion vectors        equality deletes   0
"""

from __future__ import annotations

from lakelet.cache.values import Column, SchemaCacheValue, SnapshotCacheValue, TableMetadataCacheValue
from lakelet.commit.metadata.pointers import SchemaPointer, SnapshotPointer
from lakelet.model.snapshot import Snapshot
from lakelet.model.types import Field
from lakelet.storage.home import TableHome

TABLE_FORMAT = "paimon"
_DECODED = 4


def table_value(home: TableHome, snapshot: SnapshotPointer | None, schema: SchemaPointer) -> TableMetadataCacheValue:
    """Level 1 of a table with these pointers."""
    version, newest = schema.schema, None if snapshot is None else snapshot.snapshot
    file = home.paths.schema(version.id) if newest is None else home.paths.snapshot(newest.id)
    size = len(schema.data) + (0 if snapshot is None else len(snapshot.data))
    return TableMetadataCacheValue(
        home.where(home.paths.root),
        home.where(file),
        dict(version.options),
        None if newest is None else newest.id,
        version.time_ms if newest is None else max(newest.time_ms, version.time_ms),
        version.version,
        TABLE_FORMAT,
        bool(version.partition_keys),
        version.id,
        "" if newest is None else newest.delta_manifest_list,
        schema.line,
        evidence=(snapshot, schema),
        evidence_bytes=_DECODED * size,
    )


def snapshot_value(home: TableHome, snapshot: Snapshot) -> SnapshotCacheValue:
    """Level 2 of a snapshot, without the totals that its manifests hold."""
    summary = {str(key): str(text) for key, text in (snapshot.properties or {}).items()}
    counts = {
        "total-records": snapshot.total_record_count,
        "added-records": snapshot.delta_record_count,
        "changelog-records": snapshot.changelog_record_count,
        "watermark": snapshot.watermark,
        "commit-user": snapshot.commit_user,
        "commit-identifier": snapshot.commit_identifier,
    }
    summary.update({key: str(count) for key, count in counts.items() if count is not None})
    return SnapshotCacheValue(
        snapshot.id,
        snapshot.schema_id,
        snapshot.id - 1 if snapshot.id > 1 else None,
        snapshot.time_ms,
        home.where(home.paths.manifest(snapshot.delta_manifest_list)),
        summary,
        snapshot.commit_kind.value.lower(),
        snapshot.total_record_count,
        delta_manifest_list=snapshot.delta_manifest_list,
        payload=snapshot,
    )


def schema_value(pointer: SchemaPointer) -> SchemaCacheValue:
    """Level 3 of a schema version."""
    schema = pointer.schema
    columns = tuple(_column(field) for field in schema.fields)
    by_name = {column.name: column for column in columns}
    return SchemaCacheValue(
        schema.id,
        columns,
        tuple(by_name[name] for name in schema.partition_keys),
        {column.field_id: column for column in columns},
        tuple(by_name[name].field_id for name in schema.primary_keys),
        by_name,
        payload=pointer,
        payload_bytes=_DECODED * len(pointer.data),
    )


def _column(field: Field) -> Column:
    return Column(field.id, field.name, str(field.type), field.type.nullable, field.description)
