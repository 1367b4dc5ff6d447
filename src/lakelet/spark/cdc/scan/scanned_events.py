"""Events by the compiled scanner, in one Python task for each partition: packs of events instead of the plan of an envelope."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.errors import InternalError, InvalidError
from lakelet.format.compiled.compile_cache import has_numba
from lakelet.spark.cdc.batch_memory import BatchMemory
from lakelet.spark.cdc.envelope.event_columns import ARRIVAL, arrived
from lakelet.spark.cdc.scan.event_batch import event_batches
from lakelet.spark.cdc.scan.event_packs import (
    GIVEN,
    IDLE,
    LEFT,
    PACK,
    PACK_COLUMNS,
    TOLD,
    packed_events,
    unpacked_events,
)
from lakelet.spark.workers import prepare_workers

_EVENT_COLUMNS = (
    "raw binary, message_key binary, topic string, `partition` int, `offset` bigint, kafka_timestamp timestamp, "
    "row_index int, operation string, group_hash bigint, image binary, old binary, op_millis bigint, position string, "
    "arrival bigint"
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
    """The events of a frame in packs (`event_packs`); unless `whole`, without the bytes of those that were read."""

    def scan(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        return packed_events(event_batches(batches, format, whole=whole), context.partitionId() if context else 0)

    # Text goes to Python as it is: as BINARY, each event would be copied for it once more.
    schema = frame.schema
    events = frame.select(*arrived(schema))
    raw = F.col("text" if isinstance(schema["value"].dataType, T.StringType) else "raw").alias("raw")
    given = events.select(*(raw if name == "raw" else F.col(name) for name in GIVEN.names))
    return given.mapInArrow(scan, PACK_COLUMNS)


def scanned_groups(events: DataFrame) -> ScannedGroups:
    """The groups of `scanned_events`: one job, a line for each."""
    told, counts = dict[int, str](), Counter[int]()
    states = Counter[int]()
    for line in events.groupBy("state", "group_hash", "told").agg(F.sum("count").alias("rows")).collect():
        number = line["group_hash"]
        if line["state"] == PACK:
            counts[number] += line["rows"]
        elif line["state"] != TOLD:
            states[line["state"]] += line["rows"]
        elif told.setdefault(number, line["told"]) != line["told"]:
            raise InternalError(f"two layouts have one hash, {number}: {told[number]}, {line['told']}")
    groups = []
    for number, count in counts.items():
        database, schema, table, layout, key_names = json.loads(told[number])
        groups.append(ToldGroup(number, (database, schema, table), layout, key_names, count))
    return ScannedGroups(tuple(groups), states[IDLE], states[LEFT])


def packs_of(events: DataFrame, hashes: Iterable[int]) -> DataFrame:
    """The packs of some groups."""
    chosen = ", ".join(f"{one}L" for one in hashes)
    return events.filter(f"state = {PACK} AND group_hash IN ({chosen})").select("events")


def sure_events(events: DataFrame) -> DataFrame:
    """The events in packs, a row for each; to be kept `of_packs`."""
    return events.filter(f"state = {PACK}").select("events").mapInArrow(unpacked_events, _EVENT_COLUMNS)


def unsure_frame(events: DataFrame) -> DataFrame:
    """The events that the scanner left, as the frame that they were in."""
    return events.filter(f"state = {LEFT}").select(
        F.col("raw").alias("value"),
        F.col("message_key").alias("key"),
        "topic",
        "partition",
        "offset",
        F.col("kafka_timestamp").alias("timestamp"),
        F.col("arrival").alias(ARRIVAL),
    )
