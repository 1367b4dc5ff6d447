"""A pipeline as a value: sources, views, tables, sinks, and the flows that fill them.

    Source            rows from outside: files, Kafka, JDBC, any format of Spark's, a table
    View              a query by a name, stored nowhere
    Table             a stored table: a streaming table that flows append to, or a materialized view that one query defines
    Sink              a format of Spark's that flows write to
    Flow              one query into one table or sink; the unit that is run, retried, checkpointed and reported

Definitions come from YAML (`yaml_file`) or from Python (`registry`), and mean the same. Nothing here runs anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lakelet.pipeline.place import Place

LAKELET, ICEBERG = "lakelet", "iceberg"
# Tables that a run makes: of rows that were set aside, of deletions of an auto CDC flow, and of events.
QUARANTINE_SUFFIX, DELETES_SUFFIX, EVENTS = "_quarantine", "_deletes", "pipeline_events"


class Action(StrEnum):
    """What happens to rows that do not meet an expectation."""

    WARN = "warn"
    DROP = "drop"
    FAIL = "fail"
    QUARANTINE = "quarantine"


class FlowKind(StrEnum):
    """How a flow fills its target."""

    APPEND = "append"
    ONCE = "once"
    COMPLETE = "complete"
    CDC = "auto_cdc"


@dataclass(frozen=True, slots=True)
class Expectation:
    """A condition that rows have to meet; NULL does not meet it."""

    name: str
    condition: str
    action: Action
    place: Place


@dataclass(frozen=True, slots=True)
class Source:
    """Rows from outside. `table` names a Lakelet table (database.table) or an Iceberg table (catalog.database.table)."""

    name: str
    place: Place
    format: str
    path: tuple[str, ...] = ()
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    table: str | None = None


@dataclass(frozen=True, slots=True)
class SqlStep:
    """A query in Spark's SQL; STREAM(name) reads only what is new."""

    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Read:
    """An argument of a Python step: the table or view of that name, as a stream or as a whole."""

    argument: str
    name: str
    streaming: bool


@dataclass(frozen=True, slots=True)
class PythonStep:
    """A Python function that returns a DataFrame. `function` is there where the pipeline is Python; otherwise `file` and `called`
    say where it is defined, and the user has to name that file for it to be loaded."""

    called: str
    reads: tuple[Read, ...]
    place: Place
    file: str | None = None
    function: Callable[..., Any] | None = None


Step = SqlStep | PythonStep


@dataclass(frozen=True, slots=True)
class View:
    """A temporary view: a query by a name."""

    name: str
    step: Step
    place: Place
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A stored table, `streaming` or a materialized view. `schema` are its columns, None for those of its query."""

    name: str
    place: Place
    streaming: bool
    format: str = LAKELET
    schema: str | None = None
    primary_key: tuple[str, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    expectations: tuple[Expectation, ...] = ()


@dataclass(frozen=True, slots=True)
class Sink:
    """A format of Spark's that flows write to."""

    name: str
    place: Place
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    expectations: tuple[Expectation, ...] = ()


@dataclass(frozen=True, slots=True)
class Cdc:
    """How changes are applied by key. `scd_type` 1 keeps the newest row of each key, 2 every version of it.

    `sequence_by` and `apply_as_deletes` are expressions of Spark's SQL over the columns of the source.
    """

    keys: tuple[str, ...]
    sequence_by: str
    apply_as_deletes: str | None = None
    columns: tuple[str, ...] = ()
    except_columns: tuple[str, ...] = ()
    scd_type: int = 1


@dataclass(frozen=True, slots=True)
class Flow:
    """One query into one target. `retries` None means as often as the pipeline says."""

    name: str
    target: str
    kind: FlowKind
    step: Step
    place: Place
    cdc: Cdc | None = None
    retries: int | None = None


@dataclass(frozen=True, slots=True)
class Pipeline:
    """All definitions of one pipeline, each name once. Tables named without a database are in `database`."""

    name: str
    place: Place
    database: str = "default"
    warehouse: str | None = None
    state: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    spark: Mapping[str, str] = field(default_factory=dict)
    retries: int = 2
    sources: tuple[Source, ...] = ()
    views: tuple[View, ...] = ()
    tables: tuple[Table, ...] = ()
    sinks: tuple[Sink, ...] = ()
    flows: tuple[Flow, ...] = ()

    def flows_into(self, table: Table) -> tuple[Flow, ...]:
        """The flows that fill a table."""
        return tuple(flow for flow in self.flows if flow.target.lower() == table.name.lower())

    def stored_name(self, table: Table) -> str:
        """The name of a table in the warehouse or, for an Iceberg table, in its catalogs."""
        if table.format == ICEBERG:
            return table.name
        return table.name if "." in table.name else f"{self.database}.{table.name}"
