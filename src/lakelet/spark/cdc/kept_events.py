"""The events of a batch, read once and kept on the executors: by the compiled scanner, the others by expressions.

    frame ─ scanner ─ kept ─ plain events
                          └ those that it left ─ expressions ─ kept

A batch that is repeated, or of a quarantine, is read by expressions alone, as is one where the scanner cannot run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakelet.spark.cdc.discovery import Discovery, discovered, together, told
from lakelet.spark.cdc.envelope.debezium import CutError
from lakelet.spark.cdc.envelope.event_columns import HASH, lean_columns, origin_of
from lakelet.spark.cdc.quarantine import EVENT_KEY
from lakelet.spark.cdc.rows.kept_rows import forget_rows, keep_rows
from lakelet.spark.cdc.rows.typed_rows import EVENT
from lakelet.spark.cdc.scan.scanned_events import (
    can_scan,
    scanned_events,
    scanned_groups,
    sure_events,
    unsure_frame,
)
from lakelet.spark.cdc.settings import CdcSettings

# Where an event of a quarantine was to go.
RECORDED = "recorded"
_SHARED = (*EVENT, "operation", "op_millis", "arrival", HASH)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which rows of events are taken: only some, or all but some."""

    only: DataFrame | None
    aside: DataFrame | None

    def of(self, events: DataFrame) -> DataFrame:
        """The events that are taken, of all in a frame."""
        if self.only is not None:
            recorded = self.only.select(*EVENT_KEY, F.col("target").alias(RECORDED)).distinct()
            events = events.withColumn("origin", origin_of()).join(recorded, list(EVENT_KEY))
        if self.aside is not None:
            events = events.withColumn("origin", origin_of()).join(self.aside, list(EVENT_KEY), "left_anti")
        return events

    @property
    def everything(self) -> bool:
        """Whether all events of a frame are taken."""
        return self.only is None and self.aside is None


@dataclass(frozen=True, slots=True)
class KeptEvents:
    """Events that were `scanned`, in packs, and those that were `parsed` by expressions; either may be missing, not both."""

    scanned: DataFrame | None
    parsed: DataFrame | None
    # The groups that either has.
    scanned_hashes: frozenset[int] = frozenset()
    parsed_hashes: frozenset[int] = frozenset()
    # The scanned events as rows, kept on the executors once they are asked for: few batches do.
    spread: list[DataFrame] = field(default_factory=list)

    @property
    def all(self) -> DataFrame:
        """All events that have something to do or are poison, without their rows and layouts."""
        if self.scanned is None:
            return self._parsed
        if not self.spread:
            self.spread.append(keep_rows(sure_events(self.scanned), of_packs=True))
        nothing = F.lit(None).cast("string")
        sure = self.spread[0].withColumn("origin", nothing).withColumn("reason", nothing).select(*_SHARED, "reason")
        return sure if self.parsed is None else sure.unionByName(self.parsed.select(*_SHARED, "reason"))

    @property
    def refused(self) -> DataFrame:
        """The events that are poison, which only expressions tell."""
        return self._parsed.filter("reason IS NOT NULL").select(*_SHARED, "reason")

    @property
    def _parsed(self) -> DataFrame:
        assert self.parsed is not None
        return self.parsed


@contextmanager
def kept_events(
    frame: DataFrame, settings: CdcSettings, chosen: Chosen, *, whole: bool
) -> Iterator[tuple[KeptEvents, Discovery]]:
    """The events of a frame and what they are; unless `whole`, without the bytes of those that can be read."""
    kept: list[DataFrame] = []
    spread: list[DataFrame] = []

    def parse(given: DataFrame, *, exact: bool) -> tuple[DataFrame, Discovery]:
        events = chosen.of(settings.events(given, exact=exact))
        kept.append(keep_rows(events.withColumns(lean_columns(settings.memory.layouts, whole=whole))))
        return kept[-1], discovered(kept[-1], settings, exact=exact)

    def parsed(given: DataFrame) -> tuple[DataFrame, Discovery]:
        try:
            return parse(given, exact=False)
        except CutError:
            return parse(given, exact=True)

    try:
        if not chosen.everything or not can_scan(frame.sparkSession, settings.memory):
            events, found = parsed(frame)
            yield KeptEvents(None, events, parsed_hashes=_hashes(found)), found
            return
        scanned = keep_rows(scanned_events(frame, settings.format, whole=whole))
        kept.append(scanned)
        groups = scanned_groups(scanned)
        found = told(groups, settings)
        if not groups.unsure:
            yield KeptEvents(scanned, None, _hashes(found), spread=spread), found
            return
        left, others = parsed(unsure_frame(scanned))
        yield KeptEvents(scanned, left, _hashes(found), _hashes(others), spread), together(found, others)
    finally:
        for one in (*kept, *spread):
            forget_rows(one)


def _hashes(found: Discovery) -> frozenset[int]:
    return frozenset(one for group in found.groups for one in group.hashes)
