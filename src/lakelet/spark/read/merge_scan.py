"""Read splits with Lakelet's own reader in executor tasks: the part of a scan that Spark's reader cannot do.

Each task reads some splits, with projection and predicate pushed into the reader, and yields Arrow batches to Spark. The splits
and the store's credentials travel pickled inside the function, so that no plan's text shows a path or a credential.
"""

from __future__ import annotations

import heapq
import pickle
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from lakelet.model.split import Split
from lakelet.model.types import Field
from lakelet.sink.rows.batch_slices import pieces
from lakelet.spark.session import default_parallelism
from lakelet.spark.types import spark_schema, to_spark_arrow
from lakelet.spark.workers import prepare_workers
from lakelet.table.read.table_scan import TableScan

_TASK_BYTES = 64 << 20
OPEN_FILE_BYTES = 1 << 20
_BATCH_BYTES = 32 << 20
_BATCH_ROWS = 1 << 16

Item = TypeVar("Item")
Task: TypeAlias = Callable[[int], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class SplitTasks:
    """Task number n reads the n-th part of the splits."""

    scan: bytes
    parts: tuple[bytes, ...]
    fields: tuple[Field, ...]

    def __call__(self, number: int) -> Iterator[pa.RecordBatch]:
        scan: TableScan = unpacked(self.scan)
        # One reader for all splits: it reads files of several of them at once.
        for rows in scan.batches_of(unpacked(self.parts[number])):
            yield to_spark_arrow(rows, self.fields)


def merge_frame(spark: SparkSession, scan: TableScan, splits: Sequence[Split]) -> DataFrame:
    """The rows of splits of the scan's plan, read by our reader."""
    parts = balanced(splits, default_parallelism(spark))
    fields = tuple(scan.schema.field(name) for name in scan.columns)
    tasks = SplitTasks(packed(scan), tuple(packed(part) for part in parts), fields)
    return task_frame(spark, tasks, len(parts), spark_schema(fields))


def task_frame(spark: SparkSession, task: Task, count: int, schema: T.StructType) -> DataFrame:
    """The rows that `count` tasks yield, task by task."""

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for rows in task(number):
                    yield from small_batches(rows)

    prepare_workers(spark)
    return spark.range(0, count, 1, count).mapInArrow(run, schema)


def small_batches(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows in batches small enough for the JVM, however wide they are."""
    return pieces(rows, _BATCH_BYTES, _BATCH_ROWS)


def balanced(splits: Sequence[Split], parallelism: int) -> list[list[Split]]:
    """The splits in as many parts as tasks are worthwhile, of about equal size; splits of a part keep their order."""
    return balanced_parts(splits, [_cost(split) for split in splits], parallelism)


def balanced_parts(items: Sequence[Item], costs: Sequence[int], parallelism: int) -> list[list[Item]]:
    """Items to read, balanced by their bytes over as many parts as tasks are worthwhile."""
    count = max(1, min(len(items), max(parallelism, -(-sum(costs) // _TASK_BYTES))))
    parts: list[list[int]] = [[] for _ in range(count)]
    loads = [(0, part) for part in range(count)]
    for place in sorted(range(len(items)), key=lambda place: -costs[place]):
        load, part = heapq.heappop(loads)
        parts[part].append(place)
        heapq.heappush(loads, (load + costs[place], part))
    return [[items[place] for place in sorted(part)] for part in parts]


def _cost(split: Split) -> int:
    return sum(max(file.size, OPEN_FILE_BYTES) for file in split.files)


def packed(value: object) -> bytes:
    """A value pickled for an executor."""
    return zlib.compress(pickle.dumps(value), 1)


def unpacked(data: bytes) -> Any:
    """The unpickled value."""
    return pickle.loads(zlib.decompress(data))
