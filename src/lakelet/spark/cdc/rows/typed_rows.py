"""Events of one table and one layout as rows in the table's types, with their row kinds or the reason why not.

kind STRING ─ reason STRING ─ place STRUCT (the order) ─ event columns for the quarantine ─ the table's columns as c0, c1 …
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.model.schema import TableSchema
from lakelet.model.types import Field
from lakelet.options import SEQUENCE_FIELD, TableOptions
from lakelet.spark.cdc.batch_memory import BatchMemory
from lakelet.spark.cdc.envelope.debezium import UNAVAILABLE
from lakelet.spark.cdc.envelope.event_columns import Steps
from lakelet.spark.cdc.rows.column_rule import ColumnRule, Values
from lakelet.spark.cdc.value.value_expression import value_expression
from lakelet.spark.cdc.value.wire_field import WireField
from lakelet.spark.column_names import quoted
from lakelet.spark.session import settings as session_settings
from lakelet.spark.types import spark_type

KIND, REASON, PLACE = "kind", "reason", "place"
EVENT = ("raw", "message_key", "origin", "row_index", "topic", "partition", "offset", "kafka_timestamp", "position")
BYTES = ("raw", "message_key")
_SHOWN = 60
# Formats of local times go through an instant of the session's zone, in which some local times do not exist.
UTC = {"spark.sql.session.timeZone": "UTC"}


@dataclass(frozen=True, slots=True)
class RowShape:
    """What turns events of a table into rows: its schema, the spelling of events without types, the columns made besides."""

    schema: TableSchema
    style: str
    order: str
    made: Mapping[str, ColumnRule] = field(default_factory=dict)

    def columns(self, layouts: Sequence[Sequence[WireField]]) -> tuple[Field, ...]:
        """The table's columns that some event has or that are made; others are left to the write."""
        told = {one.name for layout in layouts for one in layout} | set(self.made) | set(self.schema.primary_keys)
        return tuple(column for column in self.schema.fields if column.name in told)

    @property
    def key_sources(self) -> set[str]:
        """The columns that decide the key: those of the key, and what computed ones are made of."""
        keys = self.schema.primary_keys
        return {*keys, *(rule.reads for name, rule in self.made.items() if name in keys and rule.reads is not None)}

    @property
    def key(self) -> tuple[Hashable, ...]:
        """What expressions depend on; the columns made besides are always those of one query."""
        sequence = TableOptions(self.schema.options).get(SEQUENCE_FIELD) or ()
        return (self.schema.fields, self.schema.primary_keys, tuple(sequence), self.style, self.order)


def typed_rows(
    events: DataFrame, shape: RowShape, layout: Sequence[WireField], columns: Sequence[Field], memory: BatchMemory
) -> DataFrame:
    """The rows of events of one layout: `columns` of the table as c0, c1 …"""
    key = (*shape.key, tuple(layout), tuple(columns), tuple(events.columns))
    steps = memory.once(key, lambda: _steps(events.columns, shape, layout, columns))
    # By position: names may differ by case alone, which `getField` would take for one.
    rows = events.select(*steps.texts).select(*map(F.col, events.columns), *steps.spread).toDF(*steps.names)
    with session_settings(events.sparkSession, UTC if shape.made else {}):
        for chosen in steps.rows:
            rows = rows.select(*chosen)
    return rows


@dataclass(frozen=True, slots=True)
class _Steps:
    """The columns of selects that follow one another: texts of the row's columns, spread by position, then the rows."""

    texts: list[Column]
    spread: list[Column]
    names: list[str]
    rows: Steps


