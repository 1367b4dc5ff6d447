"""`ls.replay_cdc`: apply events of a quarantine again, once their reason is gone; each once, whatever fails between.

    rows that can be applied now are marked with the replay's id, in one commit of the quarantine
      ─ each table gets them in one commit of the user `cdc-replay-<id>`
      ─ marked rows are deleted from the quarantine

A replay that was cut short is finished by the next one. A table that has the commit of that user has all of its marked rows;
rows for the others are tried again, and those that no longer can be applied lose their mark.
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
from lakelet.spark.cdc.arguments import CdcArguments, settings_of
from lakelet.spark.cdc.batch import planned_batch, quarantine_rows, write_targets
from lakelet.spark.cdc.commit import CdcIdentity, upsert_rows
from lakelet.spark.cdc.quarantine import COLUMNS, KEY, check_quarantine, replayed_frame
from lakelet.spark.cdc.settings import CdcSettings
from lakelet.spark.cdc.target import lake_of
from lakelet.spark.opened_table import open_table
from lakelet.spark.read.table_frame import table as table_frame

_USER = "cdc-replay-"


@dataclass(frozen=True, slots=True)
class ReplayCounts:
    """What became of a replay: rows that were applied, and rows that are still in quarantine."""

    applied: int
    remaining: int


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
        pending = self.rows().filter("replay IS NULL")
        with planned_batch(replayed_frame(pending), self.settings, only=pending) as batch:
            if not batch.targets:
                return 0
            good = [one.good.select(*KEY, F.lit(one.name).alias("now")) for one in batch.targets]
            able = reduce(DataFrame.union, good).distinct().localCheckpoint()
            names = sorted(str(line["now"]) for line in able.select("now").distinct().collect())
            if not names:
                return 0
            if not overwrite:
                _check_sequence(names, self.settings)
            # A row of events with a poison part beside a good one, as a changed key has, is no good row.
            bad = batch.poison().select(*KEY).distinct()
            id = open_table(self.settings.warehouse, self.settings.quarantine, self.settings.options).home.ids.uuid()
            marked = pending.join(able, list(KEY)).join(bad, list(KEY), "left_anti")
            marked = marked.withColumn("target", F.col("now")).withColumn("replay", F.lit(id))
            columns = [name for name, _ in COLUMNS]
            upsert_rows(marked.select(*columns), self.settings.quarantine, self.settings, None, kinds=None)
        return self._finish(id)

    def _finish(self, id: str) -> int:
        identity = CdcIdentity(f"{_USER}{id}", 0)
        marked = self.rows().filter(F.col("replay") == id)
        names = [str(line["target"]) for line in marked.select("target").distinct().collect()]
        open_names = [name for name in names if not self._has(name, identity)]
        due = marked.filter(F.col("target").isin(open_names)) if open_names else marked.limit(0)
        if open_names:
            with planned_batch(replayed_frame(due), self.settings, only=due) as batch:
                # Rows that can no longer be applied lose their mark: they are upserted by their key, however often.
                quarantine_rows(batch, self.settings, None)
                write_targets(batch, self.settings, identity)
        table = lake_of(self.settings).table(self.settings.quarantine)
        count = self.rows().filter(F.col("replay") == id).count()
        table.delete(where=f"replay = '{id}'")
        return count

    def _has(self, name: str, identity: CdcIdentity) -> bool:
        """Whether a table has the commit of a replay."""
        if not lake_of(self.settings).table_exists(name):
            return False
        table = lake_of(self.settings).table(name)
        return table.new_commit(identity.user, identity.batch_id).look_back()[1] is not None


def _check_sequence(names: list[str], settings: CdcSettings) -> None:
    lake = lake_of(settings)
    without = [name for name in names if not TableOptions(lake.table(name).schema.options).get(SEQUENCE_FIELD)]
    if without:
        raise InvalidError(
            f"{', '.join(without)}: without a 'sequence.field' an event of the quarantine would take the place of newer rows; "
            "overwrite=True says that it may"
        )
