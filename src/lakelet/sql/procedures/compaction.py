"""compact, compact_database, compact_manifest, rescale."""

from __future__ import annotations

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.operations import compaction
from lakelet.operations.table_choice import TableChoice
from lakelet.sql.procedures.procedure import TABLE_ARGUMENT, Argument, Call, Column, Done, Procedure
from lakelet.sql.procedures.values import LENGTH, NAMES, NUMBER, OPTIONS, PARTITION, PARTITIONS, PATTERN, TEXT

_STRATEGIES = ("full", "minor")
_MODES = ("divided", "combined")
_OPTIONS = Argument("options", OPTIONS, "Options that take the place of the table's for this once.")
_STRATEGY = Argument(
    "compact_strategy",
    TEXT,
    "`full` (the default) rewrites all there is into as few files as can be; `minor` what the table's options say is due.",
)
_IDLE = Argument(
    "partition_idle_time", LENGTH, "Only partitions without a new file for so long.", aliases=("partitionIdleTime",)
)


def compact(call: Call) -> Done:
    """Compacts one table."""
    table = call.table()
    request = compaction.Compact(
        _is_full(call),
        call.partitions("partitions"),
        call.text("where"),
        call.length("partition_idle_time"),
        call.options(),
        call.text("order_strategy"),
        tuple(call.names("order_by") or ()),
    )
    made = compaction.compact(table, request)
    rows = [(made.snapshot_id, made.rows_read, made.bytes_read, made.bytes_written)]
    if made.snapshot_id is None:
        return Done(f"{table.name}: there was nothing to compact", rows)
    return Done(f"compacted {table.name} into snapshot {made.snapshot_id}", rows)


def compact_database(call: Call) -> Done:
    """Compacts many tables, one after the other."""
    mode = call.text("mode")
    if mode is not None and mode.lower() not in _MODES:
        raise InvalidError(f"mode {mode!r}: expected {' or '.join(_MODES)}, which mean the same here")
    request = compaction.CompactMany(
        TableChoice(
            call.pattern("including_databases"), call.pattern("including_tables"), call.pattern("excluding_tables")
        ),
        compaction.Compact(_is_full(call), idle_for=call.length("partition_idle_time"), options=call.options()),
    )
    made = compaction.compact_many(call.context.lake, request)
    done = sum(one.snapshot_id is not None for one in made)
    return Done(f"compacted {done} of {len(made)} tables", [(one.database, one.table, one.snapshot_id) for one in made])


def compact_manifest(call: Call) -> Done:
    """Merges manifests."""
    table = call.table()
    number = compaction.compact_manifests(table)
    if number is None:
        return Done(f"{table.name}: there was nothing to gain", [(None,)])
    return Done(f"merged the manifests of {table.name} into snapshot {number}", [(number,)])


def rescale(call: Call) -> Done:
    """Changes the number of buckets."""
    table = call.table()
    made = compaction.rescale(table, compaction.Rescale(call.number("bucket_num"), call.partition("partition")))
    if made.snapshot_id is None:
        return Done(f"{table.name}: all of it has {made.buckets} buckets already", [(None,)])
    return Done(f"{table.name} has {made.buckets} buckets as of snapshot {made.snapshot_id}", [(made.snapshot_id,)])


def _is_full(call: Call) -> bool:
    strategy = (call.text("compact_strategy") or _STRATEGIES[0]).lower()
    if strategy not in _STRATEGIES:
        raise InvalidError(f"compact_strategy {strategy!r}: expected {' or '.join(_STRATEGIES)}")
    return strategy == _STRATEGIES[0]


COMPACTING = (
    Procedure(
        "compact",
        "Rewrites files into fewer and larger ones, and applies deletes. Rows stay as they are, or are put into another order.",
        (
            TABLE_ARGUMENT,
            Argument("partitions", PARTITIONS, "Only these partitions."),
            Argument(
                "order_strategy",
                TEXT,
                "`order`, `zorder` or `hilbert`: all rows of an append table without buckets are put into this order.",
            ),
            Argument("order_by", NAMES, "The columns of that order."),
            _OPTIONS,
            Argument("where", TEXT, "Only partitions that match this condition on partition columns."),
            _IDLE,
            _STRATEGY,
        ),
        (
            Column("snapshot_id", pa.int64()),
            Column("rows_read", pa.int64()),
            Column("bytes_read", pa.int64()),
            Column("bytes_written", pa.int64()),
        ),
        compact,
    ),
    Procedure(
        "compact_database",
        "Compacts the tables of all databases, or of some; one row for each.",
        (
            Argument(
                "including_databases",
                PATTERN,
                "Only databases whose whole name matches.",
                aliases=("includingDatabases",),
            ),
            Argument("mode", TEXT, "`divided` or `combined`; both mean the same here."),
            Argument(
                "including_tables",
                PATTERN,
                "Only tables that match, as `table` or `database.table`.",
                aliases=("includingTables",),
            ),
            Argument("excluding_tables", PATTERN, "But not these.", aliases=("excludingTables",)),
            Argument("options", OPTIONS, _OPTIONS.meaning, aliases=("table_options", "tableOptions")),
            _IDLE,
            _STRATEGY,
        ),
        (
            Column("database_name", pa.string()),
            Column("table_name", pa.string()),
            Column("snapshot_id", pa.int64()),
        ),
        compact_database,
    ),
    Procedure(
        "compact_manifest",
        "Merges manifests into few, for quicker plans and commits.",
        (TABLE_ARGUMENT,),
        (Column("snapshot_id", pa.int64()),),
        compact_manifest,
        aliases=("compact_manifests",),
    ),
    Procedure(
        "rescale",
        "Puts rows into another number of buckets.",
        (
            TABLE_ARGUMENT,
            Argument("bucket_num", NUMBER, "The number of buckets; by default the one in the table's options."),
            Argument("partition", PARTITION, "Only this partition."),
            Argument("scan_parallelism", NUMBER, "Ignored."),
            Argument("sink_parallelism", NUMBER, "Ignored."),
        ),
        (Column("snapshot_id", pa.int64()),),
        rescale,
    ),
)