def _steps(known: Sequence[str], shape: RowShape, layout: Sequence[WireField], columns: Sequence[Field]) -> _Steps:
    # In the table's order, as are the reasons of a row: layouts come in any.
    place_of = {name: place for place, name in enumerate(shape.schema.names)}
    fields = sorted((one for one in layout if one.name in place_of), key=lambda one: place_of[one.name])
    keys = [one for one in fields if one.name in shape.key_sources]
    texts = {one.name: f"t{place}" for place, one in enumerate(fields)}
    priors = {one.name: f"p{place}" for place, one in enumerate(keys)}
    images = [_texts_of("image", fields).alias("_image")] if fields else []
    images += [_texts_of("old", keys).alias("_old")] if keys else []
    spread = [F.col("_image.*")] if fields else []
    spread += [F.col("_old.*")] if keys else []
    target = {one.name: shape.schema.field(one.name).type for one in fields}
    values = [value_expression(F.col(texts[one.name]), one, target[one.name], shape.style) for one in fields]
    before = [value_expression(F.col(priors[one.name]), one, target[one.name], shape.style) for one in keys]
    typed = [
        F.col("*"),
        *(value.alias(f"v{place}") for place, value in enumerate(values)),
        *(value.alias(f"b{place}") for place, value in enumerate(before)),
    ]
    return _Steps(
        [F.col("*"), *images],
        spread,
        [*known, *texts.values(), *priors.values()],
        (typed, *_with_kinds(_Typed(fields, keys), shape, columns)),
    )


def _texts_of(row: str, fields: Sequence[WireField]) -> Column:
    """The exact texts of these columns of a row, as a STRUCT."""
    inside = ", ".join(f"{quoted(one.name)}: STRING" for one in fields)
    return F.try_variant_get(F.col(row), "$", f"STRUCT<{inside}>")


@dataclass(frozen=True, slots=True)
class _Typed:
    fields: Sequence[WireField]
    keys: Sequence[WireField]

    def value(self, name: str) -> Column | None:
        place = next((place for place, one in enumerate(self.fields) if one.name == name), None)
        return None if place is None else F.col(f"v{place}")

    def before(self, name: str) -> Column | None:
        """The value before the change; where the event does not tell it, that of now."""
        value = self.value(name)
        place = next((place for place, one in enumerate(self.keys) if one.name == name), None)
        return value if place is None or value is None else F.coalesce(F.col(f"b{place}"), value)


def _with_kinds(typed: _Typed, shape: RowShape, columns: Sequence[Field]) -> Steps:
    made = {name: rule.expression(typed.value) for name, rule in shape.made.items()}
    found = {column.name: found_value(typed.value, made, column) for column in columns}
    earlier = {name: rule.expression(typed.before) for name, rule in shape.made.items() if rule.reads is not None}
    before = {
        column.name: found_value(typed.before, {**made, **earlier}, column)
        for column in columns
        if column.name in shape.schema.primary_keys
    }
    moved = F.lit(False)
    for name, value in before.items():
        moved = moved | F.coalesce(value != found[name], F.lit(False))
    moved = (F.col("operation") == "u") & moved
    kinds = F.when(F.col("operation") == "d", F.array(F.lit("-D"))).when(
        F.col("operation") == "i", F.array(F.lit("+I"))
    )
    kinds = kinds.when(moved, F.array(F.lit("-U"), F.lit("+U"))).otherwise(F.array(F.lit("+U")))
    flat = [
        *map(F.col, (*EVENT, "arrival", "operation")),
        _reason(typed, shape, columns, found, moved).alias(REASON),
        kinds.alias("kinds"),
        *(found[column.name].alias(f"c{place}") for place, column in enumerate(columns)),
        *(before[column.name].alias(f"k{place}") for place, column in enumerate(columns) if column.name in before),
    ]
    # Outer, though there is always a kind: otherwise Spark looks for filters that follow from it, which takes twice as long with
    # every column.
    exploded = [F.col("*"), F.explode_outer("kinds").alias(KIND)]
    chosen = [_retracting(column, place, shape).alias(f"c{place}") for place, column in enumerate(columns)]
    # The bytes of an event are for its quarantine: rows without a reason are kept, shuffled and written without them.
    poison = F.col(REASON).isNotNull()
    event = [F.when(poison, F.col(name)).alias(name) if name in BYTES else F.col(name) for name in EVENT]
    last = [F.col(KIND), F.col(REASON), order(shape.order, F.col(KIND)).alias(PLACE), *event, *chosen]
    return (flat, exploded, last)


