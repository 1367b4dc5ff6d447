"""Apply one batch of change events: discover its tables, evolve them, put poison aside, write each table once.

    events ─ discovery (one job) ─ tables created and evolved on the driver ─ rows in the tables' types
           ─ poison rows to the quarantine, first, so that no later failure loses them
           ─ the newest row of each key, a commit for each table

A batch with an identity may be repeated after a failure at any place: each commit is made once, and each row is decided once,
also where tables were altered meanwhile (`earlier_attempt`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from typing import Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.types import Field
from lakelet.spark.call_sites import UnrecordedCallSites
from lakelet.spark.cdc.commit import CdcIdentity, replace_rows, upsert_rows
from lakelet.spark.cdc.discovery import Discovery, EventGroup
from lakelet.spark.cdc.earlier_attempt import has_batch, put_aside
from lakelet.spark.cdc.envelope.event_columns import origin_of
from lakelet.spark.cdc.kept_events import RECORDED, Chosen, KeptEvents, kept_events
from lakelet.spark.cdc.quarantine import batch_tag, create_quarantine, quarantined
from lakelet.spark.cdc.rows.newest import newest
from lakelet.spark.cdc.rows.table_rows import KeptRows, table_rows
from lakelet.spark.cdc.rows.typed_rows import EVENT, PLACE, REASON, RowShape, order
from lakelet.spark.cdc.settings import CdcSettings
from lakelet.spark.cdc.target import NoKeyError, lake_of, prepared
from lakelet.spark.opened_table import OpenedTable, open_table


@dataclass(frozen=True, slots=True)
class CdcCounts:
    """What became of a batch: rows of events, those with nothing to do, those in quarantine, and the snapshot of each table."""

    rows: int
    skipped: int
    quarantined: int
    snapshots: dict[str, Snapshot | None] = field(default_factory=dict)


class _BytesError(Exception):
    """Events have to be put aside whose bytes were not kept."""


class TargetCheck(Protocol):
    """Looks at a target before a batch changes it: whether it is the table that earlier batches went to."""

    def __call__(self, name: str, opened: OpenedTable | None) -> None:
        """Called with None before a table is made, then with the table."""


@dataclass(frozen=True, slots=True)
class BatchTarget:
    """A table of a batch, and the rows for it, good and poison."""

    name: str
    schema: TableSchema
    groups: tuple[EventGroup, ...]
    columns: tuple[Field, ...]
    order: str
    kept: KeptRows

    @property
    def rows(self) -> DataFrame:
        """All rows."""
        return self.kept.all

    def forget(self) -> None:
        """Removes the rows from the executors."""
        self.kept.forget()

    @property
    def good(self) -> DataFrame:
        """The rows that can be written."""
        return self.rows.filter(f"{REASON} IS NULL")

    @property
    def bad(self) -> DataFrame:
        """The rows that cannot."""
        return self.rows.filter(f"{REASON} IS NOT NULL")


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """A batch whose tables hold its columns: the rows of each, and the events that can go to none. `settled` are the tables
    that have it already."""

    events: KeptEvents
    found: Discovery
    targets: tuple[BatchTarget, ...]
    settled: tuple[str, ...]
    refused: tuple[DataFrame, ...]
    whole: bool

    def poison(self) -> DataFrame:
        """All rows that cannot be applied, with the reason and the target."""
        rows = [target.bad.withColumn("target", _text(target.name)) for target in self.targets]
        found = reduce(DataFrame.unionByName, [one.select(REASON, "target", *EVENT) for one in (*self.refused, *rows)])
        return found.withColumn("origin", origin_of())


@UnrecordedCallSites()
def apply_batch(
    frame: DataFrame, settings: CdcSettings, identity: CdcIdentity | None, check: TargetCheck | None = None
) -> CdcCounts:
    """Applies the events of a frame."""
    try:
        return _applied(frame, settings, identity, check, whole=settings.memory.expects_poison)
    except _BytesError:
        return _applied(frame, settings, identity, check, whole=True)


def _applied(
    frame: DataFrame,
    settings: CdcSettings,
    identity: CdcIdentity | None,
    check: TargetCheck | None,
    *,
    whole: bool,
) -> CdcCounts:
    aside = put_aside(frame.sparkSession, settings, identity)
    before = 0 if aside is None else aside.count()
    with planned_batch(frame, settings, identity=identity, aside=aside, check=check, whole=whole) as batch:
        # What an earlier attempt put aside is committed under the batch's identity: more rows are a commit of their own, which
        # is known by the batch's name in them.
        count = quarantine_rows(batch, settings, identity, named=aside is None)
        settings.memory.ended(poison=count > 0)
        made = write_targets(batch, settings, identity)
        return CdcCounts(batch.found.rows + before, batch.found.skipped, count + before, made)


@contextmanager
def planned_batch(
    frame: DataFrame,
    settings: CdcSettings,
    *,
    only: DataFrame | None = None,
    identity: CdcIdentity | None = None,
    aside: DataFrame | None = None,
    check: TargetCheck | None = None,
    whole: bool = True,
) -> Iterator[PlannedBatch]:
    """A batch ready to be written, kept on the executors meanwhile. `only` has the `origin` and `row_index` of the rows of a
    quarantine to take, and the `target` that they were for; all by default. Rows that are `aside` are left out, and tables that
    have the batch of this identity. Unless `whole`, the bytes of events that can be read are left out, which its quarantine may
    ask for."""
    with kept_events(frame, settings, Chosen(only, aside), whole=whole) as (kept, found):
        refused: list[DataFrame] = []
        if found.poison:
            refused.append(kept.refused.withColumn("target", _text(None)))
        targets: list[BatchTarget] = []
        settled: list[str] = []
        try:
            for name, routed in _routed(kept, found, settings, refused).items():
                due, groups = (kept, routed) if only is None else _recorded(kept, name, routed)
                if not groups:
                    continue
                if identity is not None and not identity.is_new and has_batch(settings, name, identity):
                    settled.append(name)
                    continue
                try:
                    targets.append(_target(frame, due, name, groups, settings, check))
                except NoKeyError as error:
                    refused += [_refused(group, kept, str(error), name) for group in groups]
            if settings.truncate != "apply":
                refused += [_truncates(target, kept) for target in targets if _has_truncate(target)]
            if len(refused) > bool(found.poison) and not whole:
                raise _BytesError
            yield PlannedBatch(kept, found, tuple(targets), tuple(settled), tuple(refused), whole)
        finally:
            for target in targets:
                target.forget()


def _routed(
    events: KeptEvents, found: Discovery, settings: CdcSettings, refused: list[DataFrame]
) -> dict[str, list[EventGroup]]:
    routed: dict[str, list[EventGroup]] = {}
    for group in found.groups:
        if group.wrong is not None:
            refused.append(_refused(group, events, group.wrong, None))
            continue
        try:
            target = settings.target_of(group.source)
        except InvalidError as error:
            refused.append(_refused(group, events, str(error), None))
            continue
        if target is not None:
            routed.setdefault(target, []).append(group)
    return routed


def _recorded(kept: KeptEvents, name: str, groups: Sequence[EventGroup]) -> tuple[KeptEvents, list[EventGroup]]:
    """Of the events of a quarantine those that were on their way to a table, or to none: others were another call's, with its
    own rules of where they go."""
    due = kept.all.filter(F.col(RECORDED).isNull() | (F.col(RECORDED) == F.lit(name)))
    names = ["database_name", "schema_name", "table_name"]
    found = {tuple(line) for line in due.filter(F.col("operation").isNotNull()).select(*names).distinct().collect()}
    return KeptEvents(None, due, parsed_hashes=kept.parsed_hashes), [
        one for one in groups if (one.source.database, one.source.schema, one.source.name) in found
    ]


def _refused(group: EventGroup, events: KeptEvents, reason: str, target: str | None) -> DataFrame:
    """All events of a group, with a reason."""
    return group.events(events.all).withColumn("reason", F.lit(reason)).withColumn("target", _text(target))


def _has_truncate(target: BatchTarget) -> bool:
    return any(group.truncates for group in target.groups)


def _truncates(target: BatchTarget, events: KeptEvents) -> DataFrame:
    reason = "a truncate, which is applied with truncate='apply' only"
    chosen = [_refused(group, events, reason, target.name) for group in target.groups]
    return reduce(DataFrame.unionByName, chosen).filter(F.col("operation") == "t")


def _text(value: str | None) -> Column:
    return F.lit(value).cast("string")


def _target(
    frame: DataFrame,
    events: KeptEvents,
    name: str,
    groups: Sequence[EventGroup],
    settings: CdcSettings,
    check: TargetCheck | None,
) -> BatchTarget:
    lake = lake_of(settings)
    if check is not None:
        there = lake.table_exists(name)
        check(name, open_table(settings.warehouse, name, settings.options) if there else None)
    schema = prepared(lake, name, groups, settings)
    if check is not None:
        check(name, open_table(settings.warehouse, name, settings.options))
    shape = RowShape(schema, settings.style, settings.order_of(frame), settings.made)
    columns = shape.columns([group.fields for group in groups])
    rows = table_rows(events, shape, groups, columns, settings.memory)
    return BatchTarget(name, schema, tuple(groups), columns, shape.order, rows)


def quarantine_rows(
    batch: PlannedBatch, settings: CdcSettings, identity: CdcIdentity | None, *, named: bool = True
) -> int:
    """Writes poison rows into the quarantine and counts them; in the batch's commit there, or one that has no name."""
    has_poison = _has_poison(batch.targets)
    if has_poison and not batch.whole:
        raise _BytesError
    if not batch.refused and not has_poison:
        return 0
    lake = lake_of(settings)
    tag = None if identity is None else batch_tag(identity.user, identity.batch_id)
    rows = quarantined(
        batch.poison(), settings.route, batch=tag, format=settings.format, now_ms=lake.now_ms()
    ).persist()
    try:
        count = rows.count()
        if count:
            create_quarantine(lake, settings.quarantine)
            upsert_rows(rows, settings.quarantine, settings, identity if named else None, kinds=None)
        return count
    finally:
        rows.unpersist()


