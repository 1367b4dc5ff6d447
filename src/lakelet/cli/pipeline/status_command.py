"""`lakelet pipeline status`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lakelet.cli.call import Call
from lakelet.cli.pipeline.run_command import warehouse_of
from lakelet.pipeline import Graph, load
from lakelet.pipeline.event_log import EventLog


def status_command(call: Call, file: str, parameters: Mapping[str, str], environment: str | None) -> None:
    """Shows the last run of a pipeline, flow by flow."""
    pipeline = load(file, parameters, environment)
    options = {**pipeline.options, **call.options}
    lake = replace(call, warehouse=warehouse_of(call, pipeline), options=options).existing_lake
    events = EventLog(lake, pipeline.database, pipeline.name).last_run()
    if not events:
        call.output.note(f"{pipeline.name} has not run in {lake.location}")
        return
    ended = [one for one in events if one["flow"] is None and one["event"] != "started"]
    how = ended[-1]["event"] if ended else "running, or its process was killed"
    newest = {one["flow"]: one for one in events if one["flow"] is not None}
    rows = [_row(flow.name, flow.target, newest.get(flow.name)) for flow in Graph.of(pipeline).order]
    title = f"{pipeline.name}, run {events[0]['run_id']} of {events[0]['time'].isoformat(timespec='seconds')}: {how}"
    columns = ("flow", "target", "outcome", "rows", "unmet expectations", "attempts", "seconds", "message")
    call.output.rows(title, columns, rows)


def _row(flow: str, target: str, event: Mapping[str, Any] | None) -> tuple[object, ...]:
    if event is None:
        return (flow, target, "not run", None, None, None, None, None)
    details = json.loads(event["details"] or "{}")
    unmet = ", ".join(f"{name}: {count}" for name, count in details.get("unmet", {}).items() if count)
    seconds = None if event["seconds"] is None else round(event["seconds"], 2)
    message = details.get("message") or details.get("reason")
    return (flow, target, event["event"], event["rows"], unmet or None, event["attempt"], seconds, message)
