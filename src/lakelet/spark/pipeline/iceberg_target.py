"""Iceberg tables of a pipeline: created from the columns of their query, replaced by views, appended to by flows.

A batch of a stream is applied once: its commit carries the flow's generation and the number of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from lakelet.errors import InvalidError
from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.schema.column_types import model_schema
from lakelet.model.arrow.arrow_types import from_arrow
from lakelet.pipeline.definition import FlowKind, Table
from lakelet.spark.iceberg.insert import insert_iceberg
from lakelet.spark.iceberg.types import spark_columns
from lakelet.spark.pipeline.flow_write import FlowWrite, Written
from lakelet.spark.pipeline.spark_errors import at_place
from lakelet.spark.pipeline.stream_flow import finish
from lakelet.spark.pipeline.table_target import declared_columns
from lakelet.spark.pipeline.workspace import Workspace
from lakelet.spark.types import spark_schema
from lakelet.spark.write.matched_columns import matched


@dataclass(frozen=True, slots=True)
class IcebergTarget:
    """A table of an Iceberg catalog that flows of the pipeline fill."""

    work: Workspace
    table: Table

    @property
    def _catalog(self) -> IcebergCatalog:
        return self.work.lake.catalogs.open(self.table.name.split(".", 1)[0])

    @property
    def name(self) -> str:
        """database.table, within the catalog."""
        return self.table.name.split(".", 1)[1]

    def check(self, frame: DataFrame) -> T.StructType:
        """The columns that the table has or will have; InvalidError where those of the frame do not fit them."""
        with at_place(self.table.place, f"table {self.table.name!r}"):
            if not self._catalog.table_exists(self.name):
                self._definition(frame)
                return frame.schema
            schema = spark_columns(model_schema(self._catalog.table(self.name)))
            matched(frame, schema, fixed={}, kinds=None)
            return spark_schema(schema.fields)

    def create(self, frame: DataFrame) -> None:
        """Creates the table where it is not there."""
        catalog = self._catalog
        if not catalog.table_exists(self.name):
            catalog.create_namespace(self.name.rsplit(".", 1)[0], if_not_exists=True)
            self.work.lake.sql(self._definition(frame))

    def _definition(self, frame: DataFrame) -> str:
        """The statement that creates the table."""
        if self.table.schema is not None:
            columns = [(name, str(kind)) for name, kind in declared_columns(self.table.schema)]
        else:
            columns = [(one.name, str(from_arrow(one.type))) for one in to_arrow_schema(frame.schema, timezone="UTC")]
        name = ".".join(_quoted(part) for part in self.table.name.split("."))
        listed = ", ".join(f"{_quoted(column)} {kind}" for column, kind in columns)
        parts = f" PARTITIONED BY ({', '.join(self.table.partitioned_by)})" if self.table.partitioned_by else ""
        pairs = ", ".join(f"{_text(key)} = {_text(value)}" for key, value in self.table.options.items())
        options = f" TBLPROPERTIES ({pairs})" if pairs else ""
        return f"CREATE TABLE IF NOT EXISTS {name} ({listed}) USING iceberg{parts}{options}"

    def write(self, write: FlowWrite) -> Written:
        """Writes the rows of a flow."""
        with at_place(self.table.place, f"table {self.table.name!r}"):
            self.create(write.frame)
        rows = write.expectations.met(write.frame, None)
        if write.flow.kind is FlowKind.APPEND:
            return self._stream(write, rows)
        once = write.flow.kind is FlowKind.ONCE
        insert = partial(self._insert, mode="append" if once else "overwrite", commit_id=write.user if once else None)
        return Written(insert(rows))

    def _insert(self, rows: DataFrame, *, mode: str, commit_id: str | None) -> int | None:
        made = insert_iceberg(
            rows,
            self.table.name.split(".", 1)[0],
            self.name,
            mode,
            commit_id=commit_id,
            warehouse=self.work.warehouse,
            options=self.work.options,
        )
        return None if made is None else made.added_rows

    def _stream(self, write: FlowWrite, rows: DataFrame) -> Written:
        user, warehouse, options, table = write.user, self.work.warehouse, dict(self.work.options), self.table.name
        catalog, _, name = table.partition(".")

        def apply(batch: DataFrame, batch_id: int) -> None:
            identity = f"{user}-{batch_id}"
            insert_iceberg(batch, catalog, name, commit_id=identity, warehouse=warehouse, options=options)

        writer = rows.writeStream.foreachBatch(apply).option("checkpointLocation", write.checkpoint).queryName(user)
        return Written(finish(write, writer.trigger(availableNow=True).start()))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    if "\x00" in value:
        raise InvalidError(f"option {value!r}: expected a text without NUL")
    return "'" + value.replace("'", "''") + "'"
