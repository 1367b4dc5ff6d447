"""Auto CDC: changes applied by key, in the order of a sequence, whatever order they arrive in.

    type 1    the newest row of each key; the sequence is the table's `sequence.field`: an older change never replaces a newer one
    type 2    every version of a key as a row, valid from `__start_at` until `__end_at` (NULL: still valid)

Deletions are kept in `<table>_deletes`, by key (type 1: the newest one; type 2: all of them), for a change that arrives after
the deletion of its key and is older must not bring the row back. A batch writes the deletions first. It can be repeated after
any crash: each table recognises it, and what is computed from the tables is the same whether or not the deletions are there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from lakelet.errors import InvalidError
from lakelet.model.near_names import nearest
from lakelet.pipeline.check import END_AT, START_AT
from lakelet.pipeline.definition import Cdc
from lakelet.spark.column_names import column_named, quoted

SEQUENCE = "__sequence"
_DELETE, _ROW, _OLD, _OLD_END, _KIND = "__delete", "__row", "__old", "__old_end", "_row_kind"


@dataclass(frozen=True, slots=True)
class CdcColumns:
    """The columns of an auto CDC table, from those of its changes."""

    cdc: Cdc
    data: tuple[str, ...]

    @staticmethod
    def of(cdc: Cdc, frame: DataFrame) -> CdcColumns:
        """InvalidError for columns that the changes lack."""
        there = list(frame.columns)
        for name in (*cdc.keys, *cdc.columns, *cdc.except_columns):
            if name not in there:
                raise InvalidError(f"column {name!r} is not among those of the changes{nearest(name, there)}")
        chosen = tuple(
            name for name in there if (not cdc.columns or name in cdc.columns) and name not in cdc.except_columns
        )
        missing = [name for name in cdc.keys if name not in chosen]
        if missing:
            raise InvalidError(f"key {missing[0]!r} is left out of the table's columns")
        return CdcColumns(cdc, chosen)

    @property
    def sequence(self) -> str:
        """The column of a type 1 table by which rows of a key are ordered."""
        plain = self.cdc.sequence_by.strip().strip("`")
        # An option names it, in which a comma would separate two columns.
        return plain if plain in self.data and "," not in plain else SEQUENCE

    def shaped(self, frame: DataFrame) -> DataFrame:
        """Changes in the columns of the table, for its schema."""
        events = self.events(frame)
        if self.cdc.scd_type == 2:
            end = column_named(SEQUENCE)
            return events.select(*self._data(), end.alias(START_AT), end.alias(END_AT))
        return events.select(*self._data(), *self._own_sequence())

    def shaped_deletes(self, frame: DataFrame) -> DataFrame:
        """Changes in the columns of the table of deletions."""
        return self.events(frame).select(*self._keys(), column_named(SEQUENCE))

    def events(self, frame: DataFrame) -> DataFrame:
        """The data of each change, its sequence and whether it is a deletion. A sequence of NULL is an error of the write."""
        sequence = F.expr(self.cdc.sequence_by)
        missing = F.raise_error(F.lit(f"sequence_by ({self.cdc.sequence_by}) is NULL, which orders nothing"))
        kind = frame.select(sequence).schema.fields[0].dataType
        deletes = self.cdc.apply_as_deletes
        return frame.select(
            *self._data(),
            F.when(sequence.isNull(), missing.cast(kind)).otherwise(sequence).alias(SEQUENCE),
            (F.lit(False) if deletes is None else F.coalesce(F.expr(deletes), F.lit(False))).alias(_DELETE),
        )

    def newest(self, frame: DataFrame) -> DataFrame:
        """The newest change of each key; of two with one sequence the deletion."""
        events = self.events(frame)
        order = F.struct(column_named(SEQUENCE), column_named(_DELETE))
        row = F.struct(*map(column_named, events.columns))
        return events.groupBy(*self._keys()).agg(F.max_by(row, order).alias(_ROW)).select(f"{_ROW}.*")

    def _data(self) -> list[Column]:
        return [column_named(name) for name in self.data]

    def _keys(self) -> list[Column]:
        return [column_named(name) for name in self.cdc.keys]

    def _own_sequence(self) -> list[Column]:
        return [column_named(SEQUENCE)] if self.sequence == SEQUENCE else []


@dataclass(frozen=True, slots=True)
class CdcApply:
    """The functions that make the rows of the tables from a batch of changes."""

    columns: CdcColumns
    table: str
    deletes_table: str
    read: Callable[[SparkSession, str], DataFrame]

    def deletes(self, batch: DataFrame) -> DataFrame:
        """The deletions of a batch."""
        found = self.columns.newest(batch) if self.columns.cdc.scd_type == 1 else self.columns.events(batch)
        keys = [column_named(name) for name in self.columns.cdc.keys]
        return found.where(column_named(_DELETE)).select(*keys, column_named(SEQUENCE)).distinct()

    def rows(self, batch: DataFrame) -> DataFrame:
        """The changed rows of the table, with their kinds."""
        return self._versions(batch) if self.columns.cdc.scd_type == 2 else self._newest(batch)

    def _newest(self, batch: DataFrame) -> DataFrame:
        columns, keys = self.columns, list(self.columns.cdc.keys)
        newest = columns.newest(batch)
        if columns.cdc.apply_as_deletes is not None:
            gone = self.read(batch.sparkSession, self.deletes_table).withColumnRenamed(SEQUENCE, _OLD)
            newest = newest.join(gone, keys, "left").where(
                column_named(_DELETE) | column_named(_OLD).isNull() | (column_named(SEQUENCE) > column_named(_OLD))
            )
        kind = F.when(column_named(_DELETE), F.lit("-D")).otherwise(F.lit("+U")).alias(_KIND)
        return newest.select(*columns._data(), *columns._own_sequence(), kind)

    def _versions(self, batch: DataFrame) -> DataFrame:
        """All versions of the keys of a batch, ordered anew; those that are new or end elsewhere are written."""
        columns, keys = self.columns, list(self.columns.cdc.keys)
        others = [name for name in columns.data if name not in keys]
        events = columns.events(batch)
        touched = events.select(*columns._keys()).distinct()
        nothing = F.lit(None).cast(events.schema[SEQUENCE].dataType)
        row = F.struct(*map(column_named, others)) if others else F.struct(F.lit(1).alias("one"))
        fresh = events.where(~column_named(_DELETE)).select(
            *columns._keys(),
            column_named(SEQUENCE),
            row.alias(_ROW),
            F.lit(False).alias(_OLD),
            nothing.alias(_OLD_END),
            F.lit(False).alias(_DELETE),
        )
        stored = (
            self.read(batch.sparkSession, self.table)
            .join(touched, keys, "left_semi")
            .select(
                *columns._keys(),
                column_named(START_AT).alias(SEQUENCE),
                row.alias(_ROW),
                F.lit(True).alias(_OLD),
                column_named(END_AT).alias(_OLD_END),
                F.lit(False).alias(_DELETE),
            )
        )
        every = fresh.unionByName(stored)
        if columns.cdc.apply_as_deletes is not None:
            gone = self.read(batch.sparkSession, self.deletes_table).join(touched, keys, "left_semi")
            every = every.unionByName(
                gone.select(
                    *columns._keys(),
                    column_named(SEQUENCE),
                    F.lit(None).cast(fresh.schema[_ROW].dataType).alias(_ROW),
                    F.lit(False).alias(_OLD),
                    nothing.alias(_OLD_END),
                    F.lit(True).alias(_DELETE),
                )
            )
        return self._changed(every, others)

    def _changed(self, every: DataFrame, others: list[str]) -> DataFrame:
        columns = self.columns
        # Of one key and sequence a new row replaces the stored one, and a deletion both.
        newer = F.struct(column_named(_ROW).isNotNull(), ~column_named(_OLD))
        folded = every.groupBy(*columns._keys(), column_named(SEQUENCE)).agg(
            F.max_by(column_named(_ROW), newer).alias(_ROW),
            F.max(column_named(_DELETE)).alias(_DELETE),
            F.max(column_named(_OLD)).alias(_OLD),
            F.max(~column_named(_OLD)).alias("__new"),
            F.max(column_named(_OLD_END)).alias(_OLD_END),
        )
        by_key = Window.partitionBy(*columns._keys()).orderBy(column_named(SEQUENCE))
        ended = folded.withColumn("__end", F.lead(column_named(SEQUENCE)).over(by_key))
        moved = ~column_named("__end").eqNullSafe(column_named(_OLD_END))
        removed = column_named(_DELETE) & column_named(_OLD)
        written = ended.where(removed | (~column_named(_DELETE) & (column_named("__new") | moved)))
        data = [
            column_named(name) if name in columns.cdc.keys else F.col(f"{_ROW}.{quoted(name)}").alias(name)
            for name in columns.data
        ]
        return written.select(
            *data,
            column_named(SEQUENCE).alias(START_AT),
            column_named("__end").alias(END_AT),
            F.when(column_named(_DELETE), F.lit("-D")).otherwise(F.lit("+U")).alias(_KIND),
        )