def _has_poison(targets: Sequence[BatchTarget]) -> bool:
    checked = [target.kept.typed for target in targets if target.kept.typed is not None]
    counts = [rows.selectExpr(f"count({REASON}) AS bad") for rows in checked]
    return bool(counts) and any(line["bad"] for line in reduce(DataFrame.union, counts).collect())


def write_targets(
    batch: PlannedBatch, settings: CdcSettings, identity: CdcIdentity | None
) -> dict[str, Snapshot | None]:
    """Writes the newest row of each key, a commit for each table; those that have the batch only finish what follows it."""
    made = {name: upsert_rows(batch.events.all, name, settings, identity, kinds=None) for name in batch.settled}
    for target in batch.targets:
        if settings.truncate == "apply" and _has_truncate(target):
            made[target.name] = _replace(batch, target, settings, identity)
            continue
        folded = newest(target.good, target.schema, target.columns)
        made[target.name] = upsert_rows(folded, target.name, settings, identity, kinds=folded.columns[-1])
    return made


def _replace(
    batch: PlannedBatch, target: BatchTarget, settings: CdcSettings, identity: CdcIdentity | None
) -> Snapshot | None:
    """Empties a table as its last truncate did, and writes the rows that came after it."""
    conditions = " OR ".join(f"({group.condition})" for group in target.groups)
    truncates = batch.events.all.filter(f"({conditions}) AND operation = 't'")
    last = truncates.select(order(target.order, F.lit("+U")).alias("emptied")).agg(F.max("emptied").alias("emptied"))
    later = target.good.crossJoin(F.broadcast(last)).filter(F.col(PLACE) > F.col("emptied")).drop("emptied")
    folded = newest(later, target.schema, target.columns)
    kind = folded.columns[-1]
    return replace_rows(folded.filter(F.col(kind).isin("+I", "+U")).drop(kind), target.name, settings, identity)
