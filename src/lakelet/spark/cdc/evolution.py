"""The schema that a table needs for the columns of change events, as pure functions: the same again changes nothing.

New columns are added, types widened; a narrower type at the source changes nothing, for the table's holds its values. Dropped
and renamed columns stay. Keys never change. Another type (a number that became text) is an error, or STRING by `on_conflict`,
where older files can be read that way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakelet.errors import InvalidError
from lakelet.lsm.engine.table_engine import column_rules
from lakelet.model.schema import TableSchema
from lakelet.model.schema_change.evolution import add_column, change_nullability, change_type
from lakelet.model.schema_change.merged_types import merged_type
from lakelet.model.schema_change.widening import casts_as_paimon, check_widening
from lakelet.model.types import STRINGS, Atomic, DataType, string, with_nullable
from lakelet.options import RECORD_LEVEL_TIME_FIELD, SEQUENCE_FIELD, TableOptions
from lakelet.spark.cdc.value.wire_field import WireField

# What merges take values by that is the same for texts: which row is the newer one, not which value is greater.
_OF_ANY_VALUE = frozenset(
    ("last_value", "last_non_null_value", "first_value", "first_non_null_value", "first_not_null_value")
)


@dataclass(frozen=True, slots=True)
class EvolutionPolicy:
    """`columns`: add and widen columns, or leave the table as it is. `on_conflict`: "fail", or "string" for a type STRING.
    `to_nullable`: NOT NULL columns, save keys, become nullable."""

    columns: bool = True
    on_conflict: str = "fail"
    to_nullable: bool = False

    def __post_init__(self) -> None:
        if self.on_conflict not in ("fail", "string"):
            raise InvalidError(f"on_conflict {self.on_conflict!r}: expected fail or string")


def evolved(schema: TableSchema, columns: Sequence[WireField], policy: EvolutionPolicy) -> TableSchema:
    """The schema that also holds these columns; the same object where it does already."""
    for column in columns:
        schema = _with(schema, column, policy)
    return schema


def _with(schema: TableSchema, column: WireField, policy: EvolutionPolicy) -> TableSchema:
    if column.name not in schema.names:
        return add_column(schema, [column.name], column.type or string()) if policy.columns else schema
    if column.name in schema.primary_keys:
        return schema
    old = schema.field(column.name).type
    if policy.to_nullable and not old.nullable:
        schema = change_nullability(schema, [column.name], nullable=True)
    if not policy.columns or column.type is None:
        return schema
    new = _wanted(old, column, policy)
    if _same(old, new):
        return schema
    if _same(new, string()) and not _holds(new, old):
        return _as_text(schema, column.name)
    return change_type(schema, [column.name], with_nullable(new, True))


def _as_text(schema: TableSchema, name: str) -> TableSchema:
    """The schema with a column as STRING whose values in older files are read as text; InvalidError where that is not what every
    reader of the format finds, or where text would have another order or place."""
    old = schema.field(name).type
    options, rule = TableOptions(schema.options), column_rules(schema).get(name, "last_value").split(" by ", 1)[0]
    placed = {*schema.partition_keys, *schema.bucket_keys, *(options.get(SEQUENCE_FIELD) or ())}
    if name in placed or rule == "sequence" or name == options.get(RECORD_LEVEL_TIME_FIELD):
        raise InvalidError(f"column {name!r} cannot become STRING: rows are placed or ordered by it as {old}")
    if rule not in _OF_ANY_VALUE:
        raise InvalidError(f"column {name!r} cannot become STRING: its values are aggregated ('{rule}') as {old}")
    if not isinstance(old, Atomic) or not casts_as_paimon(old, string()):
        raise InvalidError(
            f"column {name!r} cannot become STRING: the table format keeps no {old} of older files as text"
        )
    text = with_nullable(string(), old.nullable)
    fields = [replace(field, type=text) if field.name == name else field for field in schema.fields]
    return replace(schema, fields=tuple(fields))


def _wanted(old: DataType, column: WireField, policy: EvolutionPolicy) -> DataType:
    new: DataType = column.type or string()
    if _same(old, new) or _holds(old, new):
        return old
    if _holds(new, old):
        return new
    merged = merged_type(old, new, widens=True)
    if not _same(merged, old):
        return merged
    if _kindred(old, new):
        return old
    if policy.on_conflict == "string":
        return string()
    raise InvalidError(
        f"column {column.name!r} is {old}, but change events have {new} now, which it does not hold; "
        "on_conflict='string' makes it STRING where that keeps its values"
    )


def _kindred(old: DataType, new: DataType) -> bool:
    """One kind in two sizes of which neither holds the other: values that do not fit go to quarantine one by one."""
    return isinstance(old, Atomic) and isinstance(new, Atomic) and (old.kind is new.kind or old.kind in STRINGS)


def _holds(wide: DataType, narrow: DataType) -> bool:
    try:
        check_widening(narrow, wide, "")
    except InvalidError:
        return False
    return True


def _same(one: DataType, other: DataType) -> bool:
    return with_nullable(one, True) == with_nullable(other, True)
