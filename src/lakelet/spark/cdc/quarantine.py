"""The quarantine table: events that could not be applied, each with the reason, its bytes and where it came from.

One row for each row of an event, keyed by `origin`, `row_index` and the `mirror` whose events these are (`Route.mirror`), so that
an event that is delivered again is there once, and one that two mirrors of a source could not apply is there for both. `batch`
names the batch that put it aside, where that has an identity, `replay` the replay that is about to apply it.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakelet.catalog import Lake
from lakelet.errors import InvalidError
from lakelet.spark.cdc.route import Route
from lakelet.table import Table

COLUMNS = (
    ("origin", "STRING NOT NULL"),
    ("row_index", "INT NOT NULL"),
    ("mirror", "STRING NOT NULL"),
    ("reason", "STRING"),
    ("format", "STRING"),
    ("target", "STRING"),
    ("raw", "BYTES"),
    ("message_key", "BYTES"),
    ("topic", "STRING"),
    ("partition", "INT"),
    ("offset", "BIGINT"),
    ("kafka_timestamp", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
    ("position", "STRING"),
    ("quarantined_at", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
    ("batch", "STRING"),
    ("replay", "STRING"),
)
# Which row of which event.
EVENT_KEY = ("origin", "row_index")
KEY = (*EVENT_KEY, "mirror")


def batch_tag(user: str, batch_id: int) -> str:
    """The name of a batch in its rows."""
    return f"{user}/{batch_id}"


def create_quarantine(lake: Lake, name: str) -> None:
    """Makes the table unless it is there; InvalidError where a table of that name is something else."""
    lake.create_database(name.split(".", 1)[0], if_not_exists=True)
    table = lake.create_table(name, COLUMNS, primary_key=KEY, options={"bucket": 1}, if_not_exists=True)
    _check(table)


def check_quarantine(lake: Lake, name: str) -> None:
    """NotFoundError where there is no such table, InvalidError where it is something else."""
    _check(lake.table(name))


def _check(table: Table) -> None:
    expected = {column for column, _ in COLUMNS}
    if not expected <= set(table.schema.names) or tuple(table.schema.primary_keys) != KEY:
        raise InvalidError(f"{table!r} is no quarantine table: expected the columns {', '.join(sorted(expected))}")


def quarantined(poison: DataFrame, route: Route, *, batch: str | None, format: str, now_ms: int) -> DataFrame:
    """Poison rows (`reason`, `target` and the event's columns) as rows of the quarantine table."""
    once = poison.dropDuplicates(list(EVENT_KEY))
    return once.select(
        *EVENT_KEY,
        F.lit(route.mirror).alias("mirror"),
        "reason",
        F.lit(format).alias("format"),
        F.coalesce("target", F.lit(route.table).cast("string")).alias("target"),
        "raw",
        "message_key",
        "topic",
        "partition",
        "offset",
        F.date_trunc("millisecond", F.col("kafka_timestamp")).alias("kafka_timestamp"),
        "position",
        F.timestamp_millis(F.lit(now_ms)).alias("quarantined_at"),
        F.lit(batch).cast("string").alias("batch"),
        F.lit(None).cast("string").alias("replay"),
    )


def replayed_frame(rows: DataFrame) -> DataFrame:
    """Rows of the quarantine as the frame of events that they were."""
    return rows.select(
        F.col("raw").alias("value"),
        F.col("message_key").alias("key"),
        "topic",
        "partition",
        "offset",
        F.col("kafka_timestamp").alias("timestamp"),
    ).distinct()
