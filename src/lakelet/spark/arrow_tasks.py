"""Run a Python task over the Arrow batches of a DataFrame (mapInArrow), whatever its columns are called.

PySpark names the columns that it hands to a task without quoting them, and then fails to find `a.b`. So columns travel by
position, and the task sees them under their own names again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from lakelet.spark.workers import prepare_workers

Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def mapped(frame: DataFrame, task: Task, schema: T.StructType | str) -> DataFrame:
    """The DataFrame of the rows that a task yields for each Spark partition."""
    prepare_workers(frame.sparkSession)
    names = tuple(frame.columns)
    return frame.toDF(*(f"c{place}" for place in range(len(names)))).mapInArrow(_Named(task, names), schema)


@dataclass(frozen=True, slots=True)
class _Named:
    task: Task
    names: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.task(batch.rename_columns(self.names) for batch in batches)
