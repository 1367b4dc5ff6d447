"""Rows of scanned events in a table's types, by one task over the JSON in their packs instead of expressions for each column.

The columns of `typed_rows`, and behind them what is needed to read a row again: the row is `unsure` where expressions have to
decide, because it is poison, or two rows, or spelt in an uncommon way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.model.types import Field
from lakelet.options import SEQUENCE_FIELD, TableOptions
from lakelet.spark.cdc.batch_memory import BatchMemory
from lakelet.spark.cdc.discovery import EventGroup
from lakelet.spark.cdc.envelope.event_columns import HASH
from lakelet.spark.cdc.rows.typed_rows import BYTES, EVENT, KIND, PLACE, REASON, UTC, RowShape, found_value, order, zero
from lakelet.spark.cdc.scan.row_cells import RowReader, cell_plan
from lakelet.spark.cdc.scan.row_task import ROW_COLUMNS, RowTask
from lakelet.spark.cdc.scan.scanned_events import packs_of
from lakelet.spark.session import settings as session_settings
from lakelet.spark.types import spark_type

# What a row that is unsure is read from.
_AGAIN = ("operation", "op_millis", "arrival", HASH)


def scanned_rows(
    events: DataFrame, shape: RowShape, group: EventGroup, columns: Sequence[Field], memory: BatchMemory
) -> DataFrame:
    """The rows of a group's scanned events; all are unsure where a column has a spelling that the scanner does not know."""
    key = ("scanned", *shape.key, group.source, tuple(group.fields), tuple(columns))
    steps = memory.once(key, lambda: _steps(shape, group, columns))
    with session_settings(events.sparkSession, UTC if shape.made else {}):
        read = packs_of(events, group.hashes).mapInArrow(steps.task, steps.read)
        return read.select("*", *steps.named).select(*steps.made)


@dataclass(frozen=True, slots=True)
class _Steps:
    """The task that reads rows and its columns, those behind them that are the same for all rows, then the rows."""

    task: RowTask
    read: T.StructType
    named: list[Column]
    made: list[Column]


def _steps(shape: RowShape, group: EventGroup, columns: Sequence[Field]) -> _Steps:
    fields = [one for one in group.fields if one.name in shape.schema.names]
    plans = [cell_plan(one, shape.schema.field(one.name).type, shape.style) for one in fields]
    known = [plan for plan in plans if plan is not None]
    place_of = {one.name: place for place, one in enumerate(fields)}
    sequence = TableOptions(shape.schema.options).get(SEQUENCE_FIELD) or ()
    filled = [one.name for one in shape.schema.fields if not one.type.nullable]
    required = {*shape.schema.primary_keys, *filled, *sequence}
    reader = None
    if len(known) < len(plans) or not required <= {*place_of, *shape.made}:
        place_of = {}
    else:
        keys = [name for name in place_of if name in shape.key_sources]
        places = [tuple(place_of[name] for name in names if name in place_of) for names in (keys, filled, sequence)]
        reader = RowReader(tuple(known), *places)
    source = group.source
    names = {"database_name": source.database, "schema_name": source.schema, "table_name": source.name}
    named = [
        F.lit(None).cast("string").alias("origin"),
        *(F.lit(text).cast("string").alias(name) for name, text in names.items()),
    ]
    may_fail = required & set(shape.made)
    task = RowTask(reader, lean=not may_fail)
    return _Steps(task, _read(reader), named, _made(shape, columns, place_of, may_fail))


def _read(reader: RowReader | None) -> T.StructType:
    """The columns that a task gives."""
    plans = () if reader is None else reader.plans
    cells = [T.StructField(f"v{place}", spark_type(plan.target)) for place, plan in enumerate(plans)]
    return T.StructType([*ROW_COLUMNS, *cells, T.StructField("unsure", T.BooleanType())])


def _made(shape: RowShape, columns: Sequence[Field], place_of: Mapping[str, int], required: Set[str]) -> list[Column]:
    """The columns of rows; one without a value for what is made and `required` is unsure."""

    def value(name: str) -> Column | None:
        return F.col(f"v{place_of[name]}") if name in place_of else None

    operation, unsure = F.col("operation"), F.col("unsure")
    kind = F.when(operation == "d", F.lit("-D")).when(operation == "i", F.lit("+I")).otherwise(F.lit("+U"))
    rules = {name: rule.expression(value) for name, rule in shape.made.items()}
    found = []
    for place, column in enumerate(columns):
        made = found_value(value, rules, column)
        if column.name in required:
            unsure = unsure | made.isNull()
        filler = None if column.type.nullable or column.name in shape.schema.primary_keys else zero(column)
        if filler is not None:
            made = F.when(operation == "d", F.coalesce(made, filler)).otherwise(made)
        found.append(made.alias(f"c{place}"))
    return [
        kind.alias(KIND),
        F.lit(None).cast("string").alias(REASON),
        order(shape.order, kind).alias(PLACE),
        *(F.when(unsure, F.col(name)).alias(name) if name in BYTES else F.col(name) for name in EVENT),
        *found,
        unsure.alias("unsure"),
        *(F.when(unsure, F.col(name)).alias(name) for name in ("image", "old")),
        *map(F.col, _AGAIN),
    ]


def unsure_events(rows: DataFrame, group: EventGroup) -> DataFrame:
    """The rows of a group that are unsure, as events in the columns that `typed_rows` reads."""
    source = group.source
    names = {"database_name": source.database, "schema_name": source.schema, "table_name": source.name}
    return rows.filter(f"unsure AND {group.condition}").select(
        *map(F.col, (*EVENT, *_AGAIN)),
        *(F.lit(text).cast("string").alias(name) for name, text in names.items()),
        # Rows that were scanned are JSON: where VARIANT finds otherwise, the batch fails rather than lose one.
        *(F.parse_json(F.col(name).cast("string")).alias(name) for name in ("image", "old")),
    )
