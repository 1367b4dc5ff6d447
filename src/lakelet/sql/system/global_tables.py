"""System tables about the whole lake, in the database `sys`.

They open every table when they are read, and read its manifests only for columns that sum over files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.catalog.names import SYSTEM_DATABASE
from lakelet.errors import NotFoundError
from lakelet.sql.lexer.errors import nearest
from lakelet.sql.query.relation import Relation, Rows
from lakelet.sql.system.built_rows import built_rows, required, table_of
from lakelet.sql.system.live_files import version_entries
from lakelet.sql.system.partitions import partition_sums
from lakelet.sql.system.version import Version
from lakelet.table import Table

if TYPE_CHECKING:
    from lakelet.sql.context import Context

TABLES = pa.schema(
    [
        ("database_name", pa.string()),
        ("table_name", pa.string()),
        ("table_type", pa.string()),
        ("partitioned", pa.bool_()),
        ("primary_key", pa.bool_()),
        ("owner", pa.string()),
        ("created_at", pa.int64()),
        ("created_by", pa.string()),
        ("updated_at", pa.int64()),
        ("updated_by", pa.string()),
        ("record_count", pa.int64()),
        ("file_size_in_bytes", pa.int64()),
        ("file_count", pa.int64()),
        ("last_file_creation_time", pa.int64()),
    ]
)
PARTITIONS = pa.schema(
    [
        ("database_name", pa.string()),
        ("table_name", pa.string()),
        ("partition_name", pa.string()),
        ("record_count", pa.int64()),
        ("file_size_in_bytes", pa.int64()),
        ("file_count", pa.int64()),
        ("last_file_creation_time", pa.int64()),
        ("done", pa.bool_()),
    ]
)
ALL_TABLE_OPTIONS = pa.schema(
    [("database_name", pa.string()), ("table_name", pa.string()), ("key", pa.string()), ("value", pa.string())]
)
CATALOG_OPTIONS = pa.schema([required("key", pa.string()), required("value", pa.string())])
_OF_FILES = ("record_count", "file_size_in_bytes", "file_count", "last_file_creation_time")


def global_relation(context: Context, table: str) -> Relation:
    """The rows of a table of the database `sys`; NotFoundError names the nearest."""
    context.profile.check_system_table(f"{SYSTEM_DATABASE}.{table}")
    read = GLOBAL_TABLES.get(table.lower())
    if read is None:
        raise NotFoundError(f"table {SYSTEM_DATABASE + '.' + table!r} is not there{nearest(table, GLOBAL_TABLES)}")
    return read(context)


def _tables(context: Context) -> Rows:
    def build(names: Sequence[str]) -> pa.Table:
        counted = any(name in _OF_FILES for name in names)
        rows = [_table_row(database, table, counted=counted) for database, table in _every_table(context)]
        return table_of(TABLES, rows)

    return built_rows(TABLES, build)


def _table_row(database: str, table: Table, *, counted: bool) -> tuple[object, ...]:
    versions = table.schemas()
    schema = versions[-1]
    totals: tuple[object, ...] = (None,) * len(_OF_FILES)
    newest = Version().of(table) if counted else None
    if newest is not None and newest.snapshot is not None:
        entries = version_entries(newest, ["_ROW_COUNT", "_FILE_SIZE", "_CREATION_TIME"], only_placed=False)
        rows, size = (pc.sum(entries.column(name)).as_py() or 0 for name in ("_ROW_COUNT", "_FILE_SIZE"))
        totals = (rows, size, entries.num_rows, pc.max(entries.column("_CREATION_TIME")).as_py())
    return (
        database,
        _own_name(table),
        "table",
        bool(schema.partition_keys),
        bool(schema.primary_keys),
        None,
        versions[0].time_ms,
        None,
        schema.time_ms,
        None,
        *totals,
    )


def _partitions(context: Context) -> Rows:
    def build(names: Sequence[str]) -> pa.Table:
        found = [
            _partition_rows(database, table)
            for database, table in _every_table(context)
            if table.schemas()[-1].partition_keys
        ]
        return pa.concat_tables([PARTITIONS.empty_table(), *found])

    return built_rows(PARTITIONS, build)


def _partition_rows(database: str, table: Table) -> pa.Table:
    sums = partition_sums(Version().of(table))
    count = sums.num_rows
    columns = [
        pa.repeat(pa.scalar(database), count),
        pa.repeat(pa.scalar(_own_name(table)), count),
        sums.column("partition"),
        *(sums.column(name) for name in ("_ROW_COUNT_sum", "_FILE_SIZE_sum", "_FILE_NAME_count", "_CREATION_TIME_max")),
        pa.repeat(pa.scalar(False), count),
    ]
    return pa.table(columns, schema=PARTITIONS)


def _all_table_options(context: Context) -> pa.Table:
    rows = [
        (database, _own_name(table), key, value)
        for database, table in _every_table(context)
        for key, value in table.options.items()
    ]
    return table_of(ALL_TABLE_OPTIONS, rows)


def _catalog_options(context: Context) -> pa.Table:
    # Storage options may hold secrets, and are left out.
    return table_of(CATALOG_OPTIONS, [("warehouse", context.lake.location)])


def _every_table(context: Context) -> Iterator[tuple[str, Table]]:
    for database in context.lake.databases():
        for name in context.lake.tables(database):
            yield database, context.lake.table(f"{database}.{name}")


def _own_name(table: Table) -> str:
    return table.name.split(".", 1)[1]


GLOBAL_TABLES: dict[str, Callable[[Context], Relation]] = {
    "all_table_options": _all_table_options,
    "catalog_options": _catalog_options,
    "partitions": _partitions,
    "tables": _tables,
}
