"""Jobs with a tag, which any thread may end.

A session forgets in one thread which tags another one has given, so that its own `interruptTag` ends nothing from elsewhere. The
context of a classic session and the server of Spark Connect know the tags of all threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from lakelet.spark.session import is_connect


@contextmanager
def tagged_jobs(spark: SparkSession, tag: str) -> Iterator[None]:
    """Jobs that this thread begins in the block have a tag."""
    if is_connect(spark):
        spark.addTag(tag)
    else:
        spark.sparkContext.addJobTag(tag)
    try:
        yield
    finally:
        if is_connect(spark):
            spark.removeTag(tag)
        else:
            spark.sparkContext.removeJobTag(tag)


def end_jobs(spark: SparkSession, tag: str) -> None:
    """End the jobs with a tag; they fail where they run."""
    if is_connect(spark):
        spark.interruptTag(tag)
    else:
        spark.sparkContext.cancelJobsWithTag(tag)
