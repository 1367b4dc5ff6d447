"""The executor task that writes rows into files of an Iceberg table and returns their commit data to the driver.

It writes through the same writer as local inserts and never talks to a catalog. A task's name has its partition and the
number of the attempt in it, so that attempts at one partition never write the same file. After an error its files are removed;
those of an attempt that is killed are the driver's to remove.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext

from lakelet.iceberg.catalog.library_errors import lakelet_errors
from lakelet.iceberg.commit_data import CommitData
from lakelet.iceberg.write.table_writer import TableWriter
from lakelet.iceberg.write.write_plan import WritePlan
from lakelet.model.schema import TableSchema
from lakelet.spark.iceberg.types import Times
from lakelet.spark.task_outcome import outcome_batches
from lakelet.spark.types import check_text
from lakelet.spark.write.write_task import NullRows


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """What one task wrote."""

    files: tuple[CommitData, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class InsertTask:
    """Writes the rows of one task. `schema` holds the table's columns."""

    plan: WritePlan
    schema: TableSchema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes the rows of a task and yields its outcome as a single row."""
        yield from outcome_batches(lambda: self.written(batches))

    def written(self, batches: Iterable[pa.RecordBatch]) -> TaskFiles:
        """Writes the rows and gives the files; an error leaves none."""
        nulls, times = NullRows(self.schema), Times(self.schema.fields)
        writer = TableWriter(self.plan, task_name(), threads=1)
        rows = 0
        try:
            with lakelet_errors(f"table {self.plan.table}"):
                for batch in batches:
                    rows += batch.num_rows
                    # All rows are checked, so that the error counts them, but none is written any more.
                    if nulls.found_in(batch) or nulls.count:
                        continue
                    check_text(batch)
                    writer.write(times.made(batch))
                nulls.check()
                return TaskFiles(tuple(writer.close()), rows)
        except BaseException:
            writer.abort()
            raise


def task_name() -> str:
    """The name of this attempt, which no other attempt of the application has."""
    context = TaskContext.get()
    return "local" if context is None else f"{context.partitionId():05d}-{context.taskAttemptId()}"
