"""What an earlier attempt of a batch left: events that it put aside, and tables that have its commit.

An attempt commits its poison to the quarantine, then each table. Between two attempts a table may be altered, so that a row
that fitted is poison now, or the reverse. Each row is decided once:

    the quarantine has it from this batch    it stays there, and is left out of everything else, until a replay takes it
    its table has the commit of this batch   it is in the table, or was put aside before: nothing is done for that table
    neither                                  decided by this attempt
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakelet.spark.cdc.commit import CdcIdentity
from lakelet.spark.cdc.quarantine import EVENT_KEY, batch_tag
from lakelet.spark.cdc.settings import CdcSettings
from lakelet.spark.cdc.target import lake_of
from lakelet.spark.read.table_frame import table as table_frame


def put_aside(spark: SparkSession, settings: CdcSettings, identity: CdcIdentity | None) -> DataFrame | None:
    """The `origin` and `row_index` of the events that earlier attempts of a batch put aside; None where there were none."""
    if identity is None or identity.is_new or not has_batch(settings, settings.quarantine, identity):
        return None
    found = table_frame(spark, settings.warehouse, settings.quarantine, options=settings.options)
    own = (F.col("mirror") == settings.route.mirror) & (F.col("batch") == batch_tag(identity.user, identity.batch_id))
    return found.filter(own).select(*EVENT_KEY)


def has_batch(settings: CdcSettings, name: str, identity: CdcIdentity) -> bool:
    """Whether a table has the commit of a batch."""
    lake = lake_of(settings)
    if not lake.table_exists(name):
        return False
    return lake.table(name).new_commit(identity.user, identity.batch_id).look_back()[1] is not None
