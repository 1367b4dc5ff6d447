"""Map a function over independent work items on the executors: one result per item.

The items travel in the job's closure and each is one row of a range, so that only numbers pass through Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from lakelet.spark.session import default_parallelism
from lakelet.spark.task_outcome import outcome_batches
from lakelet.spark.write.write_job import collected, raise_first

Piece = TypeVar("Piece")
Result = TypeVar("Result")
_TASKS_PER_CORE = 8


def spread(
    spark: SparkSession, pieces: Sequence[Piece], work: Callable[[Piece], Result], what: str
) -> list[tuple[Piece, Result]]:
    """Each item with the result of `work`, in no order. Both must be picklable; `what` names the operation in errors."""
    if not pieces:
        return []
    count = min(len(pieces), _TASKS_PER_CORE * default_parallelism(spark))
    task = _PiecesTask(tuple(pieces), work)
    outcomes = collected(spark, spark.range(0, len(pieces), 1, count).toDF("piece"), task, what)
    raise_first(outcomes)
    return [(pieces[number], result) for outcome in outcomes for number, result in outcome.value or ()]


@dataclass(frozen=True, slots=True)
class _PiecesTask(Generic[Piece, Result]):
    pieces: tuple[Piece, ...]
    work: Callable[[Piece], Result]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from outcome_batches(lambda: self._results(batches))

    def _results(self, batches: Iterable[pa.RecordBatch]) -> list[tuple[int, Result]]:
        numbers = [number for batch in batches for number in batch.column(0).to_pylist()]
        return [(number, self.work(self.pieces[number])) for number in numbers]
