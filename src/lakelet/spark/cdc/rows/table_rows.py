"""The rows of a batch for one table, kept on the executors: of scanned events by the scanner, the others by expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame

from lakelet.model.types import Field
from lakelet.spark.cdc.batch_memory import BatchMemory
from lakelet.spark.cdc.discovery import EventGroup
from lakelet.spark.cdc.envelope.event_columns import HASH
from lakelet.spark.cdc.kept_events import KeptEvents
from lakelet.spark.cdc.rows.kept_rows import forget_rows, keep_rows
from lakelet.spark.cdc.rows.typed_rows import EVENT, KIND, PLACE, REASON, RowShape, typed_rows
from lakelet.spark.cdc.scan.scanned_rows import scanned_rows, unsure_events


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Rows that were `scanned`, none of them poison but some unsure, and those that were `typed` by expressions."""

    scanned: DataFrame | None
    typed: DataFrame | None
    columns: int

    @property
    def all(self) -> DataFrame:
        """All rows, each once."""
        names = [KIND, REASON, PLACE, *EVENT, *(f"c{place}" for place in range(self.columns))]
        sure = [] if self.scanned is None else [self.scanned.filter("NOT unsure").select(*names)]
        typed = [] if self.typed is None else [self.typed]
        return reduce(DataFrame.union, [*sure, *typed])

    def forget(self) -> None:
        """Removes them from the executors."""
        for rows in (self.scanned, self.typed):
            if rows is not None:
                forget_rows(rows)


def table_rows(
    events: KeptEvents, shape: RowShape, groups: Sequence[EventGroup], columns: Sequence[Field], memory: BatchMemory
) -> KeptRows:
    """The rows of a table's groups."""
    scanned: DataFrame | None = None
    parts: list[DataFrame] = []
    plain = [group for group in groups if events.scanned_hashes & set(group.hashes)]
    others = [group for group in groups if events.parsed_hashes & set(group.hashes)]
    if events.scanned is not None and plain:
        read = [scanned_rows(events.scanned, shape, group, columns, memory) for group in plain]
        scanned = keep_rows(reduce(DataFrame.union, read), of_packs=True)
        lines = scanned.filter("unsure").select(HASH).distinct().collect()
        unsure = {int(line[HASH]) for line in lines}
        for group in plain:
            if unsure & set(group.hashes):
                found = unsure_events(scanned, group)
                parts.append(typed_rows(found, shape, group.fields, columns, memory))
    if events.parsed is not None and others:
        changes = events.parsed.filter("operation != 't'")
        parts += [typed_rows(group.events(changes), shape, group.fields, columns, memory) for group in others]
    # Read twice, for the poison and for the rows.
    typed = keep_rows(reduce(DataFrame.union, parts)) if parts else None
    return KeptRows(scanned, typed, len(columns))
