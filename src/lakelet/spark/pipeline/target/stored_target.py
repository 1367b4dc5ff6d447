"""The stored table of a target, of Lakelet's format or Iceberg's."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from lakelet.pipeline.definition import ICEBERG, Table
from lakelet.spark.pipeline.target.table_target import TableTarget
from lakelet.spark.pipeline.workspace import Workspace


class StoredTarget(Protocol):
    """What a run asks of the table that a flow fills, whatever its format."""

    @property
    def name(self) -> str:
        """The name in its catalog."""

    def exists(self) -> bool:
        """Whether the table is there."""

    def present(self) -> list[str]:
        """The table, and those beside it that the pipeline fills, that are there."""

    def uuid(self) -> str | None:
        """The identity of the table."""

    def check(self, frame: DataFrame, *, anew: bool = False) -> T.StructType:
        """The columns that the table has or will have."""

    def create(self, frame: DataFrame) -> None:
        """Creates what is not there."""

    def fit(self, frame: DataFrame) -> None:
        """Replaces the table where the frame does not fit."""

    def reset(self, frame: DataFrame) -> str | None:
        """Removes all rows."""


def target_of(work: Workspace, table: Table) -> StoredTarget:
    """The table of a target."""
    if table.format != ICEBERG:
        return TableTarget(work, table)
    from lakelet.spark.pipeline.target.iceberg_target import IcebergTarget  # noqa: PLC0415 - pyiceberg loads with it, and need not be there.

    return IcebergTarget(work, table)
