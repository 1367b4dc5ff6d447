"""Flows over whole inputs: materialized views, which are replaced, and flows that run once.

A materialized view is left alone where nothing can have changed it: its newest version carries the digest of its definition
and of the versions of the tables that it was made from. Views over anything else (files, Python, the current time)
are always computed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator

from pyspark.sql import Observation

from lakelet.commit.metadata.table_identity import table_uuid
from lakelet.model.snapshot import CommitKind
from lakelet.pipeline.definition import Flow, PythonStep, Source, SqlStep, Step, Table, View
from lakelet.pipeline.graph import Input
from lakelet.spark.opened_table import OpenedTable, open_table
from lakelet.spark.pipeline.expectations import Expectations
from lakelet.spark.pipeline.flow_write import FlowWrite, Written, observed
from lakelet.spark.pipeline.workspace import Workspace
from lakelet.spark.write.table_write import write_frame
from lakelet.spark.write.write_request import WriteRequest
from lakelet.sql.lexer.spark_words import words_of

PROPERTY = "lakelet.pipeline.inputs"
# Functions whose value differs from run to run.
_VOLATILE = re.compile(
    r"(current_\w+|now|curdate|localtimestamp|unix_timestamp|rand|randn|random|randstr|uniform|uuid|shuffle|user|session_user"
    r"|input_file_\w+|monotonically_increasing_id|spark_partition_id|java_method|reflect|try_reflect|version)\Z",
    re.IGNORECASE,
)
_MADE_ROWS = (CommitKind.APPEND, CommitKind.OVERWRITE)


def write_view(write: FlowWrite, digest: str | None) -> Written:
    """Replaces the rows of a materialized view, and those of its quarantine."""
    properties = None if digest is None else {PROPERTY: digest}
    return _write(write, WriteRequest("overwrite", properties=properties), WriteRequest("overwrite"))


def write_once(write: FlowWrite) -> Written:
    """Appends the rows of a flow that runs once in a generation of its target."""
    request = WriteRequest("append", commit_user=write.user, commit_identifier=0)
    opened = open_table(write.work.warehouse, write.target.name, write.work.options)
    _, done = opened.table.new_commit(write.user, 0).look_back()
    if done is not None and not write.expectations.quarantines:
        return Written(is_up_to_date=True)
    return _write(write, request, request, committed=done is not None)


def _write(write: FlowWrite, request: WriteRequest, aside: WriteRequest, *, committed: bool = False) -> Written:
    observation = Observation() if write.expectations.listed and not committed else None
    rows = write.expectations.met(write.frame, observation)
    made = write_frame(rows, _opened(write, write.target.name), request)
    counts = {} if observation is None else observed(observation)
    if write.expectations.quarantines and (
        not counts or _any_unmet(write.expectations, counts) or aside.mode != "append"
    ):
        write_frame(write.expectations.set_aside(write.frame), _opened(write, write.target.quarantine), aside)
    unmet = write.expectations.counted(counts) if counts else {}
    if committed:
        return Written(is_up_to_date=True)
    return Written(counts.get("rows", 0 if made is None else made.delta_record_count), unmet)


def _opened(write: FlowWrite, name: str) -> OpenedTable:
    return open_table(write.work.warehouse, name, write.work.options)


def _any_unmet(expectations: Expectations, counts: dict[str, int]) -> bool:
    return any(expectations.counted(counts).values())


def is_up_to_date(work: Workspace, name: str, digest: str | None) -> bool:
    """Whether the newest rows of a table were made from what the digest says."""
    if digest is None or not work.lake.table_exists(name):
        return False
    snapshots = reversed(work.lake.table(name).snapshots())
    newest = next((one for one in snapshots if one.commit_kind in _MADE_ROWS), None)
    return newest is not None and (newest.properties or {}).get(PROPERTY) == digest


def digest_of(work: Workspace, flow: Flow) -> str | None:
    """The digest of a view's definition and of the versions that it reads; None where something has no version."""
    steps = [flow.step, *(view.step for view in _views(work, work.graph.of_flow(flow)))]
    if any(not _is_repeatable(step) for step in steps):
        return None
    versions = []
    for one in work.graph.stored_inputs(flow):
        version = _version(work, one)
        if version is None:
            return None
        versions.append(version)
    table = work.graph.table(flow.target)
    expectations = [] if table is None else [(one.name, one.condition, one.action) for one in table.expectations]
    parts = [[step.text for step in steps if isinstance(step, SqlStep)], sorted(versions), expectations]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _views(work: Workspace, inputs: tuple[Input, ...]) -> Iterator[View]:
    for one in inputs:
        if isinstance(one.dataset, View):
            yield one.dataset
            yield from _views(work, work.graph.of_view(one.dataset))


def _is_repeatable(step: Step) -> bool:
    if isinstance(step, PythonStep):
        return False
    return not any(word.is_name and _VOLATILE.match(word.text) for word in words_of(step.text))


def _version(work: Workspace, one: Input) -> tuple[str, str, int] | None:
    """The name, identity and newest snapshot of an input that is a Lakelet table."""
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
    found = work.lake.table(name)
    uuid, newest = table_uuid(found.home), found.latest_snapshot()
    return None if uuid is None else (name, uuid, 0 if newest is None else newest.id)
