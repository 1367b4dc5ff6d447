"""A compaction's Spark job that ends early when its caller gives it up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from lakelet.compact.progress import CompactionCancelled
from lakelet.spark.jobs.tagged_jobs import end_jobs, tagged_jobs

_LOOK_SECONDS = 0.2


@contextmanager
def ended_job(spark: SparkSession, tag: str, stopped: Callable[[], bool]) -> Iterator[None]:
    """Jobs of the block end once it is `stopped`, and CompactionCancelled is raised; what is done by then is not undone."""
    if stopped():
        raise CompactionCancelled
    over = threading.Event()
    was_stopped = threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK_SECONDS):
            if stopped():
                was_stopped.set()
                end_jobs(spark, tag)

    watching = threading.Thread(target=watch, name="lakelet-ended-job", daemon=True)
    watching.start()
    try:
        with tagged_jobs(spark, tag):
            yield
    except Exception:
        if was_stopped.is_set():
            raise CompactionCancelled from None
        raise
    finally:
        over.set()
        watching.join()
