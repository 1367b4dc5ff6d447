"""What `sync_cdc` was asked for, checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.errors import InvalidError
from lakelet.spark.cdc.batch_memory import BatchMemory
from lakelet.spark.cdc.envelope import canal, debezium, maxwell
from lakelet.spark.cdc.envelope.event_columns import HASH, Steps, group_hash
from lakelet.spark.cdc.evolution import EvolutionPolicy
from lakelet.spark.cdc.route import Route, SourceTable
from lakelet.spark.cdc.rows.column_rule import ColumnRule
from lakelet.spark.cdc.value.type_rules import TypeRules
from lakelet.spark.cdc.value.wire_field import WireField

FORMATS = ("debezium", "canal", "maxwell")
ORDERS = ("auto", "kafka", "source")
TRUNCATES = ("quarantine", "apply")
DECIMALS = ("precise", "string", "double")


@dataclass(frozen=True, slots=True)
class CdcSettings:
    """Everything about a synchronisation beside its events and its identity."""

    warehouse: str
    format: str
    route: Route
    quarantine: str
    mapping: TypeRules = field(default_factory=TypeRules)
    policy: EvolutionPolicy = field(default_factory=EvolutionPolicy)
    made: Mapping[str, ColumnRule] = field(default_factory=dict)
    primary_key: Sequence[str] | Mapping[str, Sequence[str]] = ()
    partitioned_by: Sequence[str] = ()
    table_options: Mapping[str, object] = field(default_factory=dict)
    create: bool = True
    truncate: str = "quarantine"
    order: str = "auto"
    decimals: str = "precise"
    options: Mapping[str, str] = field(default_factory=dict)
    memory: BatchMemory = field(default_factory=BatchMemory, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, found, known in (
            ("format", self.format, FORMATS),
            ("order", self.order, ORDERS),
            ("truncate", self.truncate, TRUNCATES),
            ("decimals", self.decimals, DECIMALS),
        ):
            if found not in known:
                raise InvalidError(f"{name} {found!r}: expected one of {', '.join(known)}")
        if self.quarantine == self.route.table:
            raise InvalidError(f"quarantine {self.quarantine!r} is the table that events go to: expected another one")

    def target_of(self, source: SourceTable) -> str | None:
        """The table that a source table's events go to (`Route.target`); InvalidError where it would be the quarantine."""
        target = self.route.target(source)
        if target == self.quarantine:
            raise InvalidError(
                f"source table {source}: {target} is the quarantine; table_mapping can give it another name, or quarantine= "
                "the events that are put aside"
            )
        return target

    @property
    def style(self) -> str:
        """How events without types spell values (`wire_field.implied_codec`)."""
        return "debezium-text" if self.format == "debezium" and self.decimals != "precise" else self.format

    def events(self, frame: DataFrame, *, exact: bool) -> DataFrame:
        """The frame's events in the columns of `event_columns`, with a short name for their group (`discovery`)."""
        steps = self.memory.once((frame.schema.simpleString(), exact), lambda: self._steps(frame.schema, exact=exact))
        for columns in steps:
            frame = frame.select(*columns)
        return frame

    def _steps(self, found: T.StructType, *, exact: bool) -> Steps:
        match self.format:
            case "canal":
                made = canal.steps(found)
            case "maxwell":
                made = maxwell.steps(found)
            case _:
                made = debezium.steps(found, exact=exact)
        return (*made, [F.col("*"), group_hash().alias(HASH)])

    def layout_of(self, text: str) -> tuple[WireField, ...]:
        """The columns that the text of a layout tells."""
        module = {"canal": canal, "maxwell": maxwell}.get(self.format, debezium)
        fields: tuple[WireField, ...] = module.layout_of(text, self.mapping)
        return fields

    def order_of(self, frame: DataFrame) -> str:
        """ "kafka" where events have their places there, unless told otherwise."""
        if self.order != "auto":
            return self.order
        return "kafka" if {"partition", "offset"} <= set(frame.columns) else "source"

    def key_of(self, source: str, target: str) -> Sequence[str]:
        """The primary key that the caller named for a table, by the name of the source or the target."""
        if not isinstance(self.primary_key, Mapping):
            return tuple(self.primary_key)
        return tuple(self.primary_key.get(source, self.primary_key.get(target, ())))
