"""Manifest entries as Arrow columns, the form in which plans and commits handle them.

A manifest of 10,000 files is a table of 10,000 rows, not 10,000 objects: partitions are pruned, statistics
compared and removed files subtracted on columns, and only the remaining files become `DataFile`s.
The column names are those of the Avro fields; the members of `_FILE` are columns beside the entry's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from lakelet.model.data_file import DataFile, Stats
from lakelet.model.manifest import EntryKind, ManifestEntry, ManifestFile

EMPTY_ROW = bytes(12)
NO_STATS = Stats(EMPTY_ROW, EMPTY_ROW, ())

STATS_TYPE = pa.struct(
    [
        pa.field("_MIN_VALUES", pa.binary()),
        pa.field("_MAX_VALUES", pa.binary()),
        pa.field("_NULL_COUNTS", pa.list_(pa.int64())),
    ]
)
OWN_COLUMNS = (
    ("_KIND", pa.int32()),
    ("_PARTITION", pa.binary()),
    ("_BUCKET", pa.int32()),
    ("_TOTAL_BUCKETS", pa.int32()),
)
FILE_COLUMNS = (
    ("_FILE_NAME", pa.string()),
    ("_FILE_SIZE", pa.int64()),
    ("_ROW_COUNT", pa.int64()),
    ("_MIN_KEY", pa.binary()),
    ("_MAX_KEY", pa.binary()),
    ("_KEY_STATS", STATS_TYPE),
    ("_VALUE_STATS", STATS_TYPE),
    ("_MIN_SEQUENCE_NUMBER", pa.int64()),
    ("_MAX_SEQUENCE_NUMBER", pa.int64()),
    ("_SCHEMA_ID", pa.int64()),
    ("_LEVEL", pa.int32()),
    ("_EXTRA_FILES", pa.list_(pa.string())),
    ("_CREATION_TIME", pa.int64()),
    ("_DELETE_ROW_COUNT", pa.int64()),
    ("_EMBEDDED_FILE_INDEX", pa.binary()),
    ("_FILE_SOURCE", pa.int32()),
    ("_VALUE_STATS_COLS", pa.list_(pa.string())),
    ("_EXTERNAL_PATH", pa.string()),
    ("_FIRST_ROW_ID", pa.int64()),
    ("_WRITE_COLS", pa.list_(pa.string())),
)
ENTRY_SCHEMA = pa.schema([*OWN_COLUMNS, *FILE_COLUMNS])
IDENTITY_COLUMNS = ("_KIND", "_PARTITION", "_BUCKET", "_LEVEL", "_FILE_NAME")
READ_COLUMNS = (
    *IDENTITY_COLUMNS,
    "_TOTAL_BUCKETS",
    "_FILE_SIZE",
    "_ROW_COUNT",
    "_SCHEMA_ID",
    "_EXTRA_FILES",
    "_DELETE_ROW_COUNT",
    "_FILE_SOURCE",
    "_EXTERNAL_PATH",
    "_FIRST_ROW_ID",
    "_WRITE_COLS",
    "_CREATION_TIME",
    "_MIN_SEQUENCE_NUMBER",
    "_MAX_SEQUENCE_NUMBER",
)
KEY_COLUMNS = ("_MIN_KEY", "_MAX_KEY")
STATS_COLUMNS = ("_VALUE_STATS", "_VALUE_STATS_COLS")
KEY_STATS_COLUMN = "_KEY_STATS"

LIST_SCHEMA = pa.schema(
    [
        ("_FILE_NAME", pa.string()),
        ("_FILE_SIZE", pa.int64()),
        ("_NUM_ADDED_FILES", pa.int64()),
        ("_NUM_DELETED_FILES", pa.int64()),
        ("_PARTITION_STATS", STATS_TYPE),
        ("_SCHEMA_ID", pa.int64()),
        ("_MIN_BUCKET", pa.int32()),
        ("_MAX_BUCKET", pa.int32()),
        ("_MIN_LEVEL", pa.int32()),
        ("_MAX_LEVEL", pa.int32()),
        ("_MIN_ROW_ID", pa.int64()),
        ("_MAX_ROW_ID", pa.int64()),
    ]
)

_ENTRY_TYPE = pa.struct(list(ENTRY_SCHEMA))


def entries_to_columns(entries: Sequence[ManifestEntry]) -> pa.Table:
    """The entries as a table of `ENTRY_SCHEMA`."""
    if not entries:
        return _no_entries()
    # One conversion for all columns: a conversion for each takes twice as long for the few entries of a usual commit.
    rows = [dict(zip(ENTRY_SCHEMA.names, _entry_values(entry), strict=True)) for entry in entries]
    return pa.Table.from_arrays(pa.array(rows, _ENTRY_TYPE).flatten(), schema=ENTRY_SCHEMA)


@cache
def _no_entries() -> pa.Table:
    # Not while modules are loaded: making an array loads pandas where it is installed.
    return ENTRY_SCHEMA.empty_table()


def columns_to_entries(table: pa.Table) -> list[ManifestEntry]:
    """The inverse; columns that were not decoded become empty values."""
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    absent = [None] * table.num_rows
    own = [columns.get(name, absent) for name, _ in OWN_COLUMNS]
    files = columns_to_files(table, columns)
    return [
        ManifestEntry(EntryKind(kind), partition, bucket, total, file)
        for kind, partition, bucket, total, file in zip(*own, files, strict=True)
    ]


def columns_to_files(table: pa.Table, columns: dict[str, list[Any]] | None = None) -> list[DataFile]:
    """The data files of a table of entries."""
    if columns is None:
        columns = {name: table.column(name).to_pylist() for name, _ in FILE_COLUMNS if name in table.column_names}
    absent = [None] * table.num_rows
    ordered = [columns.get(name, absent) for name, _ in FILE_COLUMNS]
    return [_data_file(*values) for values in zip(*ordered, strict=True)]


def manifests_to_columns(manifests: Sequence[ManifestFile]) -> pa.Table:
    """Manifests as a table of `LIST_SCHEMA`."""
    rows = [
        (
            m.name,
            m.size,
            m.added_files,
            m.deleted_files,
            _stats_value(m.partition_stats),
            m.schema_id,
            m.min_bucket,
            m.max_bucket,
            m.min_level,
            m.max_level,
            m.min_row_id,
            m.max_row_id,
        )
        for m in manifests
    ]
    arrays = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(LIST_SCHEMA)]
    return pa.Table.from_arrays(arrays, schema=LIST_SCHEMA)


def columns_to_manifests(table: pa.Table) -> list[ManifestFile]:
    """The inverse of `manifests_to_columns`."""
    columns = [table.column(field.name).to_pylist() for field in LIST_SCHEMA]
    stats = LIST_SCHEMA.get_field_index("_PARTITION_STATS")
    columns[stats] = [_stats(value) for value in columns[stats]]
    rows: Iterator[tuple[Any, ...]] = zip(*columns, strict=True)
    return [ManifestFile(*row) for row in rows]


def conform(table: pa.Table, schema: pa.Schema, *, only: Sequence[str] | None = None) -> pa.Table:
    """The table with exactly the columns of `schema` (or `only` those): absent optional ones are NULL, others dropped."""
    fields = [field for field in schema if only is None or field.name in only]
    arrays = []
    for field in fields:
        if field.name in table.column_names:
            column = table.column(field.name)
            arrays.append(column if column.type == field.type else column.cast(field.type))
        else:
            arrays.append(pa.chunked_array([pa.nulls(table.num_rows, field.type)]))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _stats_value(stats: Stats) -> dict[str, Any]:
    counts = None if stats.null_counts is None else list(stats.null_counts)
    return {"_MIN_VALUES": stats.min_values, "_MAX_VALUES": stats.max_values, "_NULL_COUNTS": counts}


def _stats(value: dict[str, Any] | None) -> Stats:
    if value is None:
        return NO_STATS
    counts = value["_NULL_COUNTS"]
    return Stats(value["_MIN_VALUES"], value["_MAX_VALUES"], None if counts is None else tuple(counts))


def _optional_tuple(value: list[str] | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(value)


def _entry_values(entry: ManifestEntry) -> tuple[Any, ...]:
    file = entry.file
    return (
        int(entry.kind),
        entry.partition,
        entry.bucket,
        entry.total_buckets,
        file.name,
        file.size,
        file.row_count,
        file.min_key,
        file.max_key,
        _stats_value(file.key_stats),
        _stats_value(file.value_stats),
        file.min_sequence,
        file.max_sequence,
        file.schema_id,
        file.level,
        list(file.extra_files),
        file.creation_ms,
        file.delete_row_count,
        file.embedded_index,
        file.source,
        file.value_stats_columns,
        file.external_path,
        file.first_row_id,
        file.write_columns,
    )


def _data_file(
    name: str,
    size: int,
    row_count: int,
    min_key: bytes | None,
    max_key: bytes | None,
    key_stats: dict[str, Any] | None,
    value_stats: dict[str, Any] | None,
    min_sequence: int | None,
    max_sequence: int | None,
    schema_id: int,
    level: int,
    extra_files: list[str] | None,
    creation_ms: int | None,
    delete_row_count: int | None,
    embedded_index: bytes | None,
    source: int | None,
    value_stats_columns: list[str] | None,
    external_path: str | None,
    first_row_id: int | None,
    write_columns: list[str] | None,
) -> DataFile:
    return DataFile(
        name,
        size,
        row_count,
        min_key or EMPTY_ROW,
        max_key or EMPTY_ROW,
        _stats(key_stats),
        _stats(value_stats),
        min_sequence or 0,
        max_sequence or 0,
        schema_id,
        level,
        tuple(extra_files or ()),
        creation_ms,
        delete_row_count,
        embedded_index,
        source,
        _optional_tuple(value_stats_columns),
        external_path,
        first_row_id,
        _optional_tuple(write_columns),
    )
