"""The event log of pipelines: a Lakelet table in the pipeline's database, with a row for every event of a run.

    run_id   time   pipeline   flow   target   event   rows   seconds   attempt   details
    …        …      shop       orders orders   completed   120    1.4         1   {"unmet": {"positive": 2}}

`flow` and `target` are NULL for events of the run itself: started, completed, failed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from lakelet.catalog.lake import Lake
from lakelet.pipeline.definition import EVENTS
from lakelet.table.table import Table

_COLUMNS = [
    ("run_id", "STRING NOT NULL"),
    ("time", "TIMESTAMP(3) WITH LOCAL TIME ZONE NOT NULL"),
    ("pipeline", "STRING NOT NULL"),
    ("flow", "STRING"),
    ("target", "STRING"),
    ("event", "STRING NOT NULL"),
    ("rows", "BIGINT"),
    ("seconds", "DOUBLE"),
    ("attempt", "INT"),
    ("details", "STRING"),
]


@dataclass(frozen=True, slots=True)
class Event:
    """One row of the log; `at_ms` is when it happened, by default when it is written."""

    event: str
    flow: str | None = None
    target: str | None = None
    rows: int | None = None
    seconds: float | None = None
    attempt: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class EventLog:
    """The log of one pipeline's runs."""

    lake: Lake
    database: str
    pipeline: str

    @property
    def name(self) -> str:
        """database.table"""
        return f"{self.database}.{EVENTS}"

    def create(self) -> None:
        """Creates the table where it is not there."""
        self.lake.create_database(self.database, if_not_exists=True)
        self.lake.create_table(
            self.name, _COLUMNS, comment="events of pipelines (lakelet pipeline status)", if_not_exists=True
        )

    def write(self, run_id: str, events: Iterable[Event]) -> None:
        """Appends events."""
        now_ms = self.lake.now_ms()
        rows = [
            {
                "run_id": run_id,
                "time": datetime.fromtimestamp((now_ms if one.at_ms is None else one.at_ms) / 1000, UTC),
                "pipeline": self.pipeline,
                "flow": one.flow,
                "target": one.target,
                "event": one.event,
                "rows": one.rows,
                "seconds": one.seconds,
                "attempt": one.attempt,
                "details": json.dumps(one.details, ensure_ascii=False) if one.details else None,
            }
            for one in events
        ]
        self._table().write(rows)

    def last_run(self) -> list[dict[str, Any]]:
        """The events of the newest run, in their order; none where the pipeline never ran."""
        if not self.lake.table_exists(self.name):
            return []
        named = self.pipeline.replace("'", "''")
        events = self._table().scan(where=f"pipeline = '{named}'").to_arrow()
        starts = [row for row in events.select(["run_id", "time", "event", "flow"]).to_pylist() if _begins(row)]
        if not starts:
            return []
        newest = max(starts, key=lambda row: row["time"])["run_id"]
        found: list[dict[str, Any]] = [row for row in events.to_pylist() if row["run_id"] == newest]
        return sorted(found, key=lambda row: row["time"])

    def _table(self) -> Table:
        return self.lake.table(self.name)


def _begins(row: Mapping[str, Any]) -> bool:
    return row["event"] == "started" and row["flow"] is None
