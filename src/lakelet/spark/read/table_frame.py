"""`ls.table`: a table, or its changes, as a Spark DataFrame.

    table(spark, "./warehouse", "shop.orders", columns=["amount"], where="dt = '2026-01-01'")

    driver       pin the snapshot ─ plan (partitions, statistics, buckets) ─ assign files to readers
    Spark        files by its own Parquet reader, without the superseded and deleted rows of them  ┐
    executors    merges that fold values, and files that Spark would read differently, by our reader ┴ union

The rows are those of `table.scan()` with the same arguments. The frame reads the snapshot that was the newest when it was made,
however late it is evaluated; a file that is missing by then is an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import reduce

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.errors import InvalidError
from lakelet.model.split import Split
from lakelet.model.types import Field
from lakelet.predicate.tree import Constant, Predicate, normalise
from lakelet.predicate.tree import columns as columns_of
from lakelet.spark.call_sites import UnrecordedCallSites
from lakelet.spark.opened_table import open_table
from lakelet.spark.read.changes_frame import changes_frame
from lakelet.spark.read.merge_scan import merge_frame
from lakelet.spark.read.parquet_frame import takes_any_name
from lakelet.spark.read.predicate_expression import translates
from lakelet.spark.read.raw_files import FileAssigner
from lakelet.spark.read.raw_scan import RawScan, spark_location
from lakelet.spark.read.row_bitmaps import RowBitmaps
from lakelet.spark.types import spark_schema
from lakelet.table.read.table_scan import TableScan


@UnrecordedCallSites()
def table(
    spark: SparkSession,
    warehouse: str | os.PathLike[str],
    table: str,
    *,
    columns: Sequence[str] | None = None,
    where: str | pc.Expression | None = None,
    version: int | str | None = None,
    timestamp: datetime | str | int | None = None,
    tag: str | None = None,
    branch: str | None = None,
    start: int | None = None,
    end: int | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The rows of a table's newest version, or of the one named by snapshot id, time or tag.

    With `start` (and `end`, else the newest) the frame holds the changes of snapshots (start, end] instead: `_row_kind` and
    the columns. `where` is the SQL condition that `table.scan()` takes; partitions and files it excludes are never listed.
    """
    opened = open_table(warehouse, table, options, branch)
    if start is None and end is None:
        return scan_frame(spark, opened.scan(columns, where, version=version, timestamp=timestamp, tag=tag))
    named = [
        name for name, value in (("version", version), ("timestamp", timestamp), ("tag", tag)) if value is not None
    ]
    if named:
        raise InvalidError(f"start and end name the snapshots to read; {named[0]} does not go with them")
    if start is None:
        raise InvalidError("end needs start, the snapshot after which changes begin; start=0 is before the first")
    return changes_frame(spark, opened, columns, where, start, end)


@UnrecordedCallSites()
def scan_frame(spark: SparkSession, scan: TableScan) -> DataFrame:
    """The rows of a scan. Its limit and order are not kept."""
    wanted = tuple(scan.schema.field(name) for name in scan.columns)
    plan = scan.plan()
    if not plan.splits:
        return spark.createDataFrame([], spark_schema(wanted))
    frames, ours = _native(spark, scan, plan.splits, wanted)
    if ours:
        frames.append(merge_frame(spark, scan, ours))
    if not frames:
        return spark.createDataFrame([], spark_schema(wanted))
    return reduce(lambda one, other: one.union(other), frames)


def _native(
    spark: SparkSession, scan: TableScan, splits: Sequence[Split], wanted: tuple[Field, ...]
) -> tuple[list[DataFrame], list[Split]]:
    """DataFrames of the files that Spark reads itself, and the splits that remain."""
    where = scan.where
    if isinstance(where, pc.Expression):
        return [], list(splits)
    condition = None if where is None else _condition(where)
    types = {field.name: field.type for field in scan.schema.fields}
    if condition is not None and not translates(condition, types):
        return [], list(splits)
    asked = dict.fromkeys([*scan.columns, *(() if condition is None else columns_of(condition))])
    needed = tuple(scan.schema.field(name) for name in asked)
    schema_of = SchemaVersions(scan.home, {scan.schema.id: scan.schema})
    location = spark_location(spark, scan.home)
    any_name = all(path.isascii() for path in (location or "", *_paths(splits))) or takes_any_name(spark)
    assigner = FileAssigner(needed, schema_of, location, RowBitmaps.of(scan), any_name)
    assigned = assigner.assign(splits)
    raw = RawScan(spark, scan, location or "", wanted, needed, condition, schema_of)
    # Spark begins with the tasks of the first frame, so that small files of the others fill up the end.
    frames = [frame for marked in assigned.marked for frame in raw.marked_frames(marked)]
    frames += [raw.frame(schema_id, files) for schema_id, files in assigned.native.items()]
    return frames, assigned.ours


def _paths(splits: Sequence[Split]) -> Iterator[str]:
    return (path for split in splits for path in split.paths)


def _condition(where: Predicate) -> Predicate | None:
    found = normalise(where)
    return None if found == Constant(True) else found
