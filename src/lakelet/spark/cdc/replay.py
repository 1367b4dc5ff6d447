"""`ls.replay_cdc`: apply events of a quarantine again, once their reason is gone; each once, whatever fails between.

    rows that can be applied now are marked with the replay's id, in one commit of the quarantine, its claim
      ─ each table gets them in one commit of the user `cdc-replay-<id>`
      ─ marked rows are deleted from the quarantine

Claims are the commits of the user `cdc-replay`, and are numbered: two replays that read the quarantine at once want the same
number, and the one that comes second marks nothing, and begins anew.

A replay that was cut short, or is still at it, is finished by the next one. A table that has the commit of that user has all of
its marked rows; rows for the others are tried again, and those that no longer can be applied lose their mark.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import reduce
from typing import Unpack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakelet.errors import InvalidError
from lakelet.options import SEQUENCE_FIELD, TableOptions
from lakelet.spark.call_sites import UnrecordedCallSites
from lakelet.spark.cdc.arguments import CdcArguments, settings_of
from lakelet.spark.cdc.batch import PlannedBatch, planned_batch, write_targets
from lakelet.spark.cdc.commit import CdcIdentity, upsert_named, upsert_rows
from lakelet.spark.cdc.earlier_attempt import has_batch
from lakelet.spark.cdc.quarantine import COLUMNS, EVENT_KEY, check_quarantine, replayed_frame
from lakelet.spark.cdc.rows.typed_rows import REASON
from lakelet.spark.cdc.settings import CdcSettings
from lakelet.spark.cdc.target import lake_of
from lakelet.spark.opened_table import OpenedTable, open_table
from lakelet.spark.read.table_frame import table as table_frame
from lakelet.spark.stream.write.batch_identity import last_batch

_CLAIMS = "cdc-replay"
_USER = "cdc-replay-"
_NAMES = [name for name, _ in COLUMNS]


@dataclass(frozen=True, slots=True)
class ReplayCounts:
    """What became of a replay: rows that were applied, and rows that are still in quarantine."""

    applied: int
    remaining: int


@UnrecordedCallSites()
def replay_cdc(
    spark: SparkSession,
    warehouse: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    **arguments: Unpack[CdcArguments],
) -> ReplayCounts:
    """Applies the events of the quarantine that can be applied now; the others stay there. The arguments are those of `sync_cdc`.

    An event of a quarantine may be older than what its table has. Where the table has a `sequence.field` the newer row stays;
    a table without one is refused, unless `overwrite` says that replayed events win.
    """
    settings = settings_of(warehouse, **arguments)
    check_quarantine(lake_of(settings), settings.quarantine)
    replay = _Replay(spark, settings)
    applied = replay.finish_earlier()
    applied += replay.run(overwrite=overwrite)
    return ReplayCounts(applied, replay.rows().count())


@dataclass(frozen=True, slots=True)
class _Replay:
    spark: SparkSession
    settings: CdcSettings

    def rows(self) -> DataFrame:
        """The quarantine's rows of the format that were for the table, or for any of the database, as of now."""
        settings, target = self.settings, F.col("target")
        found = table_frame(self.spark, settings.warehouse, settings.quarantine, options=settings.options)
        found = found.filter(F.col("format") == settings.format)
        if settings.route.table is not None:
            return found.filter(target == settings.route.table)
        return found.filter(target.isNull() | target.startswith(f"{settings.route.database}."))

    def finish_earlier(self) -> int:
        """Finishes replays that were cut short."""
        ids = self.rows().filter("replay IS NOT NULL").select("replay").distinct().collect()
        return sum(self._finish(str(line["replay"])) for line in sorted(ids))

    def run(self, *, overwrite: bool) -> int:
        """Marks the rows that can be applied, and applies them."""
        while True:
            opened = self._opened()
            # The number comes first: a claim that is made after the rows were read has it, or a higher one.
            last = last_batch(opened.home, _CLAIMS)
            claim = CdcIdentity(_CLAIMS, 0 if last is None else last + 1)
            id = opened.home.ids.uuid()
            if not self._mark(id, claim, overwrite=overwrite):
                return 0
            if not self._marked(id).isEmpty():
                return self._finish(id)

    def _mark(self, id: str, claim: CdcIdentity, *, overwrite: bool) -> bool:
        """Marks the rows that can be applied, unless the claim is another replay's; whether there are such rows."""
        pending = self.rows().filter("replay IS NULL")
        with planned_batch(replayed_frame(pending), self.settings, only=pending) as batch:
            if not batch.targets:
                return False
            able = _able(batch).localCheckpoint()
            names = sorted(str(line["now"]) for line in able.select("now").distinct().collect())
            if not names:
                return False
            if not overwrite:
                _check_sequence(names, self.settings)
            marked = pending.join(able, list(EVENT_KEY)).withColumn("target", F.col("now"))
            mark_rows(marked.withColumn("replay", F.lit(id)).select(*_NAMES), self.settings, claim)
            return True

    def _finish(self, id: str) -> int:
        identity = CdcIdentity(f"{_USER}{id}", 0)
        marked = self._marked(id)
        names = [str(line["target"]) for line in marked.select("target").distinct().collect()]
        open_names = [name for name in names if not has_batch(self.settings, name, identity)]
        if open_names:
            due = marked.filter(F.col("target").isin(open_names))
            with planned_batch(replayed_frame(due), self.settings, only=due) as batch:
                self._unmark(due, batch)
                write_targets(batch, self.settings, identity)
        table = lake_of(self.settings).table(self.settings.quarantine)
        count = self._marked(id).count()
        table.delete(where=f"replay = '{id}'")
        return count

    def _unmark(self, due: DataFrame, batch: PlannedBatch) -> None:
        """Takes the mark from rows that can no longer be applied: they are upserted by their key, however often. Those that
        these arguments send to no table are among them."""
        left = due.join(_able(batch), list(EVENT_KEY), "left_anti") if batch.targets else due
        if left.isEmpty():
            return
        if batch.targets or batch.refused:
            reasons = batch.poison().select(*EVENT_KEY, F.col(REASON).alias("now")).dropDuplicates(list(EVENT_KEY))
            left = left.join(reasons, list(EVENT_KEY), "left").withColumn("reason", F.coalesce("now", "reason"))
        unmarked = left.withColumn("replay", F.lit(None).cast("string")).select(*_NAMES)
        upsert_rows(unmarked, self.settings.quarantine, self.settings, None, kinds=None)

    def _marked(self, id: str) -> DataFrame:
        return self.rows().filter(F.col("replay") == id)

    def _opened(self) -> OpenedTable:
        return open_table(self.settings.warehouse, self.settings.quarantine, self.settings.options)


def mark_rows(rows: DataFrame, settings: CdcSettings, claim: CdcIdentity) -> None:
    """Writes marked rows into the quarantine, unless another replay has made this claim."""
    upsert_named(rows, settings.quarantine, settings, claim)


def _able(batch: PlannedBatch) -> DataFrame:
    """The rows of events that can be applied, and the table (`now`) that each goes to."""
    good = [one.good.select(*EVENT_KEY, F.lit(one.name).alias("now")) for one in batch.targets]
    # A row of events with a poison part beside a good one is no good row.
    bad = batch.poison().select(*EVENT_KEY).distinct()
    return reduce(DataFrame.union, good).distinct().join(bad, list(EVENT_KEY), "left_anti")


def _check_sequence(names: list[str], settings: CdcSettings) -> None:
    lake = lake_of(settings)
    without = [name for name in names if not TableOptions(lake.table(name).schema.options).get(SEQUENCE_FIELD)]
    if without:
        raise InvalidError(
            f"{', '.join(without)}: without a 'sequence.field' an event of the quarantine would take the place of newer rows; "
            "overwrite=True says that it may"
        )
