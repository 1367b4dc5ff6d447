"""The changes between two versions of a table as a Spark DataFrame.

The same rows as `table.changes()`: `_row_kind` and the columns. Every snapshot of an append table records its own
changes, so that snapshots are assigned to tasks. Versions of a primary-key table are compared by key, which one task does,
streaming. Ids are reused after a rollback, so that tasks verify that the last snapshot is still the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from lakelet.commit.metadata.snapshots import latest_snapshot, read_snapshot
from lakelet.errors import InvalidError, NotFoundError
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.types import Field
from lakelet.predicate.row_filter import RowFilter, row_filter
from lakelet.spark.opened_table import OpenedTable
from lakelet.spark.read.merge_scan import packed, task_frame, unpacked
from lakelet.spark.session import default_parallelism
from lakelet.spark.types import arrow_of_spark, spark_schema, to_spark_arrow
from lakelet.storage.home import TableHome
from lakelet.table.read.changes import ROW_KIND, read_changes

_TASKS_PER_CORE = 4


@dataclass(frozen=True, slots=True)
class _Changes:
    """What all tasks share, beside the snapshot ranges assigned to each."""

    home: TableHome
    schema: TableSchema
    keep: RowFilter
    last: Snapshot


@dataclass(frozen=True, slots=True)
class ChangeTasks:
    """Task number n reads the changes of the n-th range of snapshots."""

    changes: bytes
    ranges: tuple[tuple[int, int], ...]
    fields: tuple[Field, ...]

    def __call__(self, number: int) -> Iterator[pa.RecordBatch]:
        changes: _Changes = unpacked(self.changes)
        last = changes.last.id
        if read_snapshot(changes.home, last) != changes.last:
            raise NotFoundError(f"snapshot {last} is another one since a rollback: read the changes up to it anew")
        start, end = self.ranges[number]
        schema = pa.schema([pa.field(ROW_KIND, pa.string()), *arrow_of_spark(self.fields)])
        for batch in read_changes(changes.home, changes.schema, start, end):
            kept = changes.keep.apply(batch)
            rows = to_spark_arrow(kept, self.fields)
            yield pa.RecordBatch.from_arrays([kept.column(ROW_KIND), *rows.columns], schema=schema)


def changes_frame(
    spark: SparkSession,
    opened: OpenedTable,
    columns: Sequence[str] | None,
    where: str | pc.Expression | None,
    start: int,
    end: int | None,
) -> DataFrame:
    """The changes of snapshots (start, end], `end` being the newest unless it is given."""
    # A scan checks the columns and the condition as it does for rows.
    scan = opened.scan(columns, where)
    schema = scan.schema
    newest = latest_snapshot(opened.home)
    last = end if end is not None else newest.id if newest is not None else 0
    snapshots = _checked_range(opened, start, last)
    fields = tuple(schema.field(name) for name in scan.columns)
    shape = T.StructType([T.StructField(ROW_KIND, T.StringType()), *spark_schema(fields)])
    if start == last:
        return spark.createDataFrame([], shape)
    most = 1 if schema.primary_keys else _TASKS_PER_CORE * default_parallelism(spark)
    ranges = _ranges(start, last, most)
    changes = packed(_Changes(opened.home, schema, row_filter(scan.where, schema.fields), snapshots[last]))
    return task_frame(spark, ChangeTasks(changes, ranges, fields), len(ranges), shape)


def _checked_range(opened: OpenedTable, start: int, end: int) -> dict[int, Snapshot]:
    """The start and end snapshots by id, without the 0th; errors that can be found now are raised on the driver."""
    ids: tuple[tuple[str, object], ...] = (("start", start), ("end", end))
    for name, number in ids:
        if not isinstance(number, int) or isinstance(number, bool):
            raise InvalidError(f"{name} {number!r}: expected the id of a snapshot, found {type(number).__name__}")
    if not 0 <= start <= end:
        raise InvalidError(f"changes from {start} to {end}: expected 0 <= start <= end")
    return {number: read_snapshot(opened.home, number) for number in {start, end} - {0}}


def _ranges(start: int, end: int, most: int) -> tuple[tuple[int, int], ...]:
    """(start, end] split into at most this many ranges, in order."""
    count = min(most, end - start)
    edges = [start + (end - start) * place // count for place in range(count + 1)]
    return tuple(pairwise(edges))
