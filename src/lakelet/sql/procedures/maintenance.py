"""repair, reset_consumer, clear_consumers, analyze."""

from __future__ import annotations

import pyarrow as pa

from lakelet.errors import NotFoundError
from lakelet.sql.lexer.errors import nearest
from lakelet.sql.names import matching
from lakelet.sql.procedures.procedure import TABLE_ARGUMENT, Argument, Call, Column, Done, Procedure, open_table
from lakelet.sql.procedures.values import NAMES, NUMBER, PATTERN, TEXT
from lakelet.table import Table


def repair(call: Call) -> Done:
    """The hints at the oldest and newest snapshot, of one table or of many."""
    names = call.names("database_or_table")
    lake = call.context.lake
    tables: list[Table] = []
    for name in names if names is not None else lake.databases():
        database = matching(name, lake.databases())
        if database is None:
            tables.append(open_table(call.context, name))
        else:
            tables += [lake.table(f"{database}.{table}") for table in lake.tables(database)]
    rows = []
    for table in tables:
        repaired = table.repair()
        rows.append((table.name, repaired.earliest, repaired.latest, len(repaired.repaired)))
    return Done(f"repaired {sum(row[3] for row in rows)} hints of {len(rows)} tables", rows)


def reset_consumer(call: Call) -> Done:
    """A consumer sent elsewhere, or deleted."""
    table, consumer, number = call.table(), call.values["consumer_id"], call.number("next_snapshot_id")
    there = [one.id for one in table.consumers.list()]
    if consumer not in there and number is None:
        raise NotFoundError(f"{table.name} has no consumer {consumer!r}{nearest(consumer, there)}")
    if number is None:
        table.consumers.delete(consumer)
        return Done(f"deleted consumer {consumer!r} of {table.name}", [(consumer, None)])
    table.consumers.set(consumer, number)
    return Done(f"consumer {consumer!r} of {table.name} needs snapshot {number} next", [(consumer, number)])


def clear_consumers(call: Call) -> Done:
    """Many consumers less."""
    table = call.table()
    including, excluding = call.pattern("including_consumers"), call.pattern("excluding_consumers")
    chosen = [
        one.id
        for one in table.consumers.list()
        if (including is None or including.fullmatch(one.id)) and not (excluding and excluding.fullmatch(one.id))
    ]
    for consumer in chosen:
        table.consumers.delete(consumer, if_exists=True)
    return Done(f"deleted {len(chosen)} consumers of {table.name}", [(consumer,) for consumer in chosen])


def analyze(call: Call) -> Done:
    """Statistics of the rows."""
    table = call.table()
    snapshot = table.analyze(call.names("columns"))
    found = table.statistics()
    if snapshot is None or found is None:
        return Done(f"{table.name} has no rows yet", [(None, None, None)])
    rows = [(snapshot.id, found.record_count, found.record_bytes)]
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
