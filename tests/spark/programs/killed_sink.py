"""Streams files into two tables and is killed at one moment of one batch.

killed_sink.py '{"warehouse": …, "source": …, "checkpoint": …, "driver_rows": 0, "window": "before second", "batch": 1}'

    called ─ before first ─ after first ─ (before / after compaction of first) ─ before second ─ … ─ returned ─ Spark's log
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

import lakelet.spark as ls
from lakelet.spark.stream.write import query, table_sink
from lakelet.storage.decorated import DecoratedStore
from lakelet.storage.store import ObjectStore
from tests.spark.faults import OnDriver, opening_with
from tests.spark.java import PATIENT
from tests.spark.stream.sink_tables import file_stream, two_tables


class KilledAtSnapshot(DecoratedStore):
    """The process dies, as by `kill -9`, around a snapshot of a table, of a batch's rows or of the compaction after them."""

    def __init__(self, store: ObjectStore, window: str, batch: int) -> None:
        super().__init__(store)
        self._window = window
        self._batch = batch

    def put_if_absent(self, path: str, data: bytes, *, deferred: bool = False) -> bool:
        what = _commit(path, data, self._batch)
        if what is None or self._window not in (f"before {what}", f"after {what}"):
            return super().put_if_absent(path, data, deferred=deferred)
        if self._window.startswith("after "):
            super().put_if_absent(path, data, deferred=deferred)
        die()
        return False


def _commit(path: str, data: bytes, batch: int) -> str | None:
    """What a snapshot of a batch is: "first", or "compaction of first"; None for other files and batches."""
    if "/snapshot/snapshot-" not in path:
        return None
    snapshot, table = json.loads(data), path.split("/")[-3]
    if snapshot["commitIdentifier"] != batch:
        return None
    return f"compaction of {table}" if snapshot["commitKind"] == "COMPACT" else table


def die() -> None:
    """Ends this process as nothing can prevent."""
    os.kill(os.getpid(), signal.SIGKILL)


def kill_around_calls(window: str, batch: int) -> None:
    """The process dies before the sink is called for a batch, or when it has returned and Spark has not logged that yet."""
    original = query._StreamSink.__call__

    def called(sink: Any, df: DataFrame, batch_id: int) -> None:
        if (window, batch) == ("called", batch_id):
            die()
        original(sink, df, batch_id)
        if (window, batch) == ("returned", batch_id):
            die()

    query._StreamSink.__call__ = called  # type: ignore[method-assign]


def main(arguments: dict[str, Any]) -> None:
    spark = ls.local_session(config={**PATIENT, "spark.driver.memory": "768m", "spark.log.level": "ERROR"})
    window, batch = arguments["window"], arguments["batch"]
    kill_around_calls(window, batch)
    table_sink.open_table = opening_with(lambda store: OnDriver(KilledAtSnapshot(store, window, batch), store))
    two_tables(file_stream(spark, Path(arguments["source"])), arguments).awaitTermination()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
