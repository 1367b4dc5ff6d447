"""Events by the compiled scanner, in one Python task for each partition: a few columns instead of the plan of an envelope."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakelet.errors import InternalError, InvalidError
from lakelet.format.compiled.compile_cache import has_numba
from lakelet.spark.cdc.batch_memory import BatchMemory
from lakelet.spark.cdc.envelope.event_columns import ARRIVAL, arrived
from lakelet.spark.cdc.scan.event_batch import event_batches
from lakelet.spark.workers import prepare_workers

_GIVEN = ("raw", "message_key", "topic", "partition", "offset", "kafka_timestamp")
_COLUMNS = (
    "raw binary, message_key binary, topic string, `partition` int, `offset` bigint, kafka_timestamp timestamp, "
    "unsure boolean, row_index int, operation string, group_hash bigint, told string, image binary, old binary, "
    "op_millis bigint, position string"
)


@dataclass(frozen=True, slots=True)
class ToldGroup:
    """A group of scanned events: the names of its source, its layout and its key as JSON, and how many events it has."""

    hash: int
    names: tuple[str | None, str | None, str]
    layout: str
    key_names: str | None
    count: int


@dataclass(frozen=True, slots=True)
class ScannedGroups:
    """The groups of scanned events, how many events have nothing to do, and how many are left to expressions."""

    groups: tuple[ToldGroup, ...]
    idle: int
    unsure: int


def can_scan(spark: SparkSession, memory: BatchMemory) -> bool:
    """Whether the scanner can be compiled and tasks in Python find it."""

    def looked() -> tuple[bool]:
        try:
            prepare_workers(spark)
        except InvalidError:
            return (False,)
        return (True,)

    return has_numba() and memory.once("workers", looked)[0]


def scanned_events(frame: DataFrame, format: str, *, whole: bool) -> DataFrame:
    """The events of a frame in the columns of `event_batch`; unless `whole`, without the bytes of those that were read."""

    def scan(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return event_batches(batches, format, whole=whole)

    given = frame.select(*arrived(frame.schema)).select(*_GIVEN)
    return given.mapInArrow(scan, _COLUMNS).withColumn("arrival", F.monotonically_increasing_id())


def scanned_groups(events: DataFrame) -> ScannedGroups:
    """The groups of `scanned_events`: one job, a line for each."""
    # By keys alone: the least of texts would have to sort all events.
    keys = events.select("group_hash", "unsure", F.col("operation").isNull().alias("idle"), "told")
    told, counts = dict[int, str](), Counter[int]()
    others = Counter[str]()
    for line in keys.groupBy(*keys.columns).count().collect():
        if line["unsure"] or line["idle"]:
            others["unsure" if line["unsure"] else "idle"] += line["count"]
            continue
        number = int(line["group_hash"])
        counts[number] += line["count"]
        if line["told"] is not None and told.setdefault(number, line["told"]) != line["told"]:
            raise InternalError(f"two layouts have one hash, {number}: {told[number]}, {line['told']}")
    groups = []
    for number, count in counts.items():
        database, schema, table, layout, key_names = json.loads(told[number])
        groups.append(ToldGroup(number, (database, schema, table), layout, key_names, count))
    return ScannedGroups(tuple(groups), others["idle"], others["unsure"])


def unsure_frame(events: DataFrame) -> DataFrame:
    """The events that the scanner left, as the frame that they were in."""
    return events.filter("unsure").select(
        F.col("raw").alias("value"),
        F.col("message_key").alias("key"),
        "topic",
        "partition",
        "offset",
        F.col("kafka_timestamp").alias("timestamp"),
        F.col("arrival").alias(ARRIVAL),
    )
