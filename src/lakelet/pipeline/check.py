"""Check what definitions say by themselves: names, targets, keys and actions. The graph checks what they say of one another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from lakelet.errors import InvalidError
from lakelet.model.near_names import nearest
from lakelet.pipeline.definition import (
    DELETES_SUFFIX,
    EVENTS,
    ICEBERG,
    LAKELET,
    QUARANTINE_SUFFIX,
    Action,
    Flow,
    FlowKind,
    Pipeline,
    Sink,
    Source,
    Table,
    View,
)
from lakelet.pipeline.place import Place
from lakelet.storage.paths import check_name

# A folder of the state is named after the pipeline.
_PIPELINE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\Z")
START_AT, END_AT = "__start_at", "__end_at"
_ONLY_BATCH = ("jdbc",)


def checked(pipeline: Pipeline) -> Pipeline:
    """The pipeline with the keys of its auto CDC tables filled in; InvalidError for the first thing that makes no sense."""
    if not _PIPELINE_NAME.match(pipeline.name):
        raise pipeline.place.invalid(
            f"name {pipeline.name!r}: expected letters, digits, '_', '-' and '.', for a folder is called like it"
        )
    _valid_name(pipeline.database, "database", pipeline.place)
    _check_printable(pipeline)
    for source in pipeline.sources:
        _check_source(source)
    for table in pipeline.tables:
        _check_table(pipeline, table)
    for sink in pipeline.sinks:
        _check_sink(sink)
    _check_distinct(pipeline)
    _check_beside(pipeline)
    _check_flows(pipeline)
    return replace(pipeline, tables=tuple(_with_keys(pipeline, table) for table in pipeline.tables))


def _valid_name(name: str, what: str, place: Place) -> None:
    try:
        check_name(name, what)
    except InvalidError as error:
        raise place.invalid(str(error)) from None


def _check_printable(pipeline: Pipeline) -> None:
    """InvalidError for a name with signs that a terminal or a picture would not show as they are."""
    targets: tuple[Table | Sink, ...] = (*pipeline.tables, *pipeline.sinks)
    expectations = [one for target in targets for one in target.expectations]
    named = (*pipeline.sources, *pipeline.views, *targets, *pipeline.flows, *expectations)
    for one in named:
        if not one.name.isprintable():
            raise one.place.invalid(f"name {one.name!r}: expected signs that can be printed")


def _check_sink(sink: Sink) -> None:
    for one in sink.expectations:
        if one.action is Action.QUARANTINE:
            raise one.place.invalid(
                f"sink {sink.name!r}: quarantine is for tables, which have one beside them; expected warn, drop or fail"
            )


def _check_source(source: Source) -> None:
    if not source.name.strip() or "." in source.name:
        raise source.place.invalid(f"source {source.name!r}: expected a name without dots")
    if source.table is None and source.format in (LAKELET, ICEBERG):
        raise source.place.invalid(f"source {source.name!r}: format {source.format} goes with table")
    if source.table is not None:
        parts = 3 if source.format == ICEBERG else 2
        if source.format not in (LAKELET, ICEBERG):
            raise source.place.invalid(f"source {source.name!r}: table goes with format lakelet or iceberg")
        if len(source.table.split(".")) != parts:
            form = "catalog.database.table" if parts == 3 else "database.table"
            raise source.place.invalid(f"source {source.name!r}: table {source.table!r}, expected {form}")
        if source.path or source.schema:
            raise source.place.invalid(f"source {source.name!r}: path and schema do not go with table")


def _check_table(pipeline: Pipeline, table: Table) -> None:
    what = f"table {table.name!r}"
    if table.format not in (LAKELET, ICEBERG):
        raise table.place.invalid(
            f"format {table.format!r} of {what}: expected lakelet or iceberg; a sink takes any other"
        )
    parts = pipeline.stored_name(table).split(".")
    if len(parts) != (3 if table.format == ICEBERG else 2):
        form = "catalog.database.table" if table.format == ICEBERG else "table or database.table"
        raise table.place.invalid(f"{what}: expected a name of the form {form}")
    for part in parts:
        _valid_name(part, "table", table.place)
    if table.format == ICEBERG and table.primary_key:
        raise table.place.invalid(f"{what}: Iceberg tables have no primary key")
    quarantines = [one for one in table.expectations if one.action is Action.QUARANTINE]
    if quarantines and table.format == ICEBERG:
        raise quarantines[0].place.invalid(f"{what}: quarantine is for Lakelet tables; expected warn, drop or fail")


def _check_distinct(pipeline: Pipeline) -> None:
    """InvalidError where two definitions share a name; case does not distinguish them, for it does not in SQL."""
    seen: dict[str, Place] = {}
    for name, place in _names(pipeline):
        before = seen.setdefault(name.lower(), place)
        if before is not place:
            raise place.invalid(f"{name!r} is defined twice, first at {before}")
    flows: dict[str, Flow] = {}
    for flow in pipeline.flows:
        other = flows.setdefault(flow.name.lower(), flow)
        if other is not flow:
            raise flow.place.invalid(f"two flows are called {flow.name!r}, the first at {other.place}")


def _names(pipeline: Pipeline) -> Iterator[tuple[str, Place]]:
    unstored: tuple[Source | View | Sink, ...] = (*pipeline.sources, *pipeline.views, *pipeline.sinks)
    for one in unstored:
        if not one.name.strip() or "." in one.name:
            raise one.place.invalid(f"{one.name!r}: expected a name without dots")
        yield f"{pipeline.database}.{one.name}", one.place
    for table in pipeline.tables:
        yield pipeline.stored_name(table), table.place


def _check_beside(pipeline: Pipeline) -> None:
    """InvalidError where a table is called like one that a run makes: a quarantine, remembered deletions, or the event log."""
    made = {f"{pipeline.database}.{EVENTS}".lower(): "the events of runs"}
    for table in pipeline.tables:
        stored = pipeline.stored_name(table).lower()
        if any(one.action is Action.QUARANTINE for one in table.expectations):
            made[stored + QUARANTINE_SUFFIX] = f"rows of {table.name!r} that are set aside"
        if any(one.cdc and one.cdc.apply_as_deletes for one in pipeline.flows_into(table)):
            made[stored + DELETES_SUFFIX] = f"deletions of {table.name!r}"
    for table in pipeline.tables:
        what = made.get(pipeline.stored_name(table).lower())
        if what is not None:
            raise table.place.invalid(f"table {table.name!r}: a run keeps {what} in a table of that name; take another")


def _check_flows(pipeline: Pipeline) -> None:
    tables = {table.name.lower(): table for table in pipeline.tables}
    sinks = {sink.name.lower(): sink for sink in pipeline.sinks}
    filled = set()
    for flow in pipeline.flows:
        if not flow.name.strip():
            raise flow.place.invalid("a flow has no name")
        key = flow.target.lower()
        table = tables.get(key)
        if table is None and key not in sinks:
            raise flow.place.invalid(
                f"flow {flow.name!r}: there is no table or sink {flow.target!r}{nearest(flow.target, [*tables, *sinks])}"
            )
        if flow.kind is not FlowKind.COMPLETE and table is not None and not table.streaming:
            raise flow.place.invalid(f"flow {flow.name!r}: {flow.target!r} is a materialized view, which has one query")
        if flow.cdc is not None:
            _check_cdc(pipeline, flow, table)
        filled.add(key)
    targets: tuple[Table | Sink, ...] = (*pipeline.tables, *pipeline.sinks)
    for empty in targets:
        if empty.name.lower() not in filled:
            raise empty.place.invalid(
                f"no flow fills {empty.name!r}: give it a query, or a flow with target: {empty.name}"
            )


def _check_cdc(pipeline: Pipeline, flow: Flow, table: Table | None) -> None:
    assert flow.cdc is not None
    if table is None or table.format != LAKELET:
        raise flow.place.invalid(f"auto CDC flow {flow.name!r}: expected a Lakelet table as target")
    others = [one.name for one in pipeline.flows if one.target.lower() == flow.target.lower() and one is not flow]
    if others:
        raise flow.place.invalid(
            f"auto CDC flow {flow.name!r}: {flow.target!r} is filled by {others[0]!r} as well, and keys are one flow's"
        )
    if flow.cdc.columns and flow.cdc.except_columns:
        raise flow.place.invalid(f"auto CDC flow {flow.name!r}: expected columns or except_columns, found both")


def _with_keys(pipeline: Pipeline, table: Table) -> Table:
    """A table of an auto CDC flow with its key: that of the changes, and of the second type the start of a version besides."""
    flow = next((one for one in pipeline.flows if one.cdc and one.target.lower() == table.name.lower()), None)
    if flow is None or flow.cdc is None:
        return table
    expected = (*flow.cdc.keys, START_AT) if flow.cdc.scd_type == 2 else flow.cdc.keys
    if table.primary_key and table.primary_key != expected:
        raise table.place.invalid(
            f"table {table.name!r}: primary_key {', '.join(table.primary_key)}, expected {', '.join(expected)}, "
            f"the keys of flow {flow.name!r}"
        )
    return replace(table, primary_key=expected)


def never_streams(source: Source) -> bool:
    """Whether Spark reads a format as a whole only."""
    return source.format.lower() in _ONLY_BATCH
