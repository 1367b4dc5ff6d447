"""Resolve Iceberg tables such as ice.shop.orders in `ls.sql`: in queries, and as the target of an INSERT.

All references of a statement to one table read the version that the first of them resolved to. INSERT OVERWRITE without PARTITION
replaces the whole table, or the partitions that the rows belong to where spark.sql.sources.partitionOverwriteMode is "dynamic".
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from lakelet.catalog.lake import Lake
from lakelet.iceberg.schema.column_types import identity_columns, model_schema
from lakelet.iceberg.table import IcebergTable
from lakelet.iceberg.write.write_plan import write_plan
from lakelet.spark.iceberg.catalogs import open_catalog
from lakelet.spark.iceberg.fields import partition_fields
from lakelet.spark.iceberg.insert import IcebergInsert
from lakelet.spark.iceberg.table_frame import planned, scan_frame
from lakelet.spark.iceberg.types import spark_columns
from lakelet.spark.sql.insert_target import InsertTarget
from lakelet.spark.sql.names import TableName


@dataclass(frozen=True, slots=True)
class IcebergTables:
    """The Iceberg tables of a statement; `pinned` are the versions resolved so far."""

    spark: SparkSession
    lake: Lake
    pinned: dict[tuple[str, str], IcebergTable]

    def frame(
        self, name: TableName, version: int | str | None, moment: int | None, mentioned: frozenset[str] | None
    ) -> DataFrame:
        """The rows of a version, projected to the columns that the statement mentions; all where these are not known."""
        assert name.catalog is not None
        key = (name.catalog, name.table)
        if key not in self.pinned:
            self.pinned[key] = self.lake.catalogs.open(name.catalog).table(name.table, for_queries=True)
        read = planned(self.pinned[key], None, None, version, moment, None, name.branch)
        if mentioned is not None:
            chosen = tuple(column for column in read.columns if column.lower() in mentioned) or read.columns[:1]
            read = replace(read, columns=chosen, scan=replace(read.scan, columns=chosen))
        return scan_frame(self.spark, read)


class IcebergTarget(InsertTarget):
    """An Iceberg table as the target of an INSERT."""

    def __init__(
        self,
        spark: SparkSession,
        warehouse: str | os.PathLike[str],
        name: TableName,
        options: Mapping[str, str],
    ) -> None:
        assert name.catalog is not None
        self._spark = spark
        self._name = name
        self._table = open_catalog(name.catalog, warehouse, options).table(name.table)
        self._schema = replace(spark_columns(model_schema(self._table)), partition_keys=identity_columns(self._table))
        self._fields = {field.name: field for field in self._schema.fields}

    def _insert(self, frame: DataFrame, mode: str, partition: Mapping[str, object] | None) -> tuple[int | None, int]:
        insert = IcebergInsert(self._table, mode, partition, self._name.branch, None, {})
        made = insert.run(frame)
        return (None, 0) if made is None else (made.id, made.added_rows)

    def _partition_fields(self) -> int:
        return len(partition_fields(write_plan(self._table, self._name.table)))
