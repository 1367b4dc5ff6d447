"""Apply one batch of change events: discover its tables, evolve them, put poison aside, write each table once.

    events ─ discovery (one job) ─ tables created and evolved on the driver ─ rows in the tables' types
           ─ poison rows to the quarantine, first, so that no later failure loses them
           ─ the newest row of each key, a commit for each table

A batch with an identity may be repeated after a failure at any place: each commit is made once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.types import Field
from lakelet.spark.cdc.discovery import Discovery, EventGroup, discovered, hashed
from lakelet.spark.cdc.envelope.debezium import CutError
from lakelet.spark.cdc.newest import newest
from lakelet.spark.cdc.quarantine import KEY, create_quarantine, quarantined
from lakelet.spark.cdc.settings import CdcSettings
from lakelet.spark.cdc.target import NoKeyError, lake_of, prepared
from lakelet.spark.cdc.typed_rows import EVENT, REASON, RowShape, typed_rows
from lakelet.spark.opened_table import open_table
from lakelet.spark.write.table_write import write_frame
from lakelet.spark.write.write_request import WriteRequest


@dataclass(frozen=True, slots=True)
class CdcCounts:
    """What became of a batch: rows of events, those with nothing to do, those in quarantine, and the snapshot of each table."""

    rows: int
    skipped: int
    quarantined: int
    snapshots: dict[str, Snapshot | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CdcIdentity:
    """The commit user and the number of a batch."""

    user: str
    batch_id: int


@dataclass(frozen=True, slots=True)
class _Target:
    name: str
    schema: TableSchema
    groups: tuple[EventGroup, ...]
    columns: tuple[Field, ...]
    rows: DataFrame


def apply_batch(
    frame: DataFrame, settings: CdcSettings, identity: CdcIdentity | None, only: DataFrame | None = None
) -> CdcCounts:
    """Applies the events of a frame. `only` has the `origin` and `row_index` of the rows of events to take, all by default."""
    with _kept_events(frame, settings, only) as (events, found):
        refused: list[DataFrame] = [events.filter(F.col("reason").isNotNull()).withColumn("target", _text(None))]
        targets: list[_Target] = []
        for name, groups in _routed(events, found, settings, refused).items():
            try:
                targets.append(_target(frame, events, name, groups, settings))
            except NoKeyError as error:
                refused += [_refused(group, events, str(error), name) for group in groups]
        with _kept([target.rows for target in targets]) as kept:
            poison = [_poison(rows, target.name) for rows, target in zip(kept, targets, strict=True)]
            refused += [_truncates(target, events, settings) for target in targets if settings.truncate != "apply"]
            count = _quarantine(refused, poison, settings, identity)
            made = {
                target.name: _write(target, rows.filter(F.col(REASON).isNull()), events, settings, identity)
                for rows, target in zip(kept, targets, strict=True)
            }
    return CdcCounts(found.rows, found.skipped, count, made)


@contextmanager
def _kept_events(
    frame: DataFrame, settings: CdcSettings, only: DataFrame | None
) -> Iterator[tuple[DataFrame, Discovery]]:
    kept: list[DataFrame] = []

    def read(*, exact: bool) -> tuple[DataFrame, Discovery]:
        events = hashed(settings.events(frame, exact=exact))
        if only is not None:
            events = events.join(only.select(*KEY), list(KEY), "left_semi")
        kept.append(events.persist(StorageLevel.MEMORY_AND_DISK))
        return kept[-1], discovered(kept[-1], settings)

    try:
        try:
            found = read(exact=False)
        except CutError:
            found = read(exact=True)
        yield found
    finally:
        for one in kept:
            one.unpersist()


@contextmanager
def _kept(frames: Sequence[DataFrame]) -> Iterator[list[DataFrame]]:
    """The frames, kept on the executors: once for the poison, once for the rows."""
    kept = [frame.persist(StorageLevel.MEMORY_AND_DISK) for frame in frames]
    try:
        yield kept
    finally:
        for frame in kept:
            frame.unpersist()


def _routed(
    events: DataFrame, found: Discovery, settings: CdcSettings, refused: list[DataFrame]
) -> dict[str, list[EventGroup]]:
    routed: dict[str, list[EventGroup]] = {}
    for group in found.groups:
        try:
            target = settings.route.target(group.source)
        except InvalidError as error:
            refused.append(_refused(group, events, str(error), None))
            continue
        if target is not None:
            routed.setdefault(target, []).append(group)
    return routed


def _refused(group: EventGroup, events: DataFrame, reason: str, target: str | None) -> DataFrame:
    """All events of a group, with a reason."""
    return group.events(events).withColumn("reason", F.lit(reason)).withColumn("target", _text(target))


def _truncates(target: _Target, events: DataFrame, settings: CdcSettings) -> DataFrame:
    reason = "a truncate, which is applied with truncate='apply' only"
    chosen = [_refused(group, events, reason, target.name) for group in target.groups]
    return reduce(DataFrame.unionByName, chosen).filter(F.col("operation") == "t")


def _text(value: str | None) -> Column:
    return F.lit(value).cast("string")


def _target(
    frame: DataFrame, events: DataFrame, name: str, groups: Sequence[EventGroup], settings: CdcSettings
) -> _Target:
    schema = prepared(lake_of(settings), name, groups, settings)
    shape = RowShape(schema, settings.style, settings.order_of(frame), settings.made)
    columns = shape.columns([group.fields for group in groups])
    changes = events.filter(F.col("operation") != "t")
    parts = [typed_rows(group.events(changes), shape, group.fields, columns) for group in groups]
    return _Target(name, schema, tuple(groups), columns, reduce(DataFrame.union, parts))


def _poison(rows: DataFrame, target: str) -> DataFrame:
    return rows.filter(F.col(REASON).isNotNull()).withColumn("target", _text(target))


def _quarantine(
    refused: Sequence[DataFrame], poison: Sequence[DataFrame], settings: CdcSettings, identity: CdcIdentity | None
) -> int:
    """Writes poison rows into the quarantine and counts them."""
    chosen = [frame.select(REASON, "target", *EVENT) for frame in (*refused, *poison)]
    together = reduce(DataFrame.unionByName, chosen)
    lake = lake_of(settings)
    rows = quarantined(together, format=settings.format, now_ms=lake.now_ms()).persist()
    try:
        count = rows.count()
        if count:
            create_quarantine(lake, settings.quarantine)
            _commit(rows, settings.quarantine, settings, identity, kinds=None)
        return count
    finally:
        rows.unpersist()


def _write(
    target: _Target, rows: DataFrame, events: DataFrame, settings: CdcSettings, identity: CdcIdentity | None
) -> Snapshot | None:
    folded = newest(rows, target.schema, target.columns)
    return _commit(folded, target.name, settings, identity, kinds=folded.columns[-1])


def _commit(
    rows: DataFrame, name: str, settings: CdcSettings, identity: CdcIdentity | None, *, kinds: str | None
) -> Snapshot | None:
    user, number = (None, None) if identity is None else (identity.user, identity.batch_id)
    request = WriteRequest(mode="upsert", kinds=kinds, missing="default", commit_user=user, commit_identifier=number)
    return write_frame(rows, open_table(settings.warehouse, name, settings.options), request)
