"""The columns that every envelope is brought into: one row for each changed row of an event.

raw           BINARY   the event as it came, for the quarantine
message_key   BINARY   Kafka's key as it came
origin        STRING   where the event came from (`origin_of`); NULL until somebody asks, since it takes a digest of the text
row_index     INT      which of its rows (Canal's events hold several)
operation     STRING   i, u, d (a row), t (truncate); NULL: nothing to do, or poison
reason        STRING   why the event cannot be applied; NULL: it can
database_name, schema_name, table_name  STRING
image         VARIANT  the row, after the change or deleted
old           VARIANT  what the row was before, all or some columns of it
layout        STRING   what tells its columns: schema, mysqlType, or the list of its names
key_names     STRING   JSON list of the key's columns where the event tells them
op_millis     BIGINT   when the source made the change
position      STRING   place in the source's log; sorts as text
topic, partition, offset, kafka_timestamp   those of Kafka, else NULL
arrival       BIGINT   order in the frame, the last resort
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.errors import InvalidError

_KAFKA = {"topic": "string", "partition": "int", "offset": "bigint", "timestamp": "timestamp"}
_WIDTH = 20
# The number of an event's group: its source table and its layout.
HASH = "group_hash"
_GROUP = ("database_name", "schema_name", "table_name", "layout")
_NOTHING = "\0"
# The order in the frame, where a frame of some of its events has it.
ARRIVAL = "_cdc_arrival"
# The columns of selects that follow one another.
Steps = tuple[list[Column], ...]


def arrived(found: T.StructType) -> list[Column]:
    """The columns of a frame's `value` as text, with Kafka's where it has them; InvalidError where it has no value."""
    kinds = {field.name: field.dataType for field in found.fields}
    if not isinstance(kinds.get("value"), (T.StringType, T.BinaryType)):
        shown = ", ".join(f"{name} {kind.simpleString()}" for name, kind in kinds.items())
        raise InvalidError(f"change events: expected a column value of STRING or BINARY, found {shown or 'no column'}")
    kafka = [
        (F.col(name) if name in kinds else F.lit(None)).cast(kind).alias(_kafka_name(name))
        for name, kind in _KAFKA.items()
    ]
    key = F.col("key").cast("binary") if "key" in kinds else F.lit(None).cast("binary")
    return [
        F.col("value").cast("binary").alias("raw"),
        key.alias("message_key"),
        F.col("value").cast("string").alias("text"),
        F.lit(None).cast("string").alias("origin"),
        *kafka,
        (F.col(ARRIVAL) if ARRIVAL in kinds else F.monotonically_increasing_id()).alias("arrival"),
    ]


def origin_of() -> Column:
    """Where an event came from: topic/partition/offset, else the SHA-256 of its text and its key."""
    # NULL where one of them is: an event that came from a file.
    place = F.concat("topic", F.lit("/"), "partition", F.lit("/"), "offset")
    # The key as well: it alone may say which row was deleted.
    texts = F.concat(F.coalesce("raw", F.lit(b"")), F.lit(b"\0"), F.coalesce("message_key", F.lit(b"")))
    return F.coalesce("origin", place, F.sha2(texts, 256))


def group_hash() -> Column:
    """A number for the source table and the layout of an event; `discovery` makes sure that no two of a batch have one."""
    return F.xxhash64(*(F.coalesce(F.col(name), F.lit(_NOTHING)) for name in _GROUP))


def lean_columns(layouts: Iterable[int], *, whole: bool) -> dict[str, Column]:
    """The columns of events without what is long and not needed: the text of known layouts and, unless `whole`, the bytes of
    events that can be read."""
    known = list(layouts)
    made = {"layout": F.when(~F.col(HASH).isin(known), F.col("layout"))} if known else {}
    if not whole:
        made |= {name: F.when(F.col("reason").isNotNull(), F.col(name)) for name in ("raw", "message_key")}
    return made


def _kafka_name(name: str) -> str:
    return "kafka_timestamp" if name == "timestamp" else name


def padded(number: Column) -> Column:
    """A number as text that sorts like it."""
    return F.lpad(number.cast("string"), _WIDTH, "0")


def log_file(name: Column) -> Column:
    """The name of a binlog file as text that sorts like its number: mysql-bin.1000000 comes after mysql-bin.999999."""
    number = F.substring_index(name, ".", -1)
    stem = F.substring(name, F.lit(1), F.char_length(name) - F.char_length(number))
    return F.when(number.rlike(r"^\d+$"), F.concat(stem, padded(number))).otherwise(name)


def known(value: Column) -> Column:
    """A VARIANT, or NULL for JSON's null.

    Rows of events are VARIANTs and no text: where `from_json` gives an object or a number as text, decimals went through DOUBLE.
    """
    return F.when(F.is_variant_null(value), F.lit(None)).otherwise(value)


def names_of(value: Column) -> Column:
    """The names in the object that a VARIANT is, as a JSON list."""
    return F.to_json(F.map_keys(F.try_variant_get(value, "$", "map<string, variant>")))


def reasons(cases: Sequence[tuple[Column, Column | str]]) -> Column:
    """The first reason whose condition holds."""
    found = F.lit(None).cast("string")
    for condition, text in reversed(cases):
        found = F.when(condition, F.lit(text) if isinstance(text, str) else text).otherwise(found)
    return found


def event_columns(**columns: Column) -> list[Column]:
    """The columns of this module: those given and those that `arrived` made."""
    kept = ("raw", "message_key", "origin", "topic", "partition", "offset", "kafka_timestamp", "arrival")
    strings = (
        "operation",
        "reason",
        "database_name",
        "schema_name",
        "table_name",
        "layout",
        "key_names",
        "position",
    )
    null = F.lit(None)
    made = {name: columns.pop(name, null).cast("string") for name in strings}
    made |= {name: columns.pop(name, null).cast("variant") for name in ("image", "old")}
    made["row_index"] = columns.pop("row_index", F.lit(0)).cast("int")
    made["op_millis"] = columns.pop("op_millis", null).cast("bigint")
    return [*map(F.col, kept), *(column.alias(name) for name, column in made.items())]
