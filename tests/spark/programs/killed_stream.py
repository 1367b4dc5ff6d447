"""Replays the changes of a table into another by a stream and is killed in one of its batches, before or after the write.

killed_stream.py WAREHOUSE SOURCE TARGET CHECKPOINT BATCH before|after
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import lakelet
from lakelet.spark.session import local_session
from lakelet.spark.stream.read.stream_frame import read_stream
from tests.spark.java import PATIENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OPTIONS = {"scan.snapshot-id": "1", "read.stream.maxFilesPerTrigger": "2"}


def replay(
    spark: SparkSession,
    warehouse: str,
    source: str,
    target: str,
    checkpoint: str,
    kill: tuple[int, str] | None = None,
    seen: list[int] | None = None,
) -> None:
    """Reads what there is, two files a batch, and writes it with the batch's number as identity."""
    table = lakelet.connect(warehouse).table(target)

    def take(batch: DataFrame, number: int) -> None:
        if kill == (number, "before"):
            os.kill(os.getpid(), signal.SIGKILL)
        rows = batch.toArrow()
        if rows.num_rows:
            table.write(rows, kinds="_row_kind", commit_user="replay", commit_identifier=number)
        if seen is not None:
            seen.append(number)
        if kill == (number, "after"):
            os.kill(os.getpid(), signal.SIGKILL)

    frame = read_stream(spark, warehouse, source, scan_mode="from-snapshot", changelog=True, options=OPTIONS)
    writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()


def main(warehouse: str, source: str, target: str, checkpoint: str, batch: str, moment: str) -> None:
    spark = local_session(config={**PATIENT, "spark.driver.memory": "768m", "spark.log.level": "ERROR"})
    replay(spark, warehouse, source, target, checkpoint, (int(batch), moment))


if __name__ == "__main__":
    main(*sys.argv[1:])