def order(by: str, kind: Column) -> Column:
    """The order of changes: Kafka's places, or those in the source's log; within an event its rows, the old key first."""
    inner = [F.col("row_index"), kind != "-U"]
    last = [F.col("position"), F.col("arrival")]
    first = [F.col("partition"), F.col("offset"), *last] if by == "kafka" else last
    return F.struct(*(column.alias(f"o{place}") for place, column in enumerate([*first, *inner])))


def found_value(values: Values, made: Mapping[str, Column], column: Field) -> Column:
    """The value of a column: made, or the event's, or NULL."""
    value = made.get(column.name)
    value = values(column.name) if value is None else value
    return (F.lit(None) if value is None else value).cast(spark_type(column.type))


def _retracting(column: Field, place: int, shape: RowShape) -> Column:
    """The column of a row; a row that retracts has the old key, and a NOT NULL column of it that the event lacks anything."""
    value = F.col(f"c{place}")
    if column.name in shape.schema.primary_keys:
        return F.when(F.col(KIND) == "-U", F.col(f"k{place}")).otherwise(value)
    if column.type.nullable:
        return value
    filler = zero(column)
    return value if filler is None else F.when(F.col(KIND).isin("-U", "-D"), F.coalesce(value, filler)).otherwise(value)


def zero(column: Field) -> Column | None:
    """Some value of a column's type."""
    kind = spark_type(column.type)
    match kind:
        case T.StringType() | T.BinaryType():
            return F.lit("").cast(kind)
        case T.BooleanType():
            return F.lit(False)
        case T.DateType() | T.TimestampType() | T.TimestampNTZType():
            return F.lit("1970-01-01").cast(kind)
        case T.NumericType():
            return F.lit(0).cast(kind)
        case _:
            return None


def _reason(
    typed: _Typed, shape: RowShape, columns: Sequence[Field], found: Mapping[str, Column], moved: Column
) -> Column:
    """Why a row cannot be written: every column whose text is no value of its type, and NULLs where there must be none."""
    wrong: list[Column] = []
    sequence = TableOptions(shape.schema.options).get(SEQUENCE_FIELD) or ()
    for place, one in enumerate(typed.fields):
        text, kind = F.col(f"t{place}"), shape.schema.field(one.name).type
        unfit = text.isNotNull() & F.col(f"v{place}").isNull()
        said = F.concat(F.lit(f"column {one.name}: "), F.substring(text, 1, _SHOWN), F.lit(f" is no {kind}"))
        wrong.append(F.when(unfit & ~_is_key_only(shape, one), said))
        if shape.style.startswith("debezium"):
            unsent = F.lit(f"column {one.name}: the event leaves its value out (REPLICA IDENTITY FULL sends it)")
            wrong.append(F.when(text.isin(*UNAVAILABLE) & ~_is_key_only(shape, one), unsent))
    for place, one in enumerate(typed.keys):
        text = F.col(f"p{place}")
        unfit = text.isNotNull() & F.col(f"b{place}").isNull()
        wrong.append(
            F.when(unfit, F.concat(F.lit(f"key column {one.name} before the change: "), F.substring(text, 1, _SHOWN)))
        )
    for column in columns:
        if column.name in shape.schema.primary_keys:
            wrong.append(F.when(found[column.name].isNull(), F.lit(f"key column {column.name} is missing")))
        elif not column.type.nullable:
            unset = found[column.name].isNull() & (F.col("operation") != "d")
            wrong.append(F.when(unset, F.lit(f"column {column.name} is NULL, which the table forbids")))
        if column.name in sequence:
            unset = found[column.name].isNull() & ((F.col("operation") == "d") | moved)
            lost = f"a delete, or another key, without {column.name}, the table's sequence.field, would delete nothing"
            wrong.append(F.when(unset, F.lit(lost)))
    joined = F.concat_ws("; ", *wrong) if wrong else F.lit("")
    return F.when(joined != "", joined)


def _is_key_only(shape: RowShape, field: WireField) -> Column:
    """Whether the column of a deleted row does not matter: only its key does."""
    return F.lit(False) if field.name in shape.schema.primary_keys else F.col("operation") == "d"
