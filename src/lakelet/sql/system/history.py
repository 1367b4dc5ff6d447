"""`$snapshots`, `$schemas`, `$options`, `$tags`, `$branches`, `$consumers`, `$statistics`, `$aggregation_fields`.

Small tables on the history of a branch: each is read as a whole, from metadata files alone. Times have no zone and are in UTC,
except the creation time of a tag, which is in the local time of the machine that created it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta

import pyarrow as pa

from lakelet.commit.metadata.schemas import read_schema
from lakelet.commit.metadata.statistics import read_statistics
from lakelet.commit.metadata.version_ids import snapshot_ids
from lakelet.commit.retention.file_references import read_snapshots
from lakelet.format.metadata.schema_json import encode_schema
from lakelet.format.metadata.statistics_json import encode_statistics
from lakelet.model.schema import TableSchema
from lakelet.sql.system.built_rows import MILLIS, required, table_of
from lakelet.sql.system.version import Version
from lakelet.table import Table

SNAPSHOTS = pa.schema(
    [
        required("snapshot_id", pa.int64()),
        required("schema_id", pa.int64()),
        required("commit_user", pa.string()),
        required("commit_identifier", pa.int64()),
        required("commit_kind", pa.string()),
        required("commit_time", MILLIS),
        required("base_manifest_list", pa.string()),
        required("delta_manifest_list", pa.string()),
        pa.field("changelog_manifest_list", pa.string()),
        pa.field("total_record_count", pa.int64()),
        pa.field("delta_record_count", pa.int64()),
        pa.field("changelog_record_count", pa.int64()),
        pa.field("watermark", pa.int64()),
        pa.field("next_row_id", pa.int64()),
    ]
)
SCHEMAS = pa.schema(
    [
        required("schema_id", pa.int64()),
        required("fields", pa.string()),
        required("partition_keys", pa.string()),
        required("primary_keys", pa.string()),
        required("options", pa.string()),
        pa.field("comment", pa.string()),
        required("update_time", MILLIS),
    ]
)
OPTIONS = pa.schema([required("key", pa.string()), required("value", pa.string())])
TAGS = pa.schema(
    [
        required("tag_name", pa.string()),
        required("snapshot_id", pa.int64()),
        required("schema_id", pa.int64()),
        required("commit_time", MILLIS),
        pa.field("record_count", pa.int64()),
        pa.field("create_time", MILLIS),
        pa.field("time_retained", pa.string()),
    ]
)
BRANCHES = pa.schema([required("branch_name", pa.string()), required("create_time", MILLIS)])
CONSUMERS = pa.schema([required("consumer_id", pa.string()), required("next_snapshot_id", pa.int64())])
STATISTICS = pa.schema(
    [
        required("snapshot_id", pa.int64()),
        required("schema_id", pa.int64()),
        pa.field("mergedRecordCount", pa.int64()),
        pa.field("mergedRecordSize", pa.int64()),
        pa.field("colstat", pa.string()),
    ]
)
AGGREGATION_FIELDS = pa.schema(
    [
        required("field_name", pa.string()),
        required("field_type", pa.string()),
        pa.field("function", pa.string()),
        pa.field("function_options", pa.string()),
        pa.field("comment", pa.string()),
    ]
)
_FIELD_OPTION_PARTS = 3


def snapshots(table: Table, version: Version) -> pa.Table:
    """The existing snapshots, oldest first."""
    rows = [
        (
            one.id,
            one.schema_id,
            one.commit_user,
            one.commit_identifier,
            one.commit_kind.value,
            one.time_ms,
            one.base_manifest_list,
            one.delta_manifest_list,
            one.changelog_manifest_list,
            one.total_record_count,
            one.delta_record_count,
            one.changelog_record_count,
            one.watermark,
            one.next_row_id,
        )
        for one in read_snapshots(table.home, snapshot_ids(table.home))
        # A missing one has been expired concurrently.
        if one is not None
    ]
    return table_of(SNAPSHOTS, rows)


def schemas(table: Table, version: Version) -> pa.Table:
    """All schema versions, oldest first, with their parts as JSON."""
    return table_of(SCHEMAS, [_schema_row(schema) for schema in table.schemas()])


def options(table: Table, version: Version) -> pa.Table:
    """The options that are set."""
    return table_of(OPTIONS, list(table.options.items()))


def tags(table: Table, version: Version) -> pa.Table:
    """The tags by name."""
    rows = [
        (
            tag.name,
            tag.snapshot.id,
            tag.snapshot.schema_id,
            tag.snapshot.time_ms,
            tag.snapshot.total_record_count,
            tag.create_time,
            None if tag.time_retained is None else _iso_text(tag.time_retained),
        )
        for tag in sorted(table.tags.list(), key=lambda tag: tag.name)
    ]
    return table_of(TAGS, rows)


def branches(table: Table, version: Version) -> pa.Table:
    """The branches by name; the creation time is that of the first schema."""
    home = table.home
    rows = []
    for name in sorted(table.branches.list()):
        stored = home.store.list(home.paths.on_branch(name).schema_folder)
        rows.append((name, min((info.modified_ms for info in stored), default=0)))
    return table_of(BRANCHES, rows)


def consumers(table: Table, version: Version) -> pa.Table:
    """The consumers by id, and the snapshot that each needs next."""
    return table_of(CONSUMERS, [(one.id, one.next_snapshot) for one in table.consumers.list()])


def statistics(table: Table, version: Version) -> pa.Table:
    """The newest statistics, one row, or none where the table was never analyzed; those of columns as JSON."""
    home, snapshot = table.home, version.of(table).snapshot
    found = None if snapshot is None else read_statistics(home, snapshot)
    if found is None:
        return table_of(STATISTICS, [])
    stored = json.loads(encode_statistics(found, read_schema(home, found.schema_id).fields))
    row = (found.snapshot_id, found.schema_id, found.record_count, found.record_bytes, _json(stored["colStats"]))
    return table_of(STATISTICS, [row])


def aggregation_fields(table: Table, version: Version) -> pa.Table:
    """The columns, with the options `fields.<column>.…` of each."""
    schema = table.schemas()[-1]
    rows = []
    for field in schema.fields:
        found = _field_options(schema.options, field.name)
        functions, keys = f"[{', '.join(found.values())}]", f"[{', '.join(found)}]"
        rows.append((field.name, str(field.type), functions, keys, field.description))
    return table_of(AGGREGATION_FIELDS, rows)


def _field_options(given: Mapping[str, str], name: str) -> dict[str, str]:
    return {
        key: value
        for key, value in given.items()
        if len(parts := key.split(".")) >= _FIELD_OPTION_PARTS and parts[0] == "fields" and parts[1] == name
    }


def _schema_row(schema: TableSchema) -> tuple[object, ...]:
    stored = json.loads(encode_schema(schema))
    parts = (stored[part] for part in ("fields", "partitionKeys", "primaryKeys", "options"))
    return (schema.id, *map(_json, parts), schema.comment, schema.time_ms)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _iso_text(length: timedelta) -> str:
    """A duration as Java prints it, in hours, minutes and seconds: PT25H30M, PT0.5S."""
    micros = length // timedelta(microseconds=1)
    seconds, fraction = divmod(micros, 10**6)
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    digits = f".{fraction:06}".rstrip("0").rstrip(".") if fraction else ""
    text = "".join(f"{number}{unit}" for number, unit in ((hours, "H"), (minutes, "M")) if number)
    if seconds or digits or not text:
        text += f"{seconds}{digits}S"
    return f"PT{text}"
