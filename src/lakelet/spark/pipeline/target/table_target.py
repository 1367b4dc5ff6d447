"""The stored tables of a pipeline: created from declared columns or those of their query, checked against frames, emptied.

<table>               what the flows give
<table>_quarantine    rows that do not meet expectations whose action is quarantine
<table>_deletes       deletions that an auto CDC flow has to remember
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.table_identity import table_uuid
from lakelet.errors import InvalidError
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.schema import TableSchema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import DataType, Row
from lakelet.options import SEQUENCE_FIELD
from lakelet.pipeline.definition import DELETES_SUFFIX, QUARANTINE_SUFFIX, Action, Cdc, Table
from lakelet.spark.pipeline.expectations import QUARANTINE_COLUMNS
from lakelet.spark.pipeline.flow.cdc_rows import SEQUENCE, CdcColumns
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

    @property
    def quarantine(self) -> str:
        """The table of the rows that were set aside."""
        return f"{self.name}{QUARANTINE_SUFFIX}"

    @property
    def quarantines(self) -> bool:
        """Whether rows may be set aside."""
        return any(one.action is Action.QUARANTINE for one in self.table.expectations)

    @property
    def replaced(self) -> tuple[str, ...]:
        """The tables whose rows a materialized view replaces."""
        return (self.name, self.quarantine) if self.quarantines else (self.name,)

    @property
    def deletes(self) -> str:
        """The table of deletions of an auto CDC flow."""
        return f"{self.name}{DELETES_SUFFIX}"

    @property
    def cdc(self) -> Cdc | None:
        """How changes are applied, where an auto CDC flow fills the table."""
        flows = self.work.pipeline.flows_into(self.table)
        return next((one.cdc for one in flows if one.cdc is not None), None)

    def uuid(self) -> str | None:
        """The identity of the table, None where there is no table."""
        return table_uuid(self.work.lake.table(self.name).home) if self.exists() else None

    def exists(self) -> bool:
        """Whether the table is there."""
        return self.work.lake.table_exists(self.name)

    def present(self) -> list[str]:
        """The tables of the target, its own and those beside it that this pipeline fills, that are there."""
        beside = [self.quarantine] if self.quarantines else []
        beside += [self.deletes] if self._remembers else []
        return [name for name in (self.name, *beside) if self.work.lake.table_exists(name)]

    @property
    def _remembers(self) -> bool:
        cdc = self.cdc
        return cdc is not None and cdc.apply_as_deletes is not None

    def check(self, frame: DataFrame, *, anew: bool = False) -> T.StructType:
        """The columns that the table has or will have; InvalidError where those of the frame do not fit them. A table that is
        filled `anew` is replaced where it does not fit."""
        with at_place(self.table.place, f"table {self.table.name!r}"):
            rows = self._shaped(frame)
            schema = self._stored(rows) if self.exists() and not anew else self._new(rows)
            matched(rows, schema, fixed={}, kinds=None)
            self._check_beside(frame, anew=anew)
            return spark_schema(schema.fields)

    def _check_beside(self, frame: DataFrame, *, anew: bool) -> None:
        """InvalidError where a table that the pipeline needs beside this one is there, and is something else."""
        expected = {}
        if self.quarantines:
            expected[self.quarantine] = [name for name, _ in QUARANTINE_COLUMNS]
        if self._remembers and not anew:
            expected[self.deletes] = self._deletes_of(frame).names
        for name, columns in expected.items():
            if not self.work.lake.table_exists(name):
                continue
            found = list(latest_schema(self.work.lake.table(name).home).names)
            if not set(columns) <= set(found):
                raise InvalidError(
                    f"table {name!r}, which goes with it, has the columns {', '.join(found)}, expected {', '.join(columns)}: "
                    "rename it, or call this table otherwise"
                )

    def _deletes_of(self, frame: DataFrame) -> pa.Schema:
        cdc = self.cdc
        assert cdc is not None
        return to_arrow_schema(CdcColumns.of(cdc, frame).shaped_deletes(frame).schema, timezone="UTC")

    def create(self, frame: DataFrame) -> None:
        """Creates the table, and those beside it, where they are not there."""
        with at_place(self.table.place, f"table {self.table.name!r}"):
            self.work.lake.create_database(self.name.split(".", 1)[0], if_not_exists=True)
            rows, cdc = self._shaped(frame), self.cdc
            self._create(self.name, self._columns(rows), self.table, self._options(rows))
            if self.quarantines:
                self._create(
                    self.quarantine, QUARANTINE_COLUMNS, replace(self.table, primary_key=(), partitioned_by=()), {}
                )
            if cdc is not None and cdc.apply_as_deletes is not None:
                keys = cdc.keys if cdc.scd_type == 1 else (*cdc.keys, SEQUENCE)
                ordered = {SEQUENCE_FIELD.name: SEQUENCE} if cdc.scd_type == 1 else {}
                shaped = self._deletes_of(frame)
                self._create(self.deletes, shaped, replace(self.table, primary_key=keys, partitioned_by=()), ordered)

    def fit(self, frame: DataFrame) -> None:
        """Replaces the table by one of the frame's columns where these do not fit."""
        rows = self._shaped(frame)
        try:
            matched(rows, self._stored(rows), fixed={}, kinds=None)
        except InvalidError:
            self.work.lake.replace_table(
                self.name,
                self._columns(rows),
                primary_key=self.table.primary_key,
                partitioned_by=self.table.partitioned_by,
                options=dict(self._options(rows)),
                comment=self.table.comment,
            )

    def reset(self, frame: DataFrame) -> str | None:
        """Removes all rows of the table and of those beside it, and creates what is not there; the identity of the table."""
        if self._remembers:
            # Its columns are those of the flow, which may be others by now.
            self.work.lake.drop_table(self.deletes, if_exists=True)
        for name in self.present():
            table = self.work.lake.table(name)
            table.write(arrow_schema(latest_schema(table.home).fields).empty_table(), mode="overwrite")
        self.create(frame)
        self.fit(frame)
        return self.uuid()

    def _shaped(self, frame: DataFrame) -> DataFrame:
        cdc = self.cdc
        return frame if cdc is None else CdcColumns.of(cdc, frame).shaped(frame)

    def _stored(self, rows: DataFrame) -> TableSchema:
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
        wanted = self._options(rows).get(SEQUENCE_FIELD.name)
        if self.cdc is not None and found.options.get(SEQUENCE_FIELD.name) != wanted:
            raise InvalidError(
                f"an auto CDC flow needs a table with '{SEQUENCE_FIELD.name}' = '{wanted}': drop the table"
            )
        return found

    def _new(self, rows: DataFrame) -> TableSchema:
        return self.work.lake.planned_schema(
            self._columns(rows),
            self.table.primary_key,
            self.table.partitioned_by,
            self._options(rows),
            self.table.comment,
        )

    def _options(self, rows: DataFrame) -> Mapping[str, str]:
        cdc = self.cdc
        if cdc is None or cdc.scd_type == 2:
            return self.table.options
        sequence = SEQUENCE if SEQUENCE in rows.columns else cdc.sequence_by.strip().strip("`")
        return {**self.table.options, SEQUENCE_FIELD.name: sequence}

    def _columns(self, rows: DataFrame) -> Any:
        if self.table.schema is not None:
            return declared_columns(self.table.schema)
        void = [field.name for field in rows.schema.fields if isinstance(field.dataType, T.NullType)]
        if void:
            raise InvalidError(f"column {void[0]!r} is NULL without a type: cast it, or declare the table's schema")
        return to_arrow_schema(rows.schema, timezone="UTC")

    def _create(self, name: str, columns: object, like: Table, options: Mapping[str, str]) -> None:
        if self.work.lake.table_exists(name):
            return
        self.work.lake.create_table(
            name,
            columns,
            primary_key=like.primary_key,
            partitioned_by=like.partitioned_by,
            options=dict(options),
            comment=like.comment if name == self.name else None,
            if_not_exists=True,
        )


def declared_columns(text: str) -> list[tuple[str, DataType]]:
    """The columns of a declaration such as `id BIGINT NOT NULL, name STRING`."""
    found = parse_type(f"ROW<{text}>")
    assert isinstance(found, Row)
    return [(field.name, field.type) for field in found.fields]
