"""Iceberg tables for tests: a catalog in a folder, and rows written to them by our writers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.transforms import Transform

from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.commit_data import CommitData
from lakelet.iceberg.table import IcebergTable
from lakelet.iceberg.transaction import IcebergTransaction
from lakelet.iceberg.write.table_writer import TableWriter
from lakelet.iceberg.write.write_plan import write_plan

JOB = "11111111-2222-3333-4444-555555555555"


def ice_catalog(folder: Path) -> IcebergCatalog:
    """A catalog with the database `db`."""
    made = IcebergCatalog(
        "ice", {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}
    )
    made.create_namespace("db", if_not_exists=True)
    return made


def ice_table(
    folder: Path,
    schema: Schema,
    spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
    *,
    order: SortOrder = UNSORTED_SORT_ORDER,
    properties: Mapping[str, str] | None = None,
) -> IcebergTable:
    """The new table ice.db.t."""
    catalog = ice_catalog(folder)
    catalog.library.create_table(
        "db.t", schema, partition_spec=spec, sort_order=order, properties=dict(properties or {})
    )
    return catalog.table("db.t")


def spec_of(*fields: tuple[int, Transform[Any, Any], str]) -> PartitionSpec:
    """A spec of (source id, transform, name)."""
    return PartitionSpec(
        *(PartitionField(source, 1000 + at, transform, name) for at, (source, transform, name) in enumerate(fields))
    )


def written(
    table: IcebergTable, batches: Iterable[pa.RecordBatch], *, job: str = JOB, **settings: Any
) -> list[CommitData]:
    """The files that one writer makes of the rows."""
    writer = TableWriter(write_plan(table, job), "7", **settings)
    for batch in batches:
        writer.write(batch)
    return writer.close()


def committed(table: IcebergTable, batches: Iterable[pa.RecordBatch], **settings: Any) -> IcebergTable:
    """The table with the rows appended."""
    transaction = IcebergTransaction(table)
    writer = TableWriter(transaction.begin_insert(), "7", **settings)
    for batch in batches:
        writer.write(batch)
    transaction.update_commit_data(writer.close())
    transaction.finish_insert()
    return table.reloaded()


def data_files(folder: Path) -> list[str]:
    """All Parquet files below a folder, by their path in it."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet"))
