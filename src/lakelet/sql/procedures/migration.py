"""migrate, copy: create tables from Parquet folders and from other tables."""

from __future__ import annotations

import pyarrow as pa

from lakelet.catalog.migration import PartitionColumn
from lakelet.errors import InvalidError
from lakelet.operations import migration
from lakelet.sql.context import Context
from lakelet.sql.procedures.procedure import Argument, Call, Column, Done, Procedure, split_parts
from lakelet.sql.procedures.values import FLAG, NAMES, NUMBER, OPTIONS, TABLE, TEXT, VERSION

_PARQUET = "parquet"


def migrate_folder(call: Call) -> Done:
    """Adopts a folder of Parquet files as a table."""
    kind = call.text("connector")
    if kind is not None and kind.lower() != _PARQUET:
        raise InvalidError(f"connector {kind!r}: expected '{_PARQUET}', a folder of Parquet files")
    target = _new_name(call.context, call.values["target_table"])
    request = migration.Migrate(
        call.values["source_table"],
        target,
        tuple(_partition_column(name) for name in call.names("partitioned_by") or ()),
        call.options(),
    )
    done = migration.migrate(call.context.lake, request)
    return Done(
        f"{target} has adopted {done.files} files of {done.rows:,} rows", [(done.snapshot_id, done.files, done.rows)]
    )


def copy(call: Call) -> Done:
    """Copies rows of a table to another."""
    source, target = call.table("source_table"), _new_name(call.context, call.values["target_table"])
    request = migration.Copy(
        target, call.text("where"), call.names("columns"), call.version("version"), call.flag("overwrite")
    )
    copied = migration.copy(call.context.lake, source, request)
    return Done(f"copied {copied.rows:,} rows of {source.name} to {target}", [(copied.snapshot_id, copied.rows)])


def _new_name(context: Context, text: str) -> str:
    """The name of an existing table in the spelling of the lake, or of a new one."""
    name = context.table_name(split_parts(text))
    if name.system is not None or name.branch is not None:
        raise InvalidError(f"{text!r}: expected the name of a table, found that of a branch or a system table")
    found = context.names.find(name)
    if found is not None:
        return found.full
    context.ensure_database(name.database)
    return f"{context.names.database(name.database)}.{name.table}"


def _partition_column(text: str) -> PartitionColumn:
    """Parse `dt DATE`, a column and its type; a name alone is a text column."""
    name, _, data_type = text.partition(" ")
    return (name, data_type.strip()) if data_type.strip() else name


BRINGING_IN = (
    Procedure(
        "migrate",
        "Adopts the Parquet files of a folder into a table, without writing them anew: they leave the folder. A table that "
        "is not there is made; one that is must have the same columns, and neither a key nor buckets.",
        (
            Argument("connector", TEXT, "`parquet`, which is also the default.", aliases=("source_type",)),
            Argument(
                "source_table",
                TEXT,
                "The folder, on the disk or in the store of the warehouse.",
                required=True,
                aliases=("source", "folder", "table"),
            ),
            Argument("target_table", TABLE, "The table.", required=True, aliases=("target",)),
            Argument("options", OPTIONS, "Options of a table that is made."),
            Argument(
                "partitioned_by",
                NAMES,
                "Types of the partition columns that folders name, such as `dt DATE,h INT`; by default they are text.",
            ),
            Argument("parallelism", NUMBER, "Ignored."),
        ),
        (Column("snapshot_id", pa.int64()), Column("file_count", pa.int64()), Column("record_count", pa.int64())),
        migrate_folder,
        aliases=("migrate_table",),
    ),
    Procedure(
        "copy",
        "Copies the rows of a table into another, in one commit. One that is not there is made alike.",
        (
            Argument("source_table", TABLE, "The table that is copied.", required=True, aliases=("table", "source")),
            Argument("target_table", TABLE, "The table that rows go into.", required=True, aliases=("target",)),
            Argument("where", TEXT, "Only rows that match."),
            Argument("columns", NAMES, "Only these columns."),
            Argument("version", VERSION, "The snapshot or tag that is copied; by default the newest version."),
            Argument("overwrite", FLAG, "Takes the place of the rows that the target has."),
        ),
        (Column("snapshot_id", pa.int64()), Column("record_count", pa.int64())),
        copy,
    ),
)
