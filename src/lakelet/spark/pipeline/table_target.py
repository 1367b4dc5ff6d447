"""The stored tables of a pipeline: created from declared columns or those of their query, and checked against frames."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from lakelet.commit.metadata.schemas import latest_schema
from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import DataType, Row
from lakelet.pipeline.definition import Table
from lakelet.spark.pipeline.spark_errors import at_place
from lakelet.spark.pipeline.workspace import Workspace
from lakelet.spark.types import spark_schema
from lakelet.spark.write.matched_columns import matched


@dataclass(frozen=True, slots=True)
class TableTarget:
    """A Lakelet table that flows of the pipeline fill."""

    work: Workspace
    table: Table

    @property
    def name(self) -> str:
        """database.table"""
        return self.work.pipeline.stored_name(self.table)

    def exists(self) -> bool:
        """Whether the table is there."""
        return self.work.lake.table_exists(self.name)

    def check(self, frame: DataFrame) -> T.StructType:
        """The columns that the table has or will have; InvalidError where those of the frame do not fit them."""
        with at_place(self.table.place, f"table {self.table.name!r}"):
            schema = self._stored() if self.exists() else self._new(frame)
            matched(frame, schema, fixed={}, kinds=None)
            return spark_schema(schema.fields)

    def _stored(self) -> TableSchema:
        found = latest_schema(self.work.lake.table(self.name).home)
        for what, declared, stored in (
            ("primary key", self.table.primary_key, found.primary_keys),
            ("partitions", self.table.partitioned_by, found.partition_keys),
        ):
            if declared and tuple(declared) != tuple(stored):
                raise InvalidError(
                    f"the {what} of the table in the warehouse is {', '.join(stored) or 'none'}, "
                    f"and {', '.join(declared)} in the pipeline: drop the table, or change the pipeline"
                )
        return found

    def _new(self, frame: DataFrame) -> TableSchema:
        return self.work.lake.planned_schema(
            self._columns(frame),
            self.table.primary_key,
            self.table.partitioned_by,
            self.table.options,
            self.table.comment,
        )

    def _columns(self, frame: DataFrame) -> pa.Schema | list[tuple[str, DataType]]:
        if self.table.schema is not None:
            return declared_columns(self.table.schema)
        void = [field.name for field in frame.schema.fields if isinstance(field.dataType, T.NullType)]
        if void:
            raise InvalidError(f"column {void[0]!r} is NULL without a type: cast it, or declare the table's schema")
        return to_arrow_schema(frame.schema, timezone="UTC")

    def create(self, frame: DataFrame) -> None:
        """Creates the table where it is not there."""
        if self.exists():
            return
        with at_place(self.table.place, f"table {self.table.name!r}"):
            self.work.lake.create_database(self.name.split(".", 1)[0], if_not_exists=True)
            self.work.lake.create_table(
                self.name,
                self._columns(frame),
                primary_key=self.table.primary_key,
                partitioned_by=self.table.partitioned_by,
                options=dict(self.table.options),
                comment=self.table.comment,
                if_not_exists=True,
            )


def declared_columns(text: str) -> list[tuple[str, DataType]]:
    """The columns of a declaration such as `id BIGINT NOT NULL, name STRING`."""
    found = parse_type(f"ROW<{text}>")
    assert isinstance(found, Row)
    return [(field.name, field.type) for field in found.fields]
