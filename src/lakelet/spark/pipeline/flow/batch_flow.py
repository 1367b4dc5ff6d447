"""Flows over whole inputs: materialized views, which are replaced, and flows that run once.

A materialized view is left alone where nothing can have changed it: its newest version carries the digest of its definition
and of the versions of the tables that it was made from. Views over anything else (files, Python, the current time)
are always computed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, Observation

from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.metadata.table_identity import table_uuid
from lakelet.model.snapshot import CommitKind
from lakelet.pipeline.definition import Expectation, Flow, Source, SqlStep, Step, Table, View
from lakelet.pipeline.graph import Input
from lakelet.pipeline.volatile import is_volatile
from lakelet.spark.opened_table import OpenedTable, open_table
from lakelet.spark.pipeline.expectations import Expectations
from lakelet.spark.pipeline.flow.flow_write import FlowWrite, Written, observed
from lakelet.spark.pipeline.target.table_target import TableTarget
from lakelet.spark.pipeline.workspace import Workspace
from lakelet.spark.write.table_write import write_frame
from lakelet.spark.write.write_request import WriteRequest

PROPERTY = "lakelet.pipeline.inputs"
_SETTINGS = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.caseSensitive")
_MADE_ROWS = (CommitKind.APPEND, CommitKind.OVERWRITE)


def write_view(write: FlowWrite, digest: str | None) -> Written:
    """Replaces the rows of a materialized view, and those of its quarantine. Each of them carries the digest: a run that ended
    between the two is recognised."""
    if digest is None:
        return _write(write, WriteRequest("overwrite"))
    return _write(write, WriteRequest("overwrite", properties={PROPERTY: digest}, ignores_empty=False))


def write_once(write: FlowWrite) -> Written:
    """Appends the rows of a flow that runs once in a generation of its target."""
    if write.is_done:
        return Written(is_up_to_date=True)
    request = WriteRequest("append", commit_user=write.user, commit_identifier=0)
    _, done = _opened(write, write.target.name).table.new_commit(write.user, 0).look_back()
    made = _write(write, request, committed=done is not None)
    # What was set aside is known by no commit of its own where there was nothing.
    write.set_done()
    return made


def _write(write: FlowWrite, request: WriteRequest, *, committed: bool = False) -> Written:
    """Writes the rows, then those that are set aside; `committed` is whether the rows are there from an earlier run."""
    with _read_once(write) as (expectations, frame):
        observation = Observation() if expectations.listed and not committed else None
        made = None
        if not committed:
            made = write_frame(expectations.met(frame, observation), _opened(write, write.target.name), request)
        counts = {} if observation is None else observed(observation)
        unmet = expectations.counted(counts) if counts else {}
        if expectations.quarantines and (not counts or any(unmet.values()) or request.mode == "overwrite"):
            write_frame(expectations.set_aside(frame), _opened(write, write.target.quarantine), request)
    if committed:
        return Written(is_up_to_date=True)
    replaces = request.mode == "overwrite"
    rows = 0 if made is None else made.total_record_count if replaces else made.delta_record_count
    return Written(counts.get("rows", rows), unmet)


@contextmanager
def _read_once(write: FlowWrite) -> Iterator[tuple[Expectations, DataFrame]]:
    """The frame of a flow, kept where reading it twice may give a row that is neither written nor set aside, or both."""
    if not write.expectations.quarantines or is_repeatable(write.work, write.flow):
        yield write.expectations, write.frame
        return
    expectations, frame = write.expectations.flagged(write.frame)
    kept = frame.persist()
    try:
        yield expectations, kept
    finally:
        kept.unpersist()


def _opened(write: FlowWrite, name: str) -> OpenedTable:
    return open_table(write.work.warehouse, name, write.work.options)


def is_up_to_date(target: TableTarget, digest: str | None) -> bool:
    """Whether the newest rows of a view, and of its quarantine, were made from what the digest says."""
    return digest is not None and all(_is_made_of(target.work, name, digest) for name in target.replaced)


def _is_made_of(work: Workspace, name: str, digest: str) -> bool:
    if not work.lake.table_exists(name):
        return False
    snapshots = reversed(work.lake.table(name).snapshots())
    newest = next((one for one in snapshots if one.commit_kind in _MADE_ROWS), None)
    return newest is not None and (newest.properties or {}).get(PROPERTY) == digest


def digest_of(work: Workspace, flow: Flow) -> str | None:
    """The digest of a view's definition and of the versions that it reads; None where something has no version."""
    if not is_repeatable(work, flow):
        return None
    versions = []
    for one in work.graph.stored_inputs(flow):
        version = _version(work, one)
        if version is None:
            return None
        versions.append(version)
    expectations = [(one.name, one.condition, one.action) for one in _expectations(work, flow)]
    # Settings of the session by which the same query over the same rows gives others.
    session = [sorted(work.pipeline.spark.items()), *(str(work.spark.conf.get(name)) for name in _SETTINGS)]
    texts = [step.text for step in _steps(work, flow) if isinstance(step, SqlStep)]
    return hashlib.sha256(json.dumps([texts, sorted(versions), expectations, session]).encode()).hexdigest()


def is_repeatable(work: Workspace, flow: Flow) -> bool:
    """Whether a flow gives the same rows again where its inputs are the same: SQL, without functions of the moment."""
    if any(is_volatile(one.condition) for one in _expectations(work, flow)):
        return False
    return all(isinstance(step, SqlStep) and not is_volatile(step.text) for step in _steps(work, flow))


def _expectations(work: Workspace, flow: Flow) -> tuple[Expectation, ...]:
    table = work.graph.table(flow.target)
    return () if table is None else table.expectations


def _steps(work: Workspace, flow: Flow) -> list[Step]:
    return [flow.step, *(view.step for view in _views(work, work.graph.of_flow(flow)))]


def _views(work: Workspace, inputs: tuple[Input, ...]) -> Iterator[View]:
    for one in inputs:
        if isinstance(one.dataset, View):
            yield one.dataset
            yield from _views(work, work.graph.of_view(one.dataset))


def _version(work: Workspace, one: Input) -> tuple[str, str, int, int, str] | None:
    """The name and identity of an input that is a Lakelet table, its newest schema, and its newest snapshot: the number of one
    is used again after a rollback, its delta manifest list is not."""
    match one.dataset:
        case Table(format="lakelet"):
            name = work.pipeline.stored_name(one.dataset)
        case Source(format="lakelet", table=str(table)) if not one.dataset.options:
            name = table
        case None if one.name.count(".") == 1 and "$" not in one.name:
            name = one.name
        case _:
            return None
    if not work.lake.table_exists(name):
        return None
    home = work.lake.table(name).home
    uuid, newest = table_uuid(home), latest_snapshot(home)
    if uuid is None:
        return None
    schema = latest_schema(home).id
    return (
        (name, uuid, schema, 0, "") if newest is None else (name, uuid, schema, newest.id, newest.delta_manifest_list)
    )
