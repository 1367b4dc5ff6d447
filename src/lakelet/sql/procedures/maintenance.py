"""repair, reset_consumer, clear_consumers, analyze."""

from __future__ import annotations

import pyarrow as pa

from lakelet.catalog.names import matching
from lakelet.operations import consumers
from lakelet.operations.repair import repair as repair_tables
from lakelet.operations.statistics import analyze as analyze_table
from lakelet.operations.table_choice import database_tables
from lakelet.sql.procedures.procedure import TABLE_ARGUMENT, Argument, Call, Column, Done, Procedure, open_table
from lakelet.sql.procedures.values import NAMES, NUMBER, PATTERN, TEXT
from lakelet.table import Table


def repair(call: Call) -> Done:
    """Repairs the hints of the oldest and newest snapshot, of one table or of many."""
    names = call.names("database_or_table")
    lake = call.context.lake
    tables: list[Table] = []
    for name in names if names is not None else lake.databases():
        database = matching(name, lake.databases())
        tables += [open_table(call.context, name)] if database is None else database_tables(lake, database)
    rows = [
        (one.table, one.earliest_snapshot_id, one.latest_snapshot_id, one.repaired) for one in repair_tables(tables)
    ]
    return Done(f"repaired {sum(row[3] for row in rows)} hints of {len(rows)} tables", rows)


def reset_consumer(call: Call) -> Done:
    """Resets a consumer to a snapshot, or deletes it."""
    table, consumer, number = call.table(), call.values["consumer_id"], call.number("next_snapshot_id")
    consumers.reset_consumer(table, consumers.ResetConsumer(consumer, number))
    if number is None:
        return Done(f"deleted consumer {consumer!r} of {table.name}", [(consumer, None)])
    return Done(f"consumer {consumer!r} of {table.name} needs snapshot {number} next", [(consumer, number)])


def clear_consumers(call: Call) -> Done:
    """Deletes consumers by pattern."""
    table = call.table()
    request = consumers.ClearConsumers(call.pattern("including_consumers"), call.pattern("excluding_consumers"))
    cleared = consumers.clear_consumers(table, request)
    return Done(f"deleted {len(cleared)} consumers of {table.name}", [(consumer,) for consumer in cleared])


def analyze(call: Call) -> Done:
    """Computes and stores statistics of the rows."""
    table = call.table()
    found = analyze_table(table, call.names("columns"))
    if found is None:
        return Done(f"{table.name} has no rows yet", [(None, None, None)])
    rows = [(found.snapshot_id, found.record_count, found.record_bytes)]
    return Done(f"analyzed {found.record_count:,} rows of {table.name}", rows)


MAINTAINING = (
    Procedure(
        "repair",
        "Makes the hints at the oldest and newest snapshot right, of all tables or of some; one row for each.",
        (
            Argument(
                "database_or_table", NAMES, "Databases and tables; by default all.", aliases=("table", "identifier")
            ),
        ),
        (
            Column("table_name", pa.string()),
            Column("earliest_snapshot_id", pa.int64()),
            Column("latest_snapshot_id", pa.int64()),
            Column("repaired_count", pa.int64()),
        ),
        repair,
    ),
    Procedure(
        "reset_consumer",
        "Sends a consumer to another snapshot, or deletes it where none is given.",
        (
            TABLE_ARGUMENT,
            Argument("consumer_id", TEXT, "The consumer.", required=True, aliases=("consumerId",)),
            Argument("next_snapshot_id", NUMBER, "The snapshot that it needs next.", aliases=("nextSnapshotId",)),
        ),
        (Column("consumer_id", pa.string()), Column("next_snapshot_id", pa.int64())),
        reset_consumer,
    ),
    Procedure(
        "clear_consumers",
        "Deletes consumers, all or some; one row for each.",
        (
            TABLE_ARGUMENT,
            Argument("including_consumers", PATTERN, "Only those that match.", aliases=("includingConsumers",)),
            Argument("excluding_consumers", PATTERN, "But not these.", aliases=("excludingConsumers",)),
        ),
        (Column("consumer_id", pa.string()),),
        clear_consumers,
    ),
    Procedure(
        "analyze",
        "Gathers statistics of rows and columns, for query planners.",
        (TABLE_ARGUMENT, Argument("columns", NAMES, "The columns; by default all.")),
        (
            Column("snapshot_id", pa.int64()),
            Column("record_count", pa.int64()),
            Column("record_bytes", pa.int64()),
        ),
        analyze,
    ),
)
