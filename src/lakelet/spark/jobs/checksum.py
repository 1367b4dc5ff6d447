"""`ls.checksum`: an order-independent checksum of a table's rows, computed by executors from Arrow, never through the JVM.

    before = ls.checksum(spark, "./warehouse", "shop.orders")
    ls.copy_table(spark, "./warehouse", "shop.orders", "shop.orders_copy", create=True)
    assert ls.checksum(spark, "./warehouse", "shop.orders_copy") == before

Row hashes (`row_checksums`) are summed, so that the order of rows, files, partitions and buckets does not matter, but duplicates
do. Columns are identified by name and type, whatever their order. Two tables with equal checksums have the same rows, unless the
data was forged to collide.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from pyspark.sql import SparkSession

from lakelet.model.split import Split
from lakelet.spark.call_sites import UnrecordedCallSites
from lakelet.spark.jobs.read_request import ReadArguments, ReadRequest
from lakelet.spark.jobs.row_checksums import mixed, row_numbers
from lakelet.spark.jobs.spread import spread
from lakelet.table.read.table_scan import TableScan

_MASK = (1 << 64) - 1
_OTHER = np.uint64(0xA0761D6478BD642F)


@dataclass(frozen=True, slots=True)
class Checksum:
    """The number of rows, and 128 bits of checksum in hexadecimal digits."""

    rows: int
    digest: str


@UnrecordedCallSites()
def checksum(
    spark: SparkSession,
    warehouse: str | os.PathLike[str],
    table: str,
    *,
    options: Mapping[str, str] | None = None,
    **what: Unpack[ReadArguments],
) -> Checksum:
    """The checksum of the rows that match, over all columns or these: `columns`, `where`, `version`, `timestamp`, `tag` and
    `branch` as in `ls.table`."""
    scan = ReadRequest(**what).scan(warehouse, table, options)
    rows = first = second = 0
    for _, part in spread(spark, scan.plan().splits, _Sums(scan), f"computing the checksum of {table}"):
        rows, first, second = rows + part[0], first + part[1], second + part[2]
    return Checksum(rows, f"{first & _MASK:016x}{second & _MASK:016x}")


@dataclass(frozen=True, slots=True)
class _Sums:
    """The number of matching rows of a split, and two sums of their hashes."""

    scan: TableScan

    def __call__(self, split: Split) -> tuple[int, int, int]:
        by_name = {field.name: field for field in self.scan.schema.fields}
        fields = [by_name[name] for name in self.scan.columns]
        rows = first = second = 0
        for batch in self.scan.read(split):
            numbers = row_numbers(batch, fields)
            rows += len(numbers)
            first += int(numbers.sum())
            second += int(mixed(numbers ^ _OTHER).sum())
        return rows, first & _MASK, second & _MASK
