"""Keep the rows of a frame on the executors, so that several jobs read them without computing them again.

A local checkpoint rather than a cache: a frame over it has a plan of one step. Spark analyses, compares and optimises the whole
plan of a cached frame for every job that reads it, which took longer than the jobs of a small batch. Rows that are
lost with an executor fail the batch, which is repeated.

The plan is made without propagating constraints: Spark derives them from every alias of a projection, and expressions that are
used in several columns, as the values of events are, made it work for minutes where a table has twenty columns.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from lakelet.spark.session import is_connect
from lakelet.spark.session import settings as session_settings

_PLANNING = {"spark.sql.constraintPropagation.enabled": "false"}
# Of packs of events (`event_packs`) ten thousand, as many rows as a batch for Python has, are gigabytes. Spark asks for this
# limit when a job runs, so that packs are read by one of our own.
_PACKS = {"spark.sql.execution.arrow.maxRecordsPerBatch": "64"}


def keep_rows(frame: DataFrame, *, of_packs: bool = False) -> DataFrame:
    """A frame of the same rows, kept by the first job that reads them; at once and in small batches where, `of_packs`, tasks in
    Python read packs of events."""
    with session_settings(frame.sparkSession, _PLANNING | (_PACKS if of_packs else {})):
        return frame.localCheckpoint(eager=of_packs)


def forget_rows(kept: DataFrame) -> None:
    """Removes the rows of `keep_rows`; without it they stay until the JVM collects them."""
    if not is_connect(kept.sparkSession):
        kept._jdf.queryExecution().logical().rdd().unpersist(False)
