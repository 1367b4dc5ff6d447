"""The changes between two versions of a table as a Spark DataFrame.

The same rows as `table.changes()`: `_row_kind` and the columns. The driver plans, tasks read: files of append tables, changelog
files, and versions of primary-key tables that are compared bucket by bucket. All changes of a key are in one task, in order.
Ids are reused after a rollback, so that tasks verify that the last snapshot is still the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.versions.told_versions import read_told
from lakelet.errors import NotFoundError
from lakelet.model.snapshot import Snapshot
from lakelet.predicate.row_filter import row_filter
from lakelet.spark.opened_table import OpenedTable
from lakelet.spark.read.change_tasks import ChangeRead, change_parts
from lakelet.spark.read.merge_scan import packed, task_frame, unpacked
from lakelet.spark.session import default_parallelism
from lakelet.spark.types import spark_schema
from lakelet.table.read.changes import ROW_KIND, check_range, plan_changes


@dataclass(frozen=True, slots=True)
class ChangeTasks:
    """Task number n reads the n-th part of the units."""

    read: bytes
    parts: tuple[bytes, ...]
    last: Snapshot

    def __call__(self, number: int) -> Iterator[pa.RecordBatch]:
        read: ChangeRead = unpacked(self.read)
        if read_told(read.home, self.last.id).delta_manifest_list != self.last.delta_manifest_list:
            raise NotFoundError(
                f"snapshot {self.last.id} is another one since a rollback: read the changes up to it anew"
            )
        return read.rows(unpacked(self.parts[number]))


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
    check_range(start, last)
    fields = tuple(schema.field(name) for name in scan.columns)
    shape = T.StructType([T.StructField(ROW_KIND, T.StringType()), *spark_schema(fields)])
    end_version = read_told(opened.home, last) if last else None
    units = plan_changes(opened.home, schema, start, last)
    if end_version is None or not units:
        return spark.createDataFrame([], shape)
    read = ChangeRead(opened.home, schema, fields, row_filter(scan.where, schema.fields), changelog=True)
    parts = tuple(packed(part) for part in change_parts(schema, units, default_parallelism(spark)))
    return task_frame(spark, ChangeTasks(packed(read), parts, end_version), len(parts), shape)
