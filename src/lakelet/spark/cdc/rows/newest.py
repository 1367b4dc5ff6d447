"""Of the rows of one key in a batch the one that wins: the last of its `sequence.field`, else of the order of changes."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakelet.model.schema import TableSchema
from lakelet.model.types import Field
from lakelet.options import SEQUENCE_FIELD, SEQUENCE_FIELD_SORT_ORDER, TableOptions
from lakelet.spark.cdc.rows.typed_rows import KIND, PLACE


def newest(rows: DataFrame, schema: TableSchema, columns: Sequence[Field]) -> DataFrame:
    """One row of each key, under the table's names with the column `kind` behind them."""
    names = [column.name for column in columns]
    place_of = {name: f"c{place}" for place, name in enumerate(names)}
    keys = [F.col(place_of[name]) for name in schema.primary_keys]
    options = TableOptions(schema.options)
    sequence = [F.col(place_of[name]) for name in options.get(SEQUENCE_FIELD) or () if name in place_of]
    values = [*place_of.values(), KIND]
    if sequence and options.get(SEQUENCE_FIELD_SORT_ORDER) == "descending":
        chosen = _lowest(rows, keys, sequence).select(*values)
    else:
        by = F.struct(*sequence, F.col(PLACE))
        best = rows.groupBy(*keys).agg(F.max_by(F.struct(*values), by).alias("row"))
        chosen = best.select("row.*")
    return chosen.toDF(*names, _kind_name(names))


def _lowest(rows: DataFrame, keys: Sequence[Column], sequence: Sequence[Column]) -> DataFrame:
    """NULL loses here too, and among equals the later change wins."""
    ordered = [column.asc_nulls_last() for column in sequence]
    window = Window.partitionBy(*keys).orderBy(*ordered, F.col(PLACE).desc())
    return rows.withColumn("rank", F.row_number().over(window)).filter("rank = 1")


def _kind_name(names: Sequence[str]) -> str:
    taken, name = {one.lower() for one in names}, "_cdc_kind"
    while name in taken:
        name = f"_{name}"
    return name
