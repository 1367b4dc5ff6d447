"""How far a query is behind the tables it reads, from its last progress.

    "latestOffset": {"snapshot": 12, "behindSnapshots": 2, "behindMs": 1830}

A Python source has no metrics of its own in Spark; what it reports as its latest offset is shown in the progress of every batch,
and so reaches listeners and the console, too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from lakelet.model.snapshot import Snapshot
from lakelet.table.follow.offset import StreamOffset

_SNAPSHOT, _BEHIND, _BEHIND_MS = "snapshot", "behindSnapshots", "behindMs"


@dataclass(frozen=True, slots=True)
class StreamLag:
    """The lag and the rates of one source of a query, when its last batch was planned: the snapshot up to which it reads, the
    newest one, and the time between the commits of the two."""

    snapshot: int
    newest_snapshot: int
    snapshots_behind: int
    behind_ms: int
    input_rows_per_second: float
    processed_rows_per_second: float


def stream_lag(query: StreamingQuery) -> list[StreamLag]:
    """The lag of each Lakelet source of a query; empty before its first batch."""
    progress: Any = query.lastProgress
    if not progress:
        return []
    text = getattr(progress, "json", None)
    values = json.loads(text) if isinstance(text, str) else dict(progress)
    return [_lag(source) for source in values.get("sources", ()) if _is_ours(source)]


def reported(newest: Snapshot | None, position: StreamOffset | None, read: Snapshot | None) -> dict[str, Any]:
    """What a source reports as its latest offset: the newest snapshot, and how far the position is behind it."""
    if newest is None:
        return lag_report(0, 0, 0)
    base = newest.id if position is None else position.base
    behind = max(0, newest.id - base)
    age = max(0, newest.time_ms - read.time_ms) if behind and read is not None else 0
    return lag_report(newest.id, behind, age)


def lag_report(newest: int, behind: int, behind_ms: int) -> dict[str, Any]:
    """The JSON values of a latest offset; ids of Iceberg's snapshots have no order, so that their distance is counted."""
    return {_SNAPSHOT: newest, _BEHIND: behind, _BEHIND_MS: behind_ms}


def _is_ours(source: Any) -> bool:
    latest = source.get("latestOffset")
    return isinstance(latest, dict) and _BEHIND in latest


def _lag(source: Any) -> StreamLag:
    latest, end = source["latestOffset"], source.get("endOffset") or {}
    return StreamLag(
        int(end.get(_SNAPSHOT, 0)),
        latest[_SNAPSHOT],
        latest[_BEHIND],
        latest[_BEHIND_MS],
        float(source.get("inputRowsPerSecond") or 0.0),
        float(source.get("processedRowsPerSecond") or 0.0),
    )
