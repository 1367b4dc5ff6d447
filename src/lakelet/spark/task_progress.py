"""Report the progress of the Spark jobs of a block periodically from a thread: tasks finished, tasks known so far."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

_PAUSE_SECONDS = 0.1


@contextmanager
def task_progress(spark: SparkSession, tell: Callable[[int, int], None]) -> Iterator[None]:
    """Calls `tell` with the numbers of finished and of known tasks while the block runs, and once at its end."""
    ended = threading.Event()
    seen: dict[int, tuple[int, int]] = {}
    tracker = spark.sparkContext.statusTracker()

    def look() -> None:
        active = set(tracker.getActiveStageIds())
        for stage in active:
            info = tracker.getStageInfo(stage)
            if info is not None:
                seen[stage] = (info.numCompletedTasks, info.numTasks)
        for stage in seen.keys() - active:
            seen[stage] = (seen[stage][1], seen[stage][1])
        tell(sum(done for done, _ in seen.values()), sum(tasks for _, tasks in seen.values()))

    def watch() -> None:
        while not ended.wait(_PAUSE_SECONDS):
            look()

    watcher = threading.Thread(target=watch, name="lakelet-task-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
    look()
