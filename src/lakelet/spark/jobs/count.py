"""`ls.count`: count a table's rows from metadata where possible, and the rest on executors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Unpack

from pyspark.sql import SparkSession

from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.model.split import Split
from lakelet.options import TableOptions
from lakelet.predicate.row_filter import row_filter
from lakelet.read.table_reader import TableReader
from lakelet.scan.plan import Planner
from lakelet.spark.jobs.read_request import ReadRequest, RowArguments
from lakelet.spark.jobs.spread import spread
from lakelet.table.read.table_scan import TableScan


def count(
    spark: SparkSession,
    warehouse: str | os.PathLike[str],
    table: str,
    *,
    options: Mapping[str, str] | None = None,
    **what: Unpack[RowArguments],
) -> int:
    """How many rows match: `where`, of a `version`, `timestamp`, `tag` or `branch` as in `ls.table`.

    Files that match entirely by partition or statistics are not read. Where metadata suffices, as for append tables
    without a condition, no Spark job runs.
    """
    scan = ReadRequest(**what).scan(warehouse, table, options)
    if scan.snapshot is None:
        return 0
    versions = SchemaVersions(scan.home, {scan.schema.id: scan.schema})
    planner = Planner(scan.home, scan.schema, versions, TableOptions(scan.schema.options))
    known, plan = planner.count(scan.snapshot, scan.where)
    return known + sum(rows for _, rows in spread(spark, plan.splits, _Rows(scan), f"counting {table}"))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Counts the matching rows of a split; only the columns of the condition are read, or one."""

    scan: TableScan

    def __call__(self, split: Split) -> int:
        schema = self.scan.schema
        condition = row_filter(self.scan.where, schema.fields)
        needed = condition.columns or schema.trimmed_primary_keys or schema.names
        reader = TableReader(
            self.scan.home, schema, needed[:1], condition, SchemaVersions(self.scan.home, {schema.id: schema})
        )
        return sum(batch.num_rows for batch in reader.batches([split]))
