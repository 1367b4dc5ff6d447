"""The outcome that an executor task returns to the driver: one row of bytes, a pickled value or error.

A mistake in the data or in the call is such an outcome as well, not an exception: Spark would retry the task three
times and then show a page of JVM trace. Transient errors (a store that does not answer) are raised, so that Spark
retries.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import pyarrow as pa
from pyspark import TaskContext

from lakelet.errors import CommitUnknownError, LakeletError, UnavailableError

T = TypeVar("T")
OUTCOME_SCHEMA = "outcome binary"
_PASSING = (UnavailableError, CommitUnknownError)


@dataclass(frozen=True, slots=True)
class TaskOutcome(Generic[T]):
    """The outcome of one task: a value, or the error to raise on the driver. `repeated` says that it was not the first attempt
    in its stage; `number` is that of the attempt among all of the application, so that a gap reveals other attempts."""

    value: T | None
    error: LakeletError | None
    repeated: bool
    number: int


def outcome_batches(work: Callable[[], T]) -> Iterator[pa.RecordBatch]:
    """Runs the work of a task and yields its outcome as the single row that the driver collects."""
    context = TaskContext.get()
    repeated = context is not None and context.attemptNumber() > 0
    number = 0 if context is None else context.taskAttemptId()
    outcome: TaskOutcome[T]
    try:
        outcome = TaskOutcome(work(), None, repeated, number)
    except _PASSING:
        raise
    except LakeletError as error:
        outcome = TaskOutcome(None, error, repeated, number)
    yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(outcome)], pa.binary())], names=["outcome"])
