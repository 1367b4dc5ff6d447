"""Which tables and layouts a batch of events has: one job over the events, a line for each."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakelet.errors import InternalError
from lakelet.spark.cdc.route import SourceTable
from lakelet.spark.cdc.settings import CdcSettings
from lakelet.spark.cdc.value.wire_field import WireField

HASH = "layout_hash"


@dataclass(frozen=True, slots=True)
class EventGroup:
    """The events of one source table with one layout."""

    source: SourceTable
    hash: int | None
    fields: tuple[WireField, ...]
    key_names: tuple[str, ...]
    count: int
    truncates: int

    def events(self, frame: DataFrame) -> DataFrame:
        """The events of this group."""
        return frame.filter(self.condition)

    @property
    def condition(self) -> Column:
        """What tells these events from others."""
        return (
            F.col("operation").isNotNull()
            & F.col("database_name").eqNullSafe(F.lit(self.source.database))
            & F.col("schema_name").eqNullSafe(F.lit(self.source.schema))
            & (F.col("table_name") == F.lit(self.source.name))
            & F.col(HASH).eqNullSafe(F.lit(self.hash).cast("bigint"))
        )


@dataclass(frozen=True, slots=True)
class Discovery:
    """The groups of a batch, and how many rows of events it has, how many have nothing to do and how many are poison."""

    groups: tuple[EventGroup, ...]
    rows: int
    skipped: int
    poison: int


def hashed(events: DataFrame) -> DataFrame:
    """The events with a short name for their layout."""
    return events.withColumn(HASH, F.when(F.col("layout").isNotNull(), F.xxhash64("layout")))


def discovered(events: DataFrame, settings: CdcSettings) -> Discovery:
    """The groups of these events."""
    names = ["database_name", "schema_name", "table_name", HASH, "layout", "key_names"]
    told = [F.when(F.col("operation").isNotNull(), F.col(name)).alias(name) for name in names]
    lines = (
        events.select(*told, "operation", F.col("reason").isNotNull().alias("bad"))
        .groupBy(*names, F.col("operation").isNotNull().alias("applies"), "bad")
        .agg(F.count("*").alias("count"), F.count_if(F.col("operation") == "t").alias("truncates"))
        .collect()
    )
    found: dict[tuple[SourceTable, int | None], EventGroup] = {}
    layouts: dict[int | None, str | None] = {}
    totals: dict[str, int] = defaultdict(int)
    for line in lines:
        totals["applied" if line["applies"] else "poison" if line["bad"] else "skipped"] += line["count"]
        if not line["applies"]:
            continue
        source = SourceTable(line["database_name"], line["schema_name"], line["table_name"])
        if layouts.setdefault(line[HASH], line["layout"]) != line["layout"]:
            raise InternalError(f"two layouts of {source} have one hash, {line[HASH]}")
        fields = () if line["layout"] is None else settings.layout_of(line["layout"])
        keys = tuple(json.loads(line["key_names"])) if line["key_names"] else ()
        group = EventGroup(source, line[HASH], fields, keys, line["count"], line["truncates"])
        found[source, line[HASH]] = _joined(found.get((source, line[HASH])), group)
    groups = sorted(found.values(), key=lambda one: (str(one.source), one.hash or 0))
    return Discovery(tuple(groups), sum(totals.values()), totals["skipped"], totals["poison"])


def _joined(known: EventGroup | None, other: EventGroup) -> EventGroup:
    if known is None:
        return other
    # An event without a key (a deleted topic key, a keyless source) does not hide that of the others.
    keys = known.key_names or other.key_names
    return replace(known, key_names=keys, count=known.count + other.count, truncates=known.truncates + other.truncates)


def all_fields(groups: Sequence[EventGroup]) -> list[WireField]:
    """The columns of several groups in the order in which they come, each as often as it does."""
    return [one for group in groups for one in group.fields]
