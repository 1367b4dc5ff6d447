"""Tasks on Spark: read the changes of many commits as a stream and as a batch, in one session.

A stream is a whole query with a new checkpoint, from `start` until it has read everything: its planning process, its offset log
and its commit log are part of it. The batch reads the same changes by `ls.table(start=…)`. What a query costs before it reads
anything, most of it the start of its planning process, is measured by one that finds nothing to read.
"""

from __future__ import annotations

import shutil
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

import lakelet
import lakelet.spark as ls
from benchmarks.contender import serve
from benchmarks.spark.spark_turns import Turn, session, take_turns

SEED = 20261116
TABLE = "bench.t"


def changes(folder: str, rows: int, commits: int, written: int, buckets: int, rounds: int) -> dict[str, Any]:
    """A table of `rows`, keyed where it has buckets, and commits of `written` rows each, of which half have new keys."""
    place = f"{folder}/lake"
    _make(place, rows, commits, written, buckets)
    checkpoint = f"{folder}/checkpoint"
    with session(folder) as spark:

        def streamed(mode: str, options: dict[str, str], _: int) -> None:
            frame = ls.read_stream(spark, place, TABLE, scan_mode=mode, changelog=True, options=options)
            writer = frame.writeStream.format("noop").trigger(availableNow=True)
            query = writer.option("checkpointLocation", checkpoint).start()
            query.awaitTermination()

        def fresh(_: int) -> None:
            shutil.rmtree(checkpoint, ignore_errors=True)

        def batch(_: int) -> None:
            _drained(ls.table(spark, place, TABLE, start=1))

        everything = partial(streamed, "from-snapshot", {"scan.snapshot-id": "2"})
        nothing = partial(streamed, "latest", {})
        turns = {"batch": Turn(batch), "stream": Turn(everything, fresh), "empty stream": Turn(nothing, fresh)}
        return take_turns(rounds, turns)


def _drained(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _make(place: str, rows: int, commits: int, written: int, buckets: int) -> None:
    lake = lakelet.connect(place)
    lake.create_database("bench")
    columns = [("id", "BIGINT NOT NULL"), ("a", "DOUBLE"), ("b", "STRING")]
    keyed: dict[str, Any] = {"primary_key": ["id"], "options": {"bucket": str(buckets)}} if buckets else {}
    table = lake.create_table(TABLE, columns, **keyed)
    random = np.random.default_rng(SEED)
    table.write(_rows(np.arange(rows), random))
    # Snapshot 1 holds the first rows, whatever was compacted behind it.
    for number in range(commits):
        old = random.choice(rows, min(rows, written // 2), replace=False)
        new = rows + number * written + np.arange(written - len(old))
        table.write(_rows(np.concatenate([old, new]), random))


def _rows(ids: np.ndarray[Any, Any], random: np.random.Generator) -> pa.Table:
    texts = pa.array([f"text number {number % 1000}" for number in ids.tolist()])
    return pa.table({"id": ids, "a": random.random(len(ids)), "b": texts})


if __name__ == "__main__":
    serve(changes)
