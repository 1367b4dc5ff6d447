"""Auto CDC flows: what is new among the changes is applied to the tables of `cdc_rows`."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from lakelet.spark.pipeline.flow.cdc_rows import CdcApply, CdcColumns
from lakelet.spark.pipeline.flow.flow_write import FlowWrite, Written
from lakelet.spark.pipeline.flow.stream_flow import BatchCounts, counted, finish, start
from lakelet.spark.read.table_frame import table as table_frame


def apply_changes(write: FlowWrite) -> Written:
    """Applies what is new, and ends."""
    frame, counts = counted(write)
    query = start(write, frame, cdc_tables(write, counts), driver_rows=counts.driver_rows, on_duplicate="any")
    return counts.written(finish(write, query))


def cdc_tables(write: FlowWrite, counts: BatchCounts) -> dict[str, Callable[[DataFrame], DataFrame] | None]:
    """The tables of an auto CDC flow with the functions of a batch, in the order of their commits."""
    cdc = write.flow.cdc
    assert cdc is not None
    target, warehouse, options = write.target, write.work.warehouse, dict(write.work.options)
    expectations = counts.expectations

    def read(spark: SparkSession, name: str) -> DataFrame:
        return table_frame(spark, warehouse, name, options=options)

    apply = CdcApply(CdcColumns.of(cdc, write.frame), target.name, target.deletes, read)
    tables: dict[str, Callable[[DataFrame], DataFrame] | None] = {}
    if cdc.apply_as_deletes is not None:
        # Deletions meet all expectations; a row that fails the batch does so before the first commit.
        tables[target.deletes] = lambda batch: apply.deletes(expectations.met(batch, None))
    tables[target.name] = lambda batch: apply.rows(counts.met(batch) if expectations.listed else batch)
    if expectations.quarantines:
        tables[target.quarantine] = expectations.set_aside
    return tables
