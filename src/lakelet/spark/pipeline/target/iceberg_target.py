"""Iceberg tables of a pipeline: created from the columns of their query, replaced by views, appended to by flows.

A batch of a stream is applied once: its commit carries the flow's generation and the number of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from lakelet.errors import InvalidError
from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.schema.column_types import model_schema
from lakelet.model.arrow.arrow_types import from_arrow
from lakelet.model.schema import TableSchema
from lakelet.pipeline.definition import FlowKind, Table
from lakelet.spark.iceberg.insert import insert_iceberg
from lakelet.spark.iceberg.types import spark_columns
from lakelet.spark.pipeline.flow.flow_write import FlowWrite, Written, observed
from lakelet.spark.pipeline.flow.stream_flow import counted, finish
from lakelet.spark.pipeline.spark_errors import at_place
from lakelet.spark.pipeline.target.table_target import declared_columns
from lakelet.spark.pipeline.workspace import Workspace
from lakelet.spark.stream.write.iceberg_sink import write_iceberg_batch
from lakelet.spark.stream.write.query_start import started
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

    def exists(self) -> bool:
        """Whether the table is there."""
        return self._catalog.table_exists(self.name)

    def present(self) -> list[str]:
        """The table, where it is there; there are none beside it."""
        return [self.name] if self.exists() else []

    def uuid(self) -> str | None:
        """The identity of the table, None where there is no table."""
        return str(self._catalog.table(self.name).metadata.table_uuid) if self.exists() else None

    def check(self, frame: DataFrame, *, anew: bool = False) -> T.StructType:
        """The columns that the table has or will have; InvalidError where those of the frame do not fit them. A table that is
        filled `anew` is replaced where it does not fit."""
        with at_place(self.table.place, f"table {self.table.name!r}"):
            if anew or not self.exists():
                self._definition(frame)
                return frame.schema
            return spark_schema(self._matched(frame).fields)

    def _matched(self, frame: DataFrame) -> TableSchema:
        schema = spark_columns(model_schema(self._catalog.table(self.name)))
        matched(frame, schema, fixed={}, kinds=None)
        return schema

    def create(self, frame: DataFrame) -> None:
        """Creates the table where it is not there."""
        with at_place(self.table.place, f"table {self.table.name!r}"):
            if not self.exists():
                self._catalog.create_namespace(self.name.rsplit(".", 1)[0], if_not_exists=True)
                self.work.lake.sql(self._definition(frame))

    def fit(self, frame: DataFrame) -> None:
        """Replaces the table by one of the frame's columns where these do not fit."""
        if self.exists():
            try:
                self._matched(frame)
            except InvalidError:
                self.work.lake.sql(f"DROP TABLE {self._quoted_name}")
        self.create(frame)

    def reset(self, frame: DataFrame) -> str | None:
        """Removes all rows of the table, which is created where it is not there; its identity."""
        self.fit(frame)
        self._insert(self.work.spark.createDataFrame([], frame.schema), mode="overwrite", commit_id=None)
        return self.uuid()

    @property
    def _quoted_name(self) -> str:
        return ".".join(_quoted(part) for part in self.table.name.split("."))

    def _definition(self, frame: DataFrame) -> str:
        """The statement that creates the table."""
        if self.table.schema is not None:
            columns = [(name, str(kind)) for name, kind in declared_columns(self.table.schema)]
        else:
            columns = [(one.name, str(from_arrow(one.type))) for one in to_arrow_schema(frame.schema, timezone="UTC")]
        listed = ", ".join(f"{_quoted(column)} {kind}" for column, kind in columns)
        parts = f" PARTITIONED BY ({', '.join(self.table.partitioned_by)})" if self.table.partitioned_by else ""
        pairs = ", ".join(f"{_text(key)} = {_text(value)}" for key, value in self.table.options.items())
        options = f" TBLPROPERTIES ({pairs})" if pairs else ""
        return f"CREATE TABLE IF NOT EXISTS {self._quoted_name} ({listed}) USING iceberg{parts}{options}"

    def write(self, write: FlowWrite) -> Written:
        """Writes the rows of a flow."""
        if write.flow.kind is FlowKind.APPEND:
            return self._stream(write)
        once = write.flow.kind is FlowKind.ONCE
        if once and write.is_done:
            return Written(is_up_to_date=True)
        observation = Observation() if write.expectations.listed else None
        rows = write.expectations.met(write.frame, observation)
        made = self._insert(rows, mode="append" if once else "overwrite", commit_id=write.user if once else None)
        if once:
            write.set_done()
        counts = {} if observation is None else observed(observation)
        return Written(counts.get("rows", made), write.expectations.counted(counts) if counts else {})

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

    def _stream(self, write: FlowWrite) -> Written:
        """Appends what is new. The identity of a batch is kept by the table, whatever snapshots expire."""
        frame, counts = counted(write)
        user, warehouse, options = write.user, self.work.warehouse, dict(self.work.options)
        catalog, name = self.table.name.split(".", 1)

        def apply(batch: DataFrame, batch_id: int) -> None:
            rows = counts.met(batch) if counts.expectations.listed else batch
            write_iceberg_batch(
                rows,
                batch_id,
                catalog,
                name,
                commit_user=user,
                warehouse=warehouse,
                options=options,
                driver_rows=counts.driver_rows,
            )

        return counts.written(finish(write, started(frame, apply, write.checkpoint, None, user)))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    if "\x00" in value:
        raise InvalidError(f"option {value!r}: expected a text without NUL")
    return "'" + value.replace("'", "''") + "'"
