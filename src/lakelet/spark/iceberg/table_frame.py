"""An Iceberg table as a Spark DataFrame.

    iceberg_table(spark, "iceberg", "shop.orders", warehouse="./warehouse", where="dt = '2026-01-01'")

    driver       pin the snapshot ─ plan (partitions, statistics, deletes) ─ assign files to readers
    Spark        files that its own Parquet reader provably reads alike (`raw_scan`)              ┐
    executors    the others, without their deleted rows, by our reader                            ┴ union

The frame reads the snapshot that was the newest when it was made. A file that is missing when it is read is an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakelet.errors import InvalidError
from lakelet.iceberg.scan import IcebergScan, ScanFile, comparable_fields, scan_of
from lakelet.iceberg.schema.column_types import model_field
from lakelet.iceberg.table import IcebergTable
from lakelet.model.types import Field
from lakelet.predicate.row_mask import row_mask
from lakelet.predicate.tree import Constant, Predicate, normalise
from lakelet.predicate.tree import columns as columns_of
from lakelet.predicate.where import parse_where
from lakelet.spark.call_sites import UnrecordedCallSites
from lakelet.spark.iceberg.catalogs import CatalogLike, open_catalog
from lakelet.spark.iceberg.raw_scan import raw_frames
from lakelet.spark.iceberg.types import spark_fields, to_spark
from lakelet.spark.read.merge_scan import OPEN_FILE_BYTES, balanced_parts, packed, task_frame, unpacked
from lakelet.spark.session import default_parallelism
from lakelet.spark.types import spark_schema
from lakelet.table.time_arguments import milliseconds


def iceberg_table(
    spark: SparkSession,
    catalog: CatalogLike,
    table: str,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    version: int | str | None = None,
    timestamp: datetime | str | int | None = None,
    tag: str | None = None,
    branch: str | None = None,
    warehouse: str | os.PathLike[str] | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The rows of a table's newest version, or of the one named by snapshot id, time, tag or branch; a `version` that is text may
    be a tag or a branch. `where` is an SQL condition; partitions and files it excludes are never read. `catalog`, `warehouse`
    and `options` are those of `insert_iceberg`."""
    found = open_catalog(catalog, warehouse, options).table(table, for_queries=True)
    return scan_frame(spark, planned(found, columns, where, version, timestamp, tag, branch))


@dataclass(frozen=True, slots=True)
class PlannedRead:
    """A pinned and planned read of one version: the projected columns, in their order, and the rows for which `where` holds."""

    scan: IcebergScan
    columns: tuple[str, ...]
    where: Predicate | None

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns as the table has them."""
        by_name = {field.name: field for field in self.scan.iceberg_schema.fields}
        return tuple(model_field(by_name[name]) for name in self.columns)

    def rows(self, file: ScanFile) -> Iterator[pa.RecordBatch]:
        """The rows of a file in Spark's Arrow types."""
        fields = self.fields
        for batch in self.scan.read(file):
            kept = batch if self.where is None else batch.filter(row_mask(self.where, batch))
            if kept.num_rows:
                yield to_spark(kept, fields)


def planned(
    table: IcebergTable,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    version: int | str | None = None,
    timestamp: datetime | str | int | None = None,
    tag: str | None = None,
    branch: str | None = None,
) -> PlannedRead:
    """The plan for reading a version."""
    given = [name for name, one in (("version", version), ("timestamp", timestamp), ("tag", tag)) if one is not None]
    if len(given) > 1 or (branch is not None and given and given != ["timestamp"]):
        names = [*given, *(["branch"] if branch is not None else [])]
        raise InvalidError(f"table {table.full_name}: expected one version, found {' and '.join(names)}")
    number = version if isinstance(version, int) else None
    ref = tag or branch
    if isinstance(version, str):
        # A tag may be a number, such as a date; it takes precedence over a snapshot id.
        is_number = version.isdecimal() and version not in table.metadata.refs
        number, ref = (int(version), None) if is_number else (None, version)
    moment = None if timestamp is None else milliseconds(timestamp)
    named: Any = {"snapshot_id": number, "ref": ref, "timestamp_ms": moment}
    condition = None if where is None else _condition(parse_where(where, comparable_fields(table, **named)))
    scan = scan_of(table, **named, where=condition)
    chosen = scan.columns if columns is None else tuple(columns)
    _check_columns(table, scan, chosen)
    needed = {*chosen, *(() if condition is None else columns_of(condition))}
    return PlannedRead(
        replace(scan, columns=tuple(name for name in scan.columns if name in needed) or scan.columns[:1]),
        chosen,
        condition,
    )


@UnrecordedCallSites()
def scan_frame(spark: SparkSession, read: PlannedRead) -> DataFrame:
    """The rows of a plan."""
    schema = spark_schema(spark_fields(read.fields))
    frames, files = raw_frames(spark, read.scan, read.fields, read.where)
    if files:
        parts = balanced_parts(files, [max(file.size, OPEN_FILE_BYTES) for file in files], default_parallelism(spark))
        tasks = _FileTasks(packed(read), tuple(packed(part) for part in parts))
        frames.append(task_frame(spark, tasks, len(parts), schema))
    if not frames:
        return spark.createDataFrame([], schema)
    return reduce(lambda one, other: one.union(other), frames)


@dataclass(frozen=True, slots=True)
class _FileTasks:
    """Task number n reads the n-th part of the files. Paths and credentials travel packed, so that no plan shows them."""

    read: bytes
    parts: tuple[bytes, ...]

    def __call__(self, number: int) -> Iterator[pa.RecordBatch]:
        read: PlannedRead = unpacked(self.read)
        for file in unpacked(self.parts[number]):
            yield from read.rows(file)


def _check_columns(table: IcebergTable, scan: IcebergScan, chosen: Sequence[str]) -> None:
    unknown = [name for name in chosen if name not in scan.columns]
    if unknown:
        raise InvalidError(
            f"table {table.full_name} has no column {', '.join(unknown)}; it has {', '.join(scan.columns)}"
        )
    if not chosen or len(set(chosen)) < len(chosen):
        raise InvalidError(f"columns: expected some, each once, found {', '.join(chosen) or 'none'}")


def _condition(where: Predicate) -> Predicate | None:
    found = normalise(where)
    return None if found == Constant(True) else found
