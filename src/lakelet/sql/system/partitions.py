"""`$partitions` and `$buckets`: totals of the live files of a version.

Rows are those in files, before any merge. Times are of the newest file. Only catalog services know who created or updated a
partition, and its options: these columns are NULL here; partitions are never marked as done here either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.commit.index_changes import DELETION_VECTORS, read_index_entries
from lakelet.format.rows.binary_row_columns import decode_rows
from lakelet.model.schema import TableSchema
from lakelet.options import PARTITION_DEFAULT_NAME, TableOptions
from lakelet.sql.query.relation import Rows
from lakelet.sql.system.built_rows import MILLIS, built_rows, required, table_from
from lakelet.sql.system.java_text import value_texts
from lakelet.sql.system.live_files import texts_of_partitions, version_entries
from lakelet.sql.system.version import TableVersion, Version
from lakelet.table import Table

PARTITIONS = pa.schema(
    [
        pa.field("partition", pa.string()),
        required("record_count", pa.int64()),
        required("file_size_in_bytes", pa.int64()),
        required("file_count", pa.int64()),
        pa.field("last_update_time", MILLIS),
        pa.field("created_at", MILLIS),
        pa.field("created_by", pa.string()),
        pa.field("updated_by", pa.string()),
        pa.field("options", pa.string()),
        required("total_buckets", pa.int32()),
        required("done", pa.bool_()),
        pa.field("deleted_record_count", pa.int64()),
    ]
)
BUCKETS = pa.schema(
    [
        pa.field("partition", pa.string()),
        required("bucket", pa.int32()),
        required("record_count", pa.int64()),
        required("file_size_in_bytes", pa.int64()),
        required("file_count", pa.int64()),
        pa.field("last_update_time", MILLIS),
    ]
)
_COUNTED = ("_ROW_COUNT", "_FILE_SIZE", "_CREATION_TIME", "_TOTAL_BUCKETS")


def partitions(table: Table, version: Version) -> Rows:
    """The partitions by name."""
    shown = version.of(table)

    def build(names: Sequence[str]) -> pa.Table:
        sums = partition_sums(shown)
        made = _totals(sums)
        nothing: Mapping[str, pa.DataType] = {
            name: PARTITIONS.field(name).type for name in ("created_at", "created_by", "updated_by", "options")
        }
        return table_from(
            {
                **made,
                **{name: _nulls(sums.num_rows, data_type) for name, data_type in nothing.items()},
                "partition": lambda: sums.column("partition"),
                "total_buckets": lambda: sums.column("_TOTAL_BUCKETS_max"),
                "done": lambda: pa.repeat(pa.scalar(False), sums.num_rows),
                "deleted_record_count": lambda: _deleted(shown, sums),
            },
            names,
        )

    return built_rows(PARTITIONS, build)


def buckets(table: Table, version: Version) -> Rows:
    """The buckets by partition and number, postponed ones included."""
    shown = version.of(table)

    def build(names: Sequence[str]) -> pa.Table:
        entries = version_entries(shown, _COUNTED, only_placed=False)
        sums = _summed(entries, ["_PARTITION", "_BUCKET"])
        texts = texts_of_partitions(sums.column("_PARTITION").combine_chunks(), shown.schema)
        sums = sums.append_column("partition", texts).sort_by([("partition", "ascending"), ("_BUCKET", "ascending")])
        made = _totals(sums)
        made["partition"] = lambda: sums.column("partition")
        made["bucket"] = lambda: sums.column("_BUCKET")
        return table_from(made, names)

    return built_rows(BUCKETS, build)


def partition_sums(version: TableVersion) -> pa.Table:
    """The totals of the files of each partition, with its name as `partition`, sorted by name."""
    sums = _summed(version_entries(version, _COUNTED, only_placed=True), ["_PARTITION"])
    names = _names(sums.column("_PARTITION").combine_chunks(), version.schema)
    return sums.append_column("partition", names).sort_by("partition")


def _summed(entries: pa.Table, keys: Sequence[str]) -> pa.Table:
    sums = [("_ROW_COUNT", "sum"), ("_FILE_SIZE", "sum"), ("_FILE_NAME", "count")]
    return entries.group_by(list(keys)).aggregate([*sums, ("_CREATION_TIME", "max"), ("_TOTAL_BUCKETS", "max")])


def _totals(sums: pa.Table) -> dict[str, Callable[[], pa.ChunkedArray]]:
    return {
        "record_count": lambda: sums.column("_ROW_COUNT_sum"),
        "file_size_in_bytes": lambda: sums.column("_FILE_SIZE_sum"),
        "file_count": lambda: sums.column("_FILE_NAME_count"),
        "last_update_time": lambda: sums.column("_CREATION_TIME_max").cast(MILLIS),
    }


def _names(rows: pa.Array, schema: TableSchema) -> pa.Array:
    """`column=value/column=value` of partitions, values as SQL casts them to text."""
    if not schema.partition_keys:
        return pa.repeat(pa.scalar(""), len(rows))
    default = TableOptions(schema.options).get(PARTITION_DEFAULT_NAME)
    columns = zip(schema.partition_keys, schema.partition_types, decode_rows(rows, schema.partition_types), strict=True)
    texts = [
        pc.binary_join_element_wise(f"{name}=", pc.fill_null(value_texts(values, data_type, cast=True), default), "")
        for name, data_type, values in columns
    ]
    return pc.binary_join_element_wise(*texts, "/")


def _deleted(version: TableVersion, sums: pa.Table) -> pa.Array:
    """The rows deleted by deletion vectors in each partition; NULL where a vector has no cardinality."""
    counts: dict[bytes, list[int | None]] = {}
    for entry in read_index_entries(version.home, version.snapshot) if version.snapshot is not None else []:
        if entry.file.index_type == DELETION_VECTORS:
            vectors = entry.file.deletion_vectors or ()
            counts.setdefault(entry.partition, []).extend(vector.cardinality for vector in vectors)
    found = (counts.get(partition, []) for partition in sums.column("_PARTITION").to_pylist())
    return pa.array([None if None in known else sum(filter(None, known)) for known in found], pa.int64())


def _nulls(count: int, data_type: pa.DataType) -> Callable[[], pa.Array]:
    return lambda: pa.nulls(count, data_type)
